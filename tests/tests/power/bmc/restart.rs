//! BMCs that restart in the middle of a fence, and what their Off is worth then (S2).

use std::time::Duration;

use picket_proto::v1::{Grade, OutcomeKind, Phase, Reason};
use picket_tests::peers::{ADMIN, Bmc17, IpmiSim, Ipmitool, PowerWord};
use picket_tests::{Answer, Bmc, Result};

use crate::bmc::host::{Host, as_child, by_script};
use crate::bmc::scene::{Plan, Scene, Told};

/// Fences, and restarts the BMC where the daemon stops.
async fn restart_at_the_point(scene: &Scene, bmc: &mut IpmiSim) -> Result<Told> {
    let (told, ()) = tokio::try_join!(scene.fence(), async {
        scene.until_paused().await?;
        bmc.process().kill();
        bmc.start_again().await?;
        scene.go_on()
    })?;
    Ok(told)
}

/// The restarted BMC has lost its machine: it says off, to everybody, and the machine lives.
async fn lies_since_its_restart(host: &Host) -> Result<()> {
    assert_eq!(Ipmitool::new(host.bmc.address()).power().await?, PowerWord::Off);
    host.is_alive().await
}

/// Whatever is tried, it is never confirmed and never released.
async fn never_confirmed(point: &str) -> Result<(Host, Scene)> {
    let mut host = Host::on(as_child).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).pausing(point).start().await?;
    // One that was slow to answer the check after the start has no session of it any more, and what restarts before it has one is
    // believed: that remains.
    let checked = scene.gateway.picket(&["check"]).await?;
    assert_eq!(checked.code, 0, "a session is open: {checked:?}");
    let left = restart_at_the_point(&scene, &mut host.bmc).await?;
    left.tell(&format!("restarted at {point:?}, lies"));
    left.needs_operator(Reason::BmcRestarted);
    lies_since_its_restart(&host).await?;
    scene.never_released().await;
    // A person who tries again gets the same answer, and so does a new process.
    scene.retry().await?.needs_operator(Reason::BmcRestarted);
    assert_eq!(scene.fences().await?.remove(0).lost_sessions, ["bmc"]);
    host.is_alive().await?;
    scene.never_released().await;
    Ok((host, scene))
}

#[tokio::test]
async fn a_lying_bmc_that_restarts_before_the_hold_is_never_believed() -> Result<()> {
    never_confirmed("sending hold").await.map(drop)
}

/// Until a person pulls the plug and says so: the command is the one that the last line names.
#[tokio::test]
async fn a_lying_bmc_that_restarts_before_the_off_is_believed_by_the_word_of_who_pulled_the_plug_alone()
-> Result<()> {
    let (host, scene) = never_confirmed("sending off").await?;
    let retried = scene.gateway.picket(&["retry", "n1", "--yes", "--reason", "a test"]).await?;
    let next = "if it is off: picket retry n1 --seen-off --reason ...";
    assert!(retried.code == 4 && format!("{retried:?}").contains(next), "{retried:?}");
    host.machine.force(false).await?;
    let seen = ["retry", "n1", "--seen-off", "--yes", "--reason", "the plug is pulled", "--timeout", "170s"];
    let fenced = scene.gateway.picket(&seen).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", scene.gateway.log());
    let evidence = scene.fences().await?.remove(0).evidence.unwrap_or_default();
    assert_eq!(evidence.grade(), Grade::Claimed);
    assert!(fenced.out.contains("bmc: it restarted, and a person looked at the machine"), "{fenced:?}");
    assert!(!host.machine.lives());
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_lying_bmc_that_restarts_while_the_intent_is_stored_is_never_believed() -> Result<()> {
    never_confirmed("saved fence").await.map(drop)
}

#[tokio::test]
async fn a_lying_bmc_that_restarted_under_a_session_of_the_gateway_is_never_believed() -> Result<()> {
    let mut host = Host::on(as_child).await?;
    let bmc = Bmc::at(host.bmc.address());
    let mut scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).start().await?;
    // One that was slow to answer the check after the start has no session of it any more.
    let checked = scene.gateway.picket(&["check"]).await?;
    assert_eq!(checked.code, 0, "a session is open: {checked:?}");
    host.bmc.process().kill();
    host.bmc.start_again().await?;
    let left = scene.fence().await?;
    left.tell("restarted after the check, lies");
    left.needs_operator(Reason::BmcRestarted);
    lies_since_its_restart(&host).await?;
    scene.never_released().await;

    // A loss is stored, and binds the next process.
    scene.gateway.kill();
    scene.gateway.begin(&[]).await?;
    scene.retry().await?.needs_operator(Reason::BmcRestarted);
    host.is_alive().await?;
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn a_restarted_bmc_that_says_on_and_falls_is_believed() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).pausing("sending off").start().await?;
    let fenced = restart_at_the_point(&scene, &mut host.bmc).await?;
    fenced.tell("restarted before the off, says On");
    fenced.is_fenced().dead_since(&host.observer).await;
    assert_eq!(scene.fences().await?.remove(0).lost_sessions, ["bmc"]);
    assert_eq!(host.power_events(), ["on", "off"]);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn so_is_the_other_bmc_with_suite_17() -> Result<()> {
    let mut bmc = Bmc17::with_suites("17").await?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))])
        .pausing("sending off")
        .start()
        .await?;
    let (fenced, ()) = tokio::try_join!(scene.fence(), async {
        scene.until_paused().await?;
        bmc.start_again().await?;
        scene.go_on()
    })?;
    fenced.tell("bmc17, restarted before the off");
    fenced.is_fenced();
    assert_eq!(scene.fences().await?.remove(0).lost_sessions, ["bmc"]);
    scene.released_while_off(1);
    Ok(())
}

