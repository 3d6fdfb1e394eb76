//! The BMC is told to keep the node off, and what it was told is undone; ipmitool looks before, during and after.

use std::time::Duration;

use picket_tests::peers::{ADMIN, Bmc17, Ipmitool, Knob};
use picket_tests::{Bmc, Result};

use crate::bmc::host::{Host, by_script, with_holds};
use crate::bmc::scene::Plan;

/// What ipmitool says of restore policy, power button and watchdog.
async fn seen(tool: &Ipmitool) -> Result<(String, String, Vec<String>)> {
    let status = tool.run("chassis status").await?;
    let watchdog = tool.run("mc watchdog get").await?;
    let line = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or(String::new(), |(_, said)| said.trim().to_owned())
    };
    // "SMS/OS (0x44)": ipmitool has the bit that says "running" in the number.
    let word = |text: &str, name: &str| line(text, name).split(" (").next().unwrap_or_default().to_owned();
    let watchdog = ["Watchdog Timer Use", "Watchdog Timer Is", "Watchdog Timer Action", "Initial Countdown"]
        .map(|name| word(&watchdog, name));
    Ok((line(&status, "Power Restore Policy"), line(&status, "Power Button Disabled"), watchdog.to_vec()))
}

#[tokio::test]
async fn restore_policy_watchdog_and_button_are_held_and_put_back() -> Result<()> {
    let host = Host::on(with_holds).await?;
    host.bmc.preset("policy", 2)?;
    let tool = Ipmitool::new(host.bmc.address());
    // For the operating system, power cycle, 10 s: what would bring it back in the middle of everything.
    tool.run("raw 6 0x24 0x04 0x03 0 0x10 100 0").await?;
    tool.run("mc watchdog reset").await?;
    let before = seen(&tool).await?;
    println!("before: {before:?}");
    assert_eq!((before.0.as_str(), before.1.as_str()), ("always-on", "false"));
    assert!(before.2[1].contains("Started") && before.2[2].contains("Power Cycle"), "{before:?}");

    let bmc = Bmc::at(host.bmc.address()).user(ADMIN).with("privilege = \"administrator\"");
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).start().await?;
    let fenced = scene.fence().await?;
    let evidence = fenced.is_fenced().evidence();
    println!("evidence: {:?}", evidence.devices[0].hold);
    assert_eq!(
        evidence.devices[0].hold,
        ["watchdog timer stopped", "restore policy always-off", "power button locked"]
    );
    let during = seen(&tool).await?;
    println!("during: {during:?}");
    assert_eq!((during.0.as_str(), during.1.as_str()), ("always-off", "true"));
    assert!(during.2[1].contains("Stopped") && !during.2[2].contains("Power Cycle"), "{during:?}");
    // The watchdog's ten seconds pass, and nothing brings it back.
    tokio::time::sleep(Duration::from_secs(10)).await;
    fenced.dead_since(&host.observer).await;
    assert_eq!(host.power_events(), ["on", "off"]);

    scene.unfence().await?.is_back();
    let after = seen(&tool).await?;
    println!("after: {after:?}");
    assert_eq!((&after.0, &after.1), (&before.0, &before.1));
    assert_eq!((&after.2[0], &after.2[2], &after.2[3]), (&before.2[0], &before.2[2], &before.2[3]));
    assert!(after.2[1].contains("Stopped"), "a watchdog is put back and never started: {after:?}");
    println!("{}", host.bmc.hold_log().join("\n"));
    assert_eq!(scene.node().await?.holds, []);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn without_a_hold_the_watchdog_brings_the_node_back_and_it_is_fenced_again() -> Result<()> {
    let host = Host::on(with_holds).await?;
    let tool = Ipmitool::new(host.bmc.address());
    tool.run("raw 6 0x24 0x04 0x03 0 0x10 80 0").await?;
    let bmc = Bmc::at(host.bmc.address()).with("hold = false");
    let scene =
        Plan::over(host.machine.truth(), &[("bmc", bmc)]).with("[rules]\nwatch = \"1s\"").start().await?;
    tool.run("mc watchdog reset").await?;
    let fenced = scene.fence().await?;
    assert_eq!(fenced.is_fenced().evidence().devices[0].hold, Vec::<String>::new());
    scene.until("the breach by the watchdog", Duration::from_secs(30), |node| node.breaches == 1).await?;
    scene.webhook.wait_for(2, Duration::from_secs(60)).await?;
    scene.released_while_off(2);
    Ok(())
}

