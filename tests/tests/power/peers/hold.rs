//! The hold module, checked with ipmitool: the commands that ipmi_sim lacks.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{IpmiSim, Ipmitool, Knob, OPERATOR, PASSWORD, PowerWord, eventually};

#[tokio::test]
async fn without_it_the_honest_answer_is_not_supported() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    for command in ["chassis policy always-off", "chassis poh", "chassis restart_cause", "raw 0 0x0a 1"] {
        let refusal = Ipmitool::new(bmc.address()).run(command).await.expect_err(command).to_string();
        assert!(refusal.contains("nvalid command") || refusal.contains("0xc1"), "{command}: {refusal}");
    }
    Ok(())
}

#[tokio::test]
async fn restore_policy_and_buttons_are_told_in_the_chassis_status() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    bmc.preset("policy", 2)?;
    let tool = Ipmitool::new(bmc.address());
    assert!(tool.run("chassis status").await?.contains("Power Restore Policy : always-on"));
    assert!(tool.run("chassis policy list").await?.contains("always-off always-on previous"));
    tool.run("chassis policy always-off").await?;
    tool.run("raw 0 0x0a 1").await?;
    let status = tool.run("chassis status").await?;
    assert!(status.contains("Power Restore Policy : always-off"), "{status}");
    assert!(status.contains("Power Button Disabled: true"), "{status}");
    assert!(status.contains("Reset Button Disabled: false"), "{status}");
    assert!(status.contains("System Power         : on"), "{status}");
    assert_eq!((bmc.hold()?.get("policy"), bmc.hold()?.get("buttons")), (0, 1));
    assert_eq!(bmc.hold_log(), ["policy 2 -> 0", "buttons 0 -> 0x1"]);
    Ok(())
}

#[tokio::test]
async fn an_operator_sets_the_policy_and_only_an_administrator_the_buttons() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    let operator = Ipmitool::new(bmc.address()).login(OPERATOR, PASSWORD);
    operator.run("-L operator chassis policy previous").await?;
    let refusal = operator.run("-L operator raw 0 0x0a 1").await.expect_err("no administrator").to_string();
    assert!(refusal.contains("0xd4"), "{refusal}");
    Ok(())
}

#[tokio::test]
async fn hours_and_restart_cause_can_be_asked() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    bmc.preset("poh", 49)?;
    bmc.preset("restart_cause", 3)?;
    let tool = Ipmitool::new(bmc.address());
    assert!(tool.run("chassis poh").await?.contains("2 days, 1 hour"));
    assert!(tool.run("chassis restart_cause").await?.contains("pushbutton"));
    Ok(())
}

#[tokio::test]
async fn a_running_watchdog_brings_a_node_back_and_a_stopped_one_does_not() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    let tool = Ipmitool::new(bmc.address());
    let never_set = tool.run("mc watchdog reset").await.expect_err("never set").to_string();
    assert!(never_set.contains("uninitialized") || never_set.contains("0x80"), "{never_set}");

    // For the operating system, power cycle, 2 s.
    tool.run("raw 6 0x24 0x04 0x03 0 0x10 20 0").await?;
    assert!(tool.run("mc watchdog get").await?.contains("Stopped"));
    tool.run("mc watchdog reset").await?;
    let running = tool.run("mc watchdog get").await?;
    assert!(running.contains("Started/Running") && running.contains("Power Cycle"), "{running}");
    tool.run("chassis power off").await?;
    assert_eq!(tool.power().await?, PowerWord::Off);
    eventually("the watchdog powers it on", Duration::from_secs(10), || bmc.is_on().unwrap_or(false)).await?;
    assert_eq!(bmc.hold()?.get("watchdog_expired"), 1 << 4);

    tool.run("mc watchdog reset").await?;
    // The same settings again, without "do not stop": it stops.
    tool.run("raw 6 0x24 0x04 0x03 0 0x10 20 0").await?;
    assert!(tool.run("mc watchdog get").await?.contains("Stopped"));
    assert_eq!(bmc.hold()?.get("watchdog_running"), 0);
    Ok(())
}

#[tokio::test]
async fn its_commands_can_be_missing_one_by_one_and_it_outlives_the_bmc() -> Result<()> {
    let mut bmc = IpmiSim::builder().holds().start().await?;
    let tool = Ipmitool::new(bmc.address());
    tool.run("chassis policy previous").await?;
    bmc.process().kill();
    bmc.start_again().await?;
    assert!(tool.run("chassis status").await?.contains("Power Restore Policy : previous"));
    for (knob, command) in [
        (Knob::NoPolicy, "chassis policy always-off"),
        (Knob::NoButtons, "raw 0 0x0a 1"),
        (Knob::NoWatchdog, "raw 6 0x25"),
    ] {
        tool.run(command).await?;
        bmc.set(knob)?;
        assert!(tool.run(command).await.is_err(), "{knob:?}");
    }
    Ok(())
}
