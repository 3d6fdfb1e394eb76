//! What goes wrong in the world goes wrong on the wire, and clients that others wrote see it so.

use std::time::{Duration, Instant};

use crate::fleet::scene::{Result, Scene, eventually};
use picket_driver_sim::{Act, Fault, RestorePolicy};
use picket_tests::peers::PowerWord;

const SUITE: u8 = 17;

#[tokio::test(flavor = "multi_thread")]
async fn an_off_takes_its_time() -> Result<()> {
    let scene = Scene::new().await;
    let fall = Duration::from_secs(2);
    scene.bmc.fault(Fault::OffTakes { least: fall, most: fall });
    let began = Instant::now();
    assert_eq!(scene.ipmipower(SUITE).run("--off --wait-until-off").await?, "ok");
    assert!(began.elapsed() >= fall, "{:?}", began.elapsed());
    assert!(!scene.bmc.is_on());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_off_is_ignored_or_lied_about() -> Result<()> {
    for (fault, said) in [(Fault::OffIgnored, PowerWord::On), (Fault::OffLied, PowerWord::Off)] {
        let scene = Scene::new().await;
        scene.bmc.fault(fault.clone());
        scene.ipmitool(SUITE).run("chassis power off").await?;
        assert_eq!(scene.ipmitool(SUITE).power().await?, said, "{fault:?}");
        assert!(scene.bmc.is_on(), "{fault:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_may_be_full_and_the_bmc_dead_or_back() -> Result<()> {
    let scene = Scene::new().await;
    let tool = scene.ipmitool(SUITE);
    scene.bmc.fault(Fault::SessionsFull);
    let full = tool.run("-R 1 chassis power status").await.expect_err("no session is left").to_string();
    assert!(full.contains("insufficient resources"), "{full}");
    scene.bmc.mend();
    scene.bmc.fault(Fault::Silent);
    let dead = tool.run("-N 1 -R 1 chassis power status").await.expect_err("it is dead").to_string();
    assert!(dead.contains("Unable to establish"), "{dead}");
    scene.bmc.mend();
    assert_eq!(tool.power().await?, PowerWord::On);
    let down = Duration::from_millis(500);
    scene.bmc.happen(Act::RestartBmc { device: "n1".to_owned(), down, estranged: true });
    eventually("the BMC is back and says Off", async || matches!(tool.power().await, Ok(PowerWord::Off)))
        .await;
    assert!(scene.bmc.is_on(), "it lost its hand on its machine");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bmc_is_slow_and_ipmipower_waits_for_it() -> Result<()> {
    // Each Open Session Request that it repeats takes a slot.
    let scene = Scene::with_sessions(63).await;
    scene.bmc.fault(Fault::Slow(Duration::from_millis(300)));
    scene.bmc.fault(Fault::AnswerLost { times: 3 });
    assert_eq!(scene.ipmipower(SUITE).run("--off --wait-until-off").await?, "ok");
    assert!(!scene.bmc.is_on());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_are_lost_doubled_late_and_reordered() -> Result<()> {
    for fault in [
        Fault::Loss { percent: 20 },
        Fault::Doubled,
        Fault::Slow(Duration::from_millis(300)),
        Fault::Reordered { percent: 30, by: Duration::from_millis(600) },
        Fault::AnswerLost { times: 3 },
    ] {
        // ipmitool gives a login up after some seconds and leaves its slot taken; a BMC of four would soon be full.
        let scene = Scene::with_sessions(63).await;
        scene.bmc.fault(fault.clone());
        eventually("an off is acknowledged", async || {
            scene.ipmitool(SUITE).run("chassis power off").await.is_ok()
        })
        .await;
        assert!(!scene.bmc.is_on(), "{fault:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn power_comes_back_by_policy_by_button_and_by_somebody_else() -> Result<()> {
    let scene = Scene::new().await;
    let tool = scene.ipmitool(SUITE);
    let machine = || "n1".to_owned();
    tool.run("chassis power off").await?;
    scene.bmc.happen(Act::PressButton { machine: machine() });
    assert_eq!(tool.power().await?, PowerWord::On);
    scene.bmc.world().set_restore("n1", RestorePolicy::AlwaysOn);
    tool.run("chassis power off").await?;
    scene.bmc.happen(Act::LoseMains { machine: machine() });
    // Its power supply holds up for a second.
    eventually("without power it is silent", async || {
        tool.run("-N 1 -R 1 chassis power status").await.is_err()
    })
    .await;
    scene.bmc.happen(Act::RestoreMains { machine: machine() });
    assert_eq!(tool.power().await?, PowerWord::On, "always-on");
    tool.run("chassis policy always-off").await?;
    scene.bmc.happen(Act::ForeignCycle { machine: machine(), off_for: Duration::from_secs(5) });
    assert!(!scene.bmc.is_on());
    eventually("it comes back by itself", async || matches!(tool.power().await, Ok(PowerWord::On))).await;
    Ok(())
}
