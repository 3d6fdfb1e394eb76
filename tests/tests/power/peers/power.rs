//! ipmitool and ipmipower agree with each simulated BMC, and its faults do what they say.

use std::time::{Duration, Instant};

use picket_tests::Result;
use picket_tests::peers::{
    Bmc17, IpmiSim, Ipmipower, Ipmitool, Knob, OPERATOR, PASSWORD, PowerWord, eventually,
};

const SOON: Duration = Duration::from_secs(10);

/// On, off and on again with both clients; `truth` is what the switch behind the BMC says.
async fn both_clients_agree(
    tool: Ipmitool,
    power: Ipmipower,
    truth: impl Fn() -> Result<bool>,
) -> Result<()> {
    for on in [false, true, false, true] {
        let word = if on { PowerWord::On } else { PowerWord::Off };
        tool.run(if on { "chassis power on" } else { "chassis power off" }).await?;
        assert_eq!(truth()?, on, "after ipmitool");
        assert_eq!((tool.power().await?, power.power().await?), (word, word));
        let opposite = if on { "--off --wait-until-off" } else { "--on --wait-until-on" };
        assert_eq!(power.run(opposite).await?, "ok");
        assert_eq!(truth()?, !on, "after ipmipower");
    }
    Ok(())
}

#[tokio::test]
async fn ipmi_sim_with_power_inside() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    both_clients_agree(Ipmitool::new(bmc.address()), Ipmipower::new(bmc.address()), || bmc.is_on()).await
}

#[tokio::test]
async fn ipmi_sim_with_a_power_program() -> Result<()> {
    let bmc = IpmiSim::builder().script().start().await?;
    both_clients_agree(Ipmitool::new(bmc.address()), Ipmipower::new(bmc.address()), || bmc.is_on()).await
}

#[tokio::test]
async fn bmc17_with_suites_3_and_17() -> Result<()> {
    let bmc = Bmc17::start().await?;
    for suite in [3, 17] {
        let (tool, power) =
            (Ipmitool::new(bmc.address()).suite(suite), Ipmipower::new(bmc.address()).suite(suite));
        both_clients_agree(tool, power, || bmc.is_on()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn ipmi_sim_has_no_suite_17_and_bmc17_only_what_it_was_given() -> Result<()> {
    let (sim, only17) = (IpmiSim::start().await?, Bmc17::with_suites("17").await?);
    assert!(Ipmitool::new(sim.address()).suite(17).power().await.is_err());
    assert!(Ipmitool::new(only17.address()).suite(3).power().await.is_err());
    assert_eq!(Ipmitool::new(only17.address()).suite(17).power().await?, PowerWord::On);
    Ok(())
}

#[tokio::test]
async fn wrong_passwords_and_small_privileges_are_refused() -> Result<()> {
    let (sim, bmc17) = (IpmiSim::start().await?, Bmc17::start().await?);
    for address in [sim.address(), bmc17.address()] {
        let tool = Ipmitool::new(address);
        assert!(tool.clone().login("admin", "wrong").power().await.is_err());
        assert!(tool.clone().login("nobody", PASSWORD).power().await.is_err());
        assert!(tool.run("-L user chassis power off").await.is_err(), "a user may not switch");
        tool.run("-L operator chassis power off").await?;
        assert_eq!(tool.power().await?, PowerWord::Off);
    }
    let operator = Ipmitool::new(sim.address()).login(OPERATOR, PASSWORD);
    operator.run("-L operator chassis power on").await?;
    Ok(())
}

#[tokio::test]
async fn each_says_its_own_guid() -> Result<()> {
    let sim = IpmiSim::builder().guid(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff).start().await?;
    let bmc17 = Bmc17::start().await?;
    let said = Ipmitool::new(sim.address()).run("raw 6 0x37").await?.replace(char::is_whitespace, "");
    assert_eq!(
        (said, sim.guid()),
        ("00112233445566778899aabbccddeeff".into(), "00112233445566778899aabbccddeeff".into())
    );
    let said = Ipmitool::new(bmc17.address()).run("raw 6 0x37").await?.replace(char::is_whitespace, "");
    assert_eq!(said[16..], bmc17.guid()[16..], "the first three fields are swapped, the rest is not");
    Ok(())
}

#[tokio::test]
async fn an_off_can_be_ignored_delayed_lied_about_or_refused() -> Result<()> {
    let (sim, bmc17) = (IpmiSim::start().await?, Bmc17::start().await?);
    for (address, set, clear, is_on, press) in [
        faults(
            sim.address(),
            |knob| sim.set(knob),
            |knob| sim.clear(knob),
            || sim.is_on(),
            |on| sim.press(on),
        ),
        faults(
            bmc17.address(),
            |knob| bmc17.set(knob),
            |knob| bmc17.clear(knob),
            || bmc17.is_on(),
            |on| bmc17.press(on),
        ),
    ] {
        let tool = Ipmitool::new(address);
        set(Knob::IgnoreOff)?;
        tool.run("chassis power off").await?;
        assert_eq!(tool.power().await?, PowerWord::On);
        clear(Knob::IgnoreOff)?;

        set(Knob::LieOff)?;
        tool.run("chassis power off").await?;
        assert_eq!((tool.power().await?, is_on()?), (PowerWord::Off, true), "it says off of a live machine");
        clear(Knob::LieOff)?;
        tool.run("chassis power on").await?;
        assert_eq!(tool.power().await?, PowerWord::On);

        set(Knob::OffDelay(FALL))?;
        let asked = Instant::now();
        tool.run("chassis power off").await?;
        assert!(is_on()?, "acknowledged before the fall");
        eventually("the delayed fall", SOON, || !is_on().unwrap_or(true)).await?;
        assert!(asked.elapsed() >= FALL);
        clear(Knob::OffDelay(Duration::ZERO))?;

        press(true)?;
        set(Knob::Fail)?;
        assert!(tool.run("chassis power off").await.is_err());
        assert!(is_on()?);
        clear(Knob::Fail)?;
    }
    bmc17.set(Knob::RefuseAgain)?;
    let tool = Ipmitool::new(bmc17.address()).suite(17);
    tool.run("chassis power off").await?;
    let refusal = tool.run("chassis power off").await.expect_err("Dell's way").to_string();
    assert!(refusal.contains("Command not supported in present state"), "{refusal}");
    Ok(())
}

/// Longer than a busy machine takes to end a program that was answered.
const FALL: Duration = Duration::from_secs(5);

type Setter<'a> = Box<dyn Fn(Knob) -> Result<()> + 'a>;
type Faults<'a> = (
    std::net::SocketAddr,
    Setter<'a>,
    Setter<'a>,
    Box<dyn Fn() -> Result<bool> + 'a>,
    Box<dyn Fn(bool) -> Result<()> + 'a>,
);

/// One BMC's faults, so that both kinds go through the same test.
fn faults<'a>(
    address: std::net::SocketAddr,
    set: impl Fn(Knob) -> Result<()> + 'a,
    clear: impl Fn(Knob) -> Result<()> + 'a,
    is_on: impl Fn() -> Result<bool> + 'a,
    press: impl Fn(bool) -> Result<()> + 'a,
) -> Faults<'a> {
    (address, Box::new(set), Box::new(clear), Box::new(is_on), Box::new(press))
}

