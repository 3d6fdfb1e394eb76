//! The machine's heartbeat moves while it is on, stands still while it is off, and the observer sees both.

use std::time::{Duration, Instant, SystemTime};

use picket_tests::Result;
use picket_tests::peers::{IpmiSim, Ipmitool, Knob, Machine, PowerWord, eventually};

const BOOT: Duration = Duration::from_secs(60);
/// More than four heartbeats long.
const LISTEN: Duration = Duration::from_millis(500);

#[tokio::test]
async fn it_moves_while_on_and_stands_still_while_off() -> Result<()> {
    let machine = Machine::new()?;
    let bmc = IpmiSim::builder().machine(&machine).start().await?;
    let observer = machine.observe().await?;
    let tool = Ipmitool::new(bmc.address());
    assert_eq!(tool.power().await?, PowerWord::Off);
    assert_eq!(observer.listen(LISTEN).await, []);

    tool.run("chassis power on").await?;
    observer.wait_for(5, BOOT).await?;
    assert!(machine.lives());
    let beats = observer.beats();
    assert!(beats.windows(2).all(|pair| pair[0].count + 1 == pair[1].count), "none is missed: {beats:?}");
    assert!(beats.iter().all(|beat| beat.written <= beat.seen), "{beats:?}");

    tool.run("chassis power off").await?;
    let acknowledged = SystemTime::now();
    assert_eq!(tool.power().await?, PowerWord::Off);
    assert_eq!(observer.listen(LISTEN).await, []);
    assert_eq!(observer.after(acknowledged), [], "this BMC acknowledges after the fall");
    let done: Vec<_> = machine.power_events().into_iter().map(|event| event.what).collect();
    assert_eq!(done, ["on", "off"]);
    Ok(())
}

#[tokio::test]
async fn the_bmc_that_is_its_parent_acknowledges_before_the_fall_and_lies_after_a_restart() -> Result<()> {
    let machine = Machine::new()?;
    let mut bmc = IpmiSim::builder().machine_as_child(&machine).start().await?;
    let observer = machine.observe().await?;
    let tool = Ipmitool::new(bmc.address());
    tool.run("chassis power on").await?;
    observer.wait_for(3, BOOT).await?;
    assert_eq!(tool.power().await?, PowerWord::On);

    tool.run("chassis power off").await?;
    eventually("the machine falls", Duration::from_secs(10), || !machine.lives()).await?;
    tool.run("chassis power on").await?;
    observer.wait_for(3, BOOT).await?;

    // The negative control of every test that restarts a BMC: this one says off, and the heart beats.
    bmc.process().kill();
    bmc.start_again().await?;
    assert_eq!(tool.power().await?, PowerWord::Off);
    observer.wait_for(3, BOOT).await?;
    assert!(machine.lives());
    Ok(())
}

#[tokio::test]
async fn a_foreign_power_cycle_brings_it_back_whatever_is_commanded() -> Result<()> {
    let machine = Machine::new()?;
    let bmc = IpmiSim::builder().machine(&machine).start().await?;
    let observer = machine.observe().await?;
    let tool = Ipmitool::new(bmc.address());
    tool.run("chassis power on").await?;
    observer.wait_for(2, BOOT).await?;

    let gap = Duration::from_secs(8);
    let began = Instant::now();
    machine.foreign_cycle(gap).await?;
    assert_eq!(tool.power().await?, PowerWord::Off);
    tool.run("chassis power off").await?;
    assert_eq!(tool.power().await?, PowerWord::Off, "an off in the gap is accepted");
    eventually("it comes back", BOOT, || machine.lives()).await?;
    assert!(began.elapsed() >= gap);
    assert_eq!(tool.power().await?, PowerWord::On);
    observer.wait_for(2, BOOT).await
}

#[tokio::test]
async fn its_bmc_can_ignore_delay_and_lie() -> Result<()> {
    let machine = Machine::new()?;
    let bmc = IpmiSim::builder().machine(&machine).start().await?;
    let second = IpmiSim::builder().machine(&machine).start().await?;
    let observer = machine.observe().await?;
    let (tool, other) = (Ipmitool::new(bmc.address()), Ipmitool::new(second.address()));
    tool.run("chassis power on").await?;
    observer.wait_for(2, BOOT).await?;

    bmc.set(Knob::IgnoreOff)?;
    tool.run("chassis power off").await?;
    assert_eq!(tool.power().await?, PowerWord::On);
    bmc.clear(Knob::IgnoreOff)?;

    bmc.set(Knob::LieOff)?;
    tool.run("chassis power off").await?;
    assert_eq!(
        (tool.power().await?, other.power().await?),
        (PowerWord::Off, PowerWord::On),
        "two BMCs, one lies"
    );
    observer.wait_for(2, BOOT).await?;
    bmc.clear(Knob::LieOff)?;
    tool.run("chassis power on").await?;
    assert_eq!(tool.power().await?, PowerWord::On);

    bmc.set(Knob::OffDelay(Duration::from_secs(5)))?;
    tool.run("chassis power off").await?;
    assert!(machine.lives(), "acknowledged before the fall");
    eventually("it falls", Duration::from_secs(10), || !machine.lives()).await?;
    assert_eq!(observer.listen(LISTEN).await, []);

    bmc.set(Knob::StuckPower(true))?;
    assert_eq!((tool.power().await?, other.power().await?), (PowerWord::On, PowerWord::Off));
    Ok(())
}

#[tokio::test]
async fn a_machine_whose_test_is_over_stays_off() -> Result<()> {
    let machine = Machine::new()?;
    machine.force(true).await?;
    eventually("it runs", BOOT, || machine.lives()).await?;
    let process = machine.process().expect("it lives");
    let disk = machine.disk();
    machine.foreign_cycle(Duration::from_millis(300)).await?;
    drop(machine);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!disk.exists());
    assert!(
        !std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default().contains("qemu")
    );
    Ok(())
}