#[tokio::test]
async fn an_operators_account_holds_what_it_may_and_says_what_it_may_not() -> Result<()> {
    let host = Host::on(with_holds).await?;
    host.bmc.preset("policy", 1)?;
    // For the operating system, power cycle; set, and not started.
    Ipmitool::new(host.bmc.address()).run("raw 6 0x24 0x04 0x03 0 0x10 100 0").await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;
    let fenced = scene.fence().await?;
    assert_eq!(
        fenced.is_fenced().evidence().devices[0].hold,
        ["watchdog timer stopped", "restore policy always-off"]
    );
    let fence = scene.fences().await?.remove(0);
    println!("{:?}", fence.holds);
    assert!(fence.holds[0].detail.contains("power button: needs the privilege administrator"));
    assert_eq!(fence.holds[0].found["restore_policy"], "previous");
    scene.unfence().await?.is_back();
    assert_eq!((host.bmc.hold()?.get("policy"), host.bmc.hold()?.get("buttons")), (1, 0));
    Ok(())
}

#[tokio::test]
async fn what_a_bmc_lacks_is_said_as_not_supported() -> Result<()> {
    // Neither ipmi_sim by itself nor pyghmi's BMC knows a restore policy; ipmi_sim's watchdog was never set.
    let host = Host::on(by_script).await?;
    let bmc17 = Bmc17::start().await?;
    let scenes = [
        (host.machine.truth(), Bmc::at(host.bmc.address())),
        (bmc17.truth(), Bmc::at(bmc17.address()).user(ADMIN)),
    ];
    for (truth, bmc) in scenes {
        let scene = Plan::over(truth, &[("bmc", bmc)]).start().await?;
        let fenced = scene.fence().await?;
        let hold = &fenced.is_fenced().evidence().devices[0].hold;
        assert!(hold.is_empty(), "hold: none, and not {hold:?}");
        let fence = scene.fences().await?.remove(0);
        println!("{:?}", fence.holds);
        assert!(fence.holds[0].detail.contains("not supported"), "{:?}", fence.holds);
        scene.released_while_off(1);
        scene.unfence().await?.is_back();
    }
    Ok(())
}

#[tokio::test]
async fn each_part_can_be_missing_by_itself() -> Result<()> {
    for (knob, missing, left) in [
        (Knob::NoPolicy, "restore policy", ["watchdog timer stopped", "power button locked"]),
        (Knob::NoButtons, "power button", ["watchdog timer stopped", "restore policy always-off"]),
        (Knob::NoWatchdog, "watchdog timer", ["restore policy always-off", "power button locked"]),
    ] {
        let host = Host::on(with_holds).await?;
        Ipmitool::new(host.bmc.address()).run("raw 6 0x24 0x04 0x03 0 0x10 100 0").await?;
        host.bmc.set(knob)?;
        let bmc = Bmc::at(host.bmc.address()).user(ADMIN).with("privilege = \"administrator\"");
        let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).start().await?;
        let fenced = scene.fence().await?;
        assert_eq!(fenced.is_fenced().evidence().devices[0].hold, left, "{knob:?}");
        let detail = scene.fences().await?.remove(0).holds.remove(0).detail;
        assert!(detail.contains(missing) && detail.contains("not supported"), "{knob:?}: {detail}");
    }
    Ok(())
}