#[tokio::test]
async fn a_fault_that_a_peer_does_not_know_is_an_error() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    assert!(bmc.set(Knob::Busy(1)).is_err());
    assert!(bmc.set(Knob::NoPolicy).is_err(), "this one holds nothing");
    Ok(())
}

#[tokio::test]
async fn a_hung_bmc_answers_late_a_frozen_one_when_it_is_thawed() -> Result<()> {
    let mut bmc = IpmiSim::builder().script().start().await?;
    bmc.set(Knob::Slow(Duration::from_millis(700)))?;
    let asked = Instant::now();
    assert_eq!(Ipmitool::new(bmc.address()).power().await?, PowerWord::On);
    assert!(asked.elapsed() >= Duration::from_millis(700));
    bmc.clear(Knob::Slow(Duration::ZERO))?;

    bmc.process().freeze();
    let tool = Ipmitool::new(bmc.address());
    assert!(tool.run("-N 1 -R 1 chassis power status").await.is_err());
    bmc.process().thaw();
    assert_eq!(tool.power().await?, PowerWord::On);

    bmc.process().kill();
    assert!(tool.run("-N 1 -R 1 chassis power status").await.is_err());
    bmc.start_again().await?;
    assert_eq!(tool.power().await?, PowerWord::On);
    Ok(())
}

#[tokio::test]
async fn bmc17_can_be_busy_lose_answers_and_run_out_of_sessions() -> Result<()> {
    let bmc = Bmc17::start().await?;
    let tool = Ipmitool::new(bmc.address()).suite(17);
    bmc.set(Knob::DropAnswers(1))?;
    assert_eq!(tool.power().await?, PowerWord::On, "asked again");
    bmc.set(Knob::NoSessions)?;
    let refusal = tool.power().await.expect_err("no session").to_string();
    assert!(refusal.contains("Unable to establish"), "{refusal}");
    bmc.clear(Knob::NoSessions)?;
    bmc.set(Knob::Busy(1))?;
    // ipmitool tries again by itself; FreeIPMI says so.
    assert_eq!(tool.power().await?, PowerWord::On);
    Ok(())
}

#[tokio::test]
async fn a_farm_is_up_at_once() -> Result<()> {
    let farm = IpmiSim::farm(16).await?;
    let clients = farm.iter().map(|bmc| async move { Ipmipower::new(bmc.address()).power().await });
    let words = futures::future::try_join_all(clients).await?;
    assert_eq!(words, [PowerWord::On; 16]);
    Ok(())
}
