//! A leader that is stopped exactly between permit and send, of an on and of a release attempt, and goes on when its successor has
//! gone on (S5 to S8): the on is waited out or comes to nothing, the attempt is a repetition or comes to nothing.

use std::time::{Duration, SystemTime};

use picket_tests::Result;
use picket_tests::peers::eventually;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use crate::hosts::caller::End;
use crate::hosts::scene::{IDLE_LIMIT, LEASE, PATIENCE, RECEIVER_PORT, Scene};
use crate::hosts::trouble::is_frozen;

/// The permit is asked twice for an on: when the call begins, and for its packet.
const ON: &str = "permitted on#2";
/// A release attempt's life: 60 s for the receiver, and 5 s for its clock.
const ATTEMPT: Duration = Duration::from_secs(65);

/// One machine; the leader stops itself there. Fenced, where `fenced` says so.
async fn scene(point: &str) -> Result<Scene> {
    Scene::start(&[("PICKET_STOP_AT", point)], &[Duration::ZERO]).await
}

/// Waits until the first leader stands still.
async fn stopped(scene: &mut Scene) -> Result<Instant> {
    let leader = &mut scene.gateways[0];
    eventually("the leader stops itself", PATIENCE, || is_frozen(leader)).await?;
    Ok(Instant::now())
}

/// Whether the machine was switched on since.
fn switched_on(scene: &Scene, since: SystemTime) -> bool {
    scene.nodes[0].machine.power_events().iter().any(|event| event.what == "on" && event.at > since)
}