/// Restarted after the fall it says off, and that is true; nobody but a person can know.
#[tokio::test]
async fn a_bmc_that_restarts_between_the_fall_and_the_release_wants_a_person() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).pausing("saving confirmed").start().await?;
    let left = restart_at_the_point(&scene, &mut host.bmc).await?;
    left.tell("restarted after the proof");
    let outcome = left.outcome();
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, Reason::BmcRestarted));
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn where_its_settings_trust_it_the_long_dwell_and_a_lower_grade_do() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address()).with("trust_after_restart = \"30s\"");
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).pausing("saving confirmed").start().await?;
    let fenced = restart_at_the_point(&scene, &mut host.bmc).await?;
    fenced.tell("restarted after the proof, trusted");
    assert_eq!(fenced.is_fenced().evidence().grade(), Grade::Claimed);
    assert!(fenced.took >= Duration::from_secs(30), "{:?}", fenced.took);
    fenced.dead_since(&host.observer).await;
    scene.released_while_off(1);
    Ok(())
}

/// A release that was accepted and is not complete when the BMC restarts: it is not asked for again without a proof.
#[tokio::test]
async fn a_bmc_that_restarts_while_a_release_is_under_way() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).start().await?;
    scene.webhook.answer(Answer::Status(503));
    let (left, ()) = tokio::try_join!(scene.fence(), async {
        scene.webhook.wait_for(1, Duration::from_secs(60)).await?;
        host.bmc.process().kill();
        host.bmc.start_again().await
    })?;
    left.tell("restarted while a release was under way");
    let outcome = left.outcome();
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, Reason::BmcRestarted));
    assert_eq!(scene.node().await?.phase(), Phase::NeedsOperator);
    let asked = scene.webhook.releases().len();
    tokio::time::sleep(Duration::from_secs(4)).await;
    scene.released_while_off(asked);
    Ok(())
}

/// The sessions that carried the off are gone with the BMC's old life: that is seen, and not waited for.
#[tokio::test]
async fn a_node_comes_back_through_a_bmc_that_restarted_while_it_was_fenced() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).start().await?;
    scene.fence().await?.is_fenced();
    host.bmc.process().kill();
    host.bmc.start_again().await?;
    let back = scene.unfence().await?;
    back.tell("restarted while fenced, brought back");
    back.is_back();
    assert!(back.took < Duration::from_secs(100), "the idle limit was not waited out: {:?}", back.took);
    host.is_alive().await?;
    assert_eq!(host.power_events(), ["on", "off", "on"]);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_node_comes_back_through_a_bmc_that_restarts_just_before_the_on() -> Result<()> {
    let mut host = Host::on(by_script).await?;
    let bmc = Bmc::at(host.bmc.address());
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).pausing("sending on").start().await?;
    scene.fence().await?.is_fenced();
    let (back, ()) = tokio::try_join!(scene.unfence(), async {
        scene.until_paused().await?;
        host.bmc.process().kill();
        host.bmc.start_again().await?;
        scene.go_on()
    })?;
    back.tell("restarted just before the on");
    back.is_back();
    host.is_alive().await?;
    assert_eq!(host.power_events(), ["on", "off", "on"]);
    scene.released_while_off(1);
    Ok(())
}
