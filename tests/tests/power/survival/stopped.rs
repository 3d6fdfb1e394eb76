//! SIGSTOP of the daemon, for longer than its session at the BMC lives, at the points where a command or a release is
//! about to be sent, or was: it ends well, and nothing is let go wrongly.

use std::time::Duration;

use futures::StreamExt;
use picket_proto::v1::FenceCause;
use picket_tests::peers::eventually;
use picket_tests::{PeerError, Result};
use tokio::time::{sleep, timeout};

use crate::survival::ends::{End, end, never};
use crate::survival::scene::{STOP, Scene};

const LONGEST: Duration = Duration::from_secs(300);

/// Fences the node and brings it back, over a stop at this point. What was wrong.
async fn over_a_stop(point: &str, foreign_on: bool) -> Result<Vec<String>> {
    let mut scene = Scene::set("").await?;
    scene.foreign_on = foreign_on;
    match timeout(LONGEST, walk(&mut scene, point)).await {
        Ok(faults) => faults,
        Err(_elapsed) => {
            let what = format!("{point}: it comes to an end");
            Err(PeerError::TimedOut { what, within: LONGEST, seen: scene.gateway.log() })
        }
    }
}

async fn walk(scene: &mut Scene, point: &str) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    scene.begin(&[("PICKET_STOP_AT", point)]).await?;
    let mut fenced = scene.fence().await?;
    // A breach ends the fence that was asked for; whoever asks again joins the next one.
    let overtaken = fenced.code == 8;
    if overtaken {
        fenced =
            scene.survive(&["fence", "n1", "--yes", "--reason", "a breach", "--patience", "120s"]).await?;
    }
    if fenced.code != 0 || scene.bmc.is_on()? {
        faults.push(format!("fence: {fenced:?}"));
    }
    let back = scene.unfence().await?;
    if back.code != 0 {
        faults.push(format!("unfence: {back:?}"));
    }
    if scene.stops != 1 {
        faults.push(format!("it stopped {} times", scene.stops));
    }
    faults.extend(never(scene));
    let found = end(scene).await?;
    let mut right = End::right();
    if overtaken {
        right.fences[0].cause = FenceCause::Breach;
        let began = found.fences.get(1).is_some_and(|fence| fence.cause == FenceCause::Asked && fence.over);
        if found.fences.len() != 2 || !began || !scene.foreign_on {
            faults.push("overtaken, and not by one breach".to_owned());
        }
    }
    let found = End { fences: found.fences.into_iter().take(1).collect(), keys: found.keys.min(1), ..found };
    if found != right {
        faults.push(format!("{found:?}, right would be {right:?}"));
    }
    println!("stopped at {point}, switched on meanwhile: {}: overtaken: {overtaken}", scene.foreign_on);
    if !faults.is_empty() {
        faults.push(format!("what the BMC was told: {:?}", scene.bmc.commands()));
        faults.push(scene.gateway.log());
    }
    Ok(faults)
}

async fn all(points: &[&str], foreign_on: bool) {
    let walks = points.iter().map(|point| async move { (point, over_a_stop(point, foreign_on).await) });
    let mut running = futures::stream::iter(walks).buffer_unordered(points.len());
    let mut wrong = Vec::new();
    while let Some((point, faults)) = running.next().await {
        match faults {
            Ok(faults) if faults.is_empty() => {}
            Ok(faults) => wrong.push(format!("{point}: {}", faults.join("\n"))),
            Err(error) => wrong.push(format!("{point}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn longer_than_its_session_it_ends_well() {
    let points = [
        "saved hold_intent",
        "sending hold",
        "saved off_intent",
        "sending off",
        "sent off",
        "saved confirmed",
        "sending release",
        "sent release",
        "saved unfence",
        "sending unhold",
        "sending on",
        "sent on",
    ];
    all(&points, false).await;
}

/// The proof, the look and the permit are of before: none of them lets go of the volumes of a node that is on by now.
#[tokio::test]
async fn switched_on_meanwhile_nothing_is_released_before_it_is_off_again() {
    let points = [
        "sent off",
        "saving confirmed",
        "saved confirmed",
        "saved release_intent",
        "sending release",
        "sent release",
    ];
    all(&points, true).await;
}

/// The off is under way when the daemon is stopped, and its answer comes while nobody can hear it: it is no silence of
/// the BMC's, and its session, which ended by idleness, was not lost.
#[tokio::test]
async fn an_answer_that_came_while_it_stood_still_is_heard() -> Result<()> {
    let mut scene = Scene::set("").await?;
    let pause = scene.gateway.directory().join("paused");
    let file = pause.display().to_string();
    scene.begin(&[("PICKET_PAUSE_AT", "sending off"), ("PICKET_PAUSE_FILE", &file)]).await?;
    let mut caller =
        scene.gateway.command(&["fence", "n1", "--yes", "--reason", "a test", "--patience", "120s"])?;
    let caller = tokio::task::spawn_blocking(move || caller.output());
    eventually("the off is about to be sent", Duration::from_secs(60), || pause.exists()).await?;
    scene.bmc.process().freeze();
    std::fs::remove_file(&pause).map_err(PeerError::io("let the daemon go on"))?;
    // The off is on its way to a BMC that does not take it yet, and is repeated.
    sleep(Duration::from_millis(600)).await;
    scene.gateway.process()?.freeze();
    scene.bmc.process().thaw();
    let bmc = &scene.bmc;
    eventually("the BMC takes the off", Duration::from_secs(20), || bmc.is_on().is_ok_and(|on| !on)).await?;
    sleep(STOP).await;
    scene.gateway.process()?.thaw();
    let fenced = caller.await.expect("it ends").map_err(PeerError::io("run picket fence"))?;
    assert!(fenced.status.success(), "{fenced:?}\n{}", scene.gateway.log());
    // The BMC took each copy of the off; the one that seals the long window comes besides.
    scene.stops = 2;
    assert_eq!(never(&scene), Vec::<String>::new());
    let back = scene.unfence().await?;
    assert_eq!(back.code, 0, "{back:?}\n{}", scene.gateway.log());
    assert_eq!(end(&scene).await?, End::right());
    Ok(())
}