/// What the receiver was asked, and what it did.
fn journal(scene: &Scene) -> Vec<Value> {
    let text = std::fs::read_to_string(scene.receiver.journal()).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Right: nothing that must never be, and each of so many fences let go once.
async fn right(scene: &Scene, releases: usize) -> Result<()> {
    let judged = scene.judged().await?;
    assert_eq!(judged.violations, Vec::<String>::new(), "{}", scene.logs());
    assert_eq!(judged.releases, releases, "{judged:?}\n{}", scene.logs());
    assert_eq!(scene.panics(), Vec::<String>::new());
    scene.agreed().await?;
    Ok(())
}

/// Fenced, and asked back; the leader stands still with the on in its hand. Asked to be fenced again by then.
async fn stopped_before_the_on() -> Result<(Scene, Instant, SystemTime)> {
    let mut scene = scene(ON).await?;
    let caller = scene.caller();
    assert_eq!(caller.fence("n1", "there").await?, End::Done, "{}", scene.logs());
    let since = SystemTime::now();
    let back = tokio::spawn(async move { caller.unfence("n1", "back").await });
    let at = stopped(&mut scene).await?;
    back.abort();
    assert!(!switched_on(&scene, since), "it stands before the packet");
    Ok((scene, at, since))
}

/// Within its session's life the on is not void: it comes, and the successor waits it out before an Off counts.
#[tokio::test]
async fn an_on_that_comes_late_is_waited_out() -> Result<()> {
    let (mut scene, at, since) = stopped_before_the_on().await?;
    let caller = scene.caller();
    let again = tokio::spawn(async move { caller.fence("n1", "again").await });
    // The successor leads by then, and has sent its own off.
    sleep_until(at + LEASE * 4).await;
    assert_eq!(journal(&scene).len(), 1, "an on is open: nothing is let go\n{}", scene.logs());
    scene.gateways[0].process()?.thaw();
    let nodes = &scene.nodes;
    let came = || nodes[0].machine.power_events().iter().any(|event| event.what == "on" && event.at > since);
    eventually("the late on is carried out", PATIENCE, came).await?;
    let fenced = again.await.expect("it ends")?;
    assert_eq!(fenced, End::Done, "{}", scene.logs());
    assert!(at.elapsed() >= IDLE_LIMIT, "it waited for the session's end: {:?}", at.elapsed());
    assert!(!scene.nodes[0].machine.lives());
    right(&scene, 2).await
}

/// When the session is over the BMC refuses it: nothing comes on that was proven off.
#[tokio::test]
async fn an_on_that_comes_after_its_session_comes_to_nothing() -> Result<()> {
    let (mut scene, at, since) = stopped_before_the_on().await?;
    let fenced = scene.caller().fence("n1", "again").await?;
    assert_eq!(fenced, End::Done, "{}", scene.logs());
    assert!(at.elapsed() >= IDLE_LIMIT, "it waited for the session's end: {:?}", at.elapsed());
    scene.gateways[0].process()?.thaw();
    scene.agreed().await?;
    sleep(LEASE).await;
    assert!(!switched_on(&scene, since), "{}", scene.logs());
    right(&scene, 2).await
}

/// The successor proves it anew, and lets go; what comes late, if it comes, is the same request, and lets nothing go.
#[tokio::test]
async fn an_attempt_that_goes_on_late_lets_nothing_go_that_was_not() -> Result<()> {
    let mut scene = scene("permitted release").await?;
    let caller = scene.caller();
    let asked = tokio::spawn(async move { caller.fence("n1", "there").await });
    let at = stopped(&mut scene).await?;
    assert!(journal(&scene).is_empty(), "it stands before the request");
    assert_eq!(asked.await.expect("it ends")?, End::Done, "{}", scene.logs());
    assert_eq!(journal(&scene).len(), 1);
    assert!(at.elapsed() < ATTEMPT, "the attempt's time is not over");
    scene.gateways[0].process()?.thaw();
    scene.agreed().await?;
    // It finds out that it leads no more, and drops what it was about to ask, or asks before it does.
    sleep(LEASE).await;
    repetitions(&journal(&scene));
    right(&scene, 1).await
}

/// All are the same request, and one of them let go.
fn repetitions(told: &[Value]) {
    println!("{} requests arrived", told.len());
    assert!(told.iter().all(|one| one["key"] == told[0]["key"]), "{told:?}");
    assert_eq!(told.iter().filter(|one| one["let_go"] == true).count(), 1, "{told:?}");
}

/// The request is sent, and lies before a receiver that stands still; so does its sender. It is carried out when the
/// successor has proven the node off once more, and has asked as well.
#[tokio::test]
async fn an_attempt_that_is_carried_out_late_finds_the_machine_off() -> Result<()> {
    let mut scene = scene("none").await?;
    scene.receiver.process().freeze();
    let caller = scene.caller();
    let asked = tokio::spawn(async move { caller.fence("n1", "there").await });
    let lies_there = || scene.network.host(3).has_unread(RECEIVER_PORT);
    eventually("the request lies before the receiver", PATIENCE, lies_there).await?;
    assert!(!scene.nodes[0].machine.lives(), "it was asked of a machine that lives");
    scene.gateways[0].process()?.freeze();
    sleep(LEASE * 5).await;
    assert_ne!(scene.leader().await?, 0);
    scene.receiver.process().thaw();
    assert_eq!(asked.await.expect("it ends")?, End::Done, "{}", scene.logs());
    let told = journal(&scene);
    assert!(told.len() > 1, "both asked: {told:?}\n{}", scene.logs());
    repetitions(&told);
    scene.gateways[0].process()?.thaw();
    right(&scene, 1).await
}

/// No on is sent while it may come; when the machine is back it never comes.
#[tokio::test]
async fn an_attempt_that_would_come_when_the_machine_is_back_comes_to_nothing() -> Result<()> {
    let mut scene = scene("permitted release").await?;
    let caller = scene.caller();
    let asked = tokio::spawn(async move { caller.fence("n1", "there").await });
    let at = stopped(&mut scene).await?;
    assert_eq!(asked.await.expect("it ends")?, End::Done, "{}", scene.logs());
    assert_eq!(scene.caller().unfence("n1", "back").await?, End::Done, "{}", scene.logs());
    assert!(at.elapsed() >= ATTEMPT, "an on while an attempt may come: {:?}", at.elapsed());
    scene.nodes[0].observer.wait_for(2, PATIENCE).await?;
    scene.gateways[0].process()?.thaw();
    scene.agreed().await?;
    sleep(LEASE).await;
    let told = journal(&scene);
    assert_eq!(told.iter().filter(|one| one["status"] == 200).count(), 1, "{told:?}");
    assert!(scene.nodes[0].machine.lives());
    right(&scene, 1).await
}
