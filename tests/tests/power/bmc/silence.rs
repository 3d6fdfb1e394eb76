//! BMCs that fall silent in the middle of a fence: killed, or hung, for a while or for good.

use std::time::Duration;

use picket_proto::v1::{Node, Phase, Power, Reason};
use picket_tests::peers::Knob;
use picket_tests::{Bmc, Result};

use crate::bmc::host::{Host, by_script};
use crate::bmc::scene::Plan;

/// A level is given up after 9 s rather than 180 s; the long window has to fit into that.
const SHORT_SHARE: &str =
    "[rules]\nlevel_share = \"9s\"\nfence_deadline = \"30s\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"";

/// Switched on, and its BMC acknowledges an off that never comes: whatever is confirmed is wrong.
async fn undying() -> Result<Host> {
    let host = Host::on(by_script).await?;
    host.bmc.set(Knob::IgnoreOff)?;
    Ok(host)
}

#[tokio::test]
async fn a_bmc_that_was_killed_after_the_off_proves_nothing() -> Result<()> {
    let mut host = undying().await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)])
        .with(SHORT_SHARE)
        .pausing("sent off")
        .start()
        .await?;
    let process = host.bmc.process();
    let (left, ()) = tokio::try_join!(scene.fence(), async {
        scene.until_paused().await?;
        process.kill();
        scene.go_on()
    })?;
    left.tell("killed after the off");
    left.needs_operator(Reason::LevelsSpent);
    host.is_alive().await?;
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn the_next_level_goes_on_where_a_bmc_was_killed() -> Result<()> {
    let mut host = undying().await?;
    let second = host.second_bmc().await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))])
        .level(&[("second", Bmc::at(second.address()))])
        .with(SHORT_SHARE)
        .pausing("sent off")
        .start()
        .await?;
    let process = host.bmc.process();
    let (fenced, ()) = tokio::try_join!(scene.fence_until_fenced(), async {
        scene.until_paused().await?;
        process.kill();
        scene.go_on()
    })?;
    fenced.tell("killed, next level");
    assert_eq!(fenced.is_fenced().evidence().level, 2);
    fenced.dead_since(&host.observer).await;
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_was_dead_before_is_given_up_sooner() -> Result<()> {
    let mut host = undying().await?;
    let second = host.second_bmc().await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))])
        .level(&[("second", Bmc::at(second.address()))])
        .with("[rules]\nsilent_share = \"3s\"")
        .unchecked()
        .start()
        .await?;
    host.bmc.process().kill();
    let fenced = scene.fence().await?;
    fenced.tell("dead before");
    assert_eq!(fenced.is_fenced().evidence().level, 2);
    fenced.dead_since(&host.observer).await;
    scene.released_while_off(1);
    Ok(())
}

/// The BMC hangs for `pause` just before the off is sent; the daemon runs on.
async fn hung_before_the_off(pause: Duration) -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).pausing("sending off").start().await?;
    let process = host.bmc.process();
    let (fenced, ()) = tokio::try_join!(scene.fence(), async {
        scene.until_paused().await?;
        process.freeze();
        scene.go_on()?;
        tokio::time::sleep(pause).await;
        process.thaw();
        Ok(())
    })?;
    fenced.tell(&format!("hung for {pause:?}"));
    assert!(fenced.took >= pause);
    fenced.is_fenced().dead_since(&host.observer).await;
    let fence = scene.fences().await?.remove(0);
    assert_eq!(fence.lost_sessions, Vec::<String>::new(), "the same session answered: no restart");
    assert_eq!(host.power_events(), ["on", "off"]);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_hangs_for_a_while_did_not_restart() -> Result<()> {
    tokio::try_join!(
        hung_before_the_off(Duration::from_secs(2)),
        // Longer than a device call.
        hung_before_the_off(Duration::from_secs(8)),
    )?;
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_hangs_for_good_proves_nothing_and_a_retry_after_it_does() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)])
        .with(SHORT_SHARE)
        .pausing("sending off")
        .start()
        .await?;
    let process = host.bmc.process();
    let (left, ()) = tokio::try_join!(scene.fence(), async {
        scene.until_paused().await?;
        process.freeze();
        scene.go_on()
    })?;
    left.tell("hung for good");
    left.needs_operator(Reason::LevelsSpent);
    host.is_alive().await?;
    scene.never_released().await;
    host.bmc.process().thaw();
    // What was sent to the frozen BMC is carried out now; that alone confirms nothing.
    scene.until("the late off arrives", Duration::from_secs(30), |_| !host.machine.lives()).await?;
    scene.never_released().await;
    assert_eq!(scene.node().await?.phase(), Phase::NeedsOperator);
    scene.retry_until_fenced().await?.is_fenced().dead_since(&host.observer).await;
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_hangs_while_its_node_is_fenced_changes_nothing() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene =
        Plan::over(host.machine.truth(), &[("bmc", bmc)]).with("[rules]\nwatch = \"1s\"").start().await?;
    scene.fence().await?.is_fenced();
    host.bmc.process().freeze();
    let unread = |node: &Node| node.power.is_some_and(|power| power.power() == Power::Unknown);
    scene.until("the silence is seen", Duration::from_secs(30), unread).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.node().await?.phase(), Phase::Released);
    host.bmc.process().thaw();
    let read = |node: &Node| node.power.is_some_and(|power| power.power() == Power::Off);
    let node = scene.until("it is read again", Duration::from_secs(30), read).await?;
    assert_eq!((node.phase(), node.breaches), (Phase::Released, 0));
    assert_eq!(host.power_events(), ["on", "off"]);
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    host.is_alive().await
}
