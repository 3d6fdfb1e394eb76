//! `kill -9` of the daemon at every point of a fence and of an unfence: the same end, and nothing that must never be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use picket_tests::{Dice, PeerError, Result, soak};
use tokio::time::{Instant, timeout};

use crate::survival::ends::{End, end, history, never};
use crate::survival::scene::{POLICY, Scene};

/// So many gateways are killed side by side: each mostly waits for what its predecessor may have left under way.
const SIDE_BY_SIDE: usize = 24;
/// The longest waits are those for a release whose end is not known, 65 s, and for such an on, 126 s.
const LONGEST: Duration = Duration::from_secs(400);

/// Points that every fence and unfence goes through. One that is gone or has another name would be killed at no more.
const POINTS: [&str; 39] = [
    "saving learned",
    "saved learned",
    "saving fence",
    "saved fence",
    "saving hold_intent",
    "saved hold_intent",
    "sending hold",
    "sent hold",
    "saving hold_ended",
    "saved hold_ended",
    "saving off_intent",
    "saved off_intent",
    "sending off",
    "sent off",
    "saving confirmed",
    "saved confirmed",
    "saving release_intent",
    "saved release_intent",
    "sending release",
    "sent release",
    "saving release_progress",
    "saved release_progress",
    "saving unfence",
    "saved unfence",
    "sending close",
    "sent close",
    "saving closed",
    "saved closed",
    "saving unhold_intent",
    "saved unhold_intent",
    "sending unhold",
    "sent unhold",
    "saving unheld",
    "saved unheld",
    "saving on_intent",
    "saved on_intent",
    "sending on",
    "sent on",
    "saved back",
];

/// One fence and one unfence, told in a line.
#[derive(Debug)]
struct Told {
    end: End,
    faults: Vec<String>,
    line: String,
}

/// How daemons die.
#[derive(Debug, Default)]
struct Deaths {
    /// By their own hand, one after the other.
    at: Vec<String>,
    /// By another's, so long after the fence was asked for.
    after: Option<Duration>,
}

/// Fences the node and brings it back, over these deaths.
async fn there_and_back(name: &str, deaths: Deaths, variables: &[(&str, &str)]) -> Result<Told> {
    let mut scene = Scene::set("").await?;
    scene.fates = deaths.at.into();
    match timeout(LONGEST, walk(&mut scene, deaths.after, variables)).await {
        Ok(walked) => {
            let mut told = walked?;
            let offs = scene.bmc.commands().iter().filter(|command| command.what == "off").count();
            let ons = scene.bmc.commands().len() - offs;
            let phase = scene.deaths.iter().map(|death| death.phase.as_str()).collect::<Vec<_>>().join(", ");
            let releases = scene.webhook.releases().len();
            told.line = format!(
                "{name:<26} died in [{phase:<9}] {offs} off {ons} on {releases} release, {}",
                told.line
            );
            if !told.faults.is_empty() {
                told.faults.push(scene.gateway.log());
            }
            Ok(told)
        }
        Err(_elapsed) => {
            let seen = scene.gateway.log();
            Err(PeerError::TimedOut { what: format!("{name}: it comes to an end"), within: LONGEST, seen })
        }
    }
}

async fn walk(scene: &mut Scene, kill: Option<Duration>, variables: &[(&str, &str)]) -> Result<Told> {
    let mut faults = Vec::new();
    scene.begin(variables).await?;
    let began = Instant::now();
    scene.kill_at = kill.map(|after| began + after);
    let fenced = scene.fence().await?;
    let dark = began.elapsed();
    if fenced.code != 0 || scene.bmc.is_on()? || scene.webhook.releases().is_empty() {
        faults.push(format!("fence: {fenced:?}, {} releases", scene.webhook.releases().len()));
    }
    if scene.bmc.hold()?.get("policy") == POLICY {
        faults.push("fenced, and the BMC was not told to stay off".to_owned());
    }
    let began = Instant::now();
    let back = scene.unfence().await?;
    if back.code != 0 {
        faults.push(format!("unfence: {back:?}"));
    }
    let line =
        format!("fenced in {:.1} s, back in {:.1} s", dark.as_secs_f64(), began.elapsed().as_secs_f64());
    // Killed at its very last point, it has nothing more to do for this caller, and a last time to start.
    scene.survive(&["nodes"]).await?;
    faults.extend(never(scene));
    faults.extend(history(scene).await?);
    if scene.gateway.log().contains("panicked") {
        faults.push("it panicked".to_owned());
    }
    Ok(Told { end: end(scene).await?, faults, line })
}

/// The points that an undisturbed fence and unfence go through, each with the how-many-eth time.
async fn undisturbed() -> Result<Vec<String>> {
    let directory = tempfile::tempdir().map_err(PeerError::io("create a directory for points"))?;
    let file = directory.path().join("points");
    let told =
        there_and_back("undisturbed", Deaths::default(), &[("PICKET_POINTS", &file.display().to_string())])
            .await?;
    assert_eq!(told.faults, Vec::<String>::new());
    assert_eq!(told.end, End::right());
    println!("{}", told.line);
    let noted = std::fs::read_to_string(&file).map_err(PeerError::io("read the points"))?;
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    let points = noted.lines().map(|point| {
        let time = times.entry(point).or_default();
        *time += 1;
        format!("{point}#{time}")
    });
    Ok(points.collect())
}

/// Runs each, tells a line each, and fails with all that was wrong.
async fn all(deaths: impl Iterator<Item = (String, Deaths)>) {
    let (right, mut wrong) = (End::right(), Vec::new());
    let walks = deaths.map(|(name, deaths)| async move {
        let told = there_and_back(&name, deaths, &[]).await;
        (name, told)
    });
    let mut running = futures::stream::iter(walks).buffer_unordered(SIDE_BY_SIDE);
    while let Some((name, told)) = running.next().await {
        match told {
            Ok(told) => {
                println!("{}", told.line);
                if !told.faults.is_empty() || told.end != right {
                    wrong.push(format!("{name}: {:?}\n{}", told.end, told.faults.join("\n")));
                }
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "right would be {right:?}, and {} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

#[tokio::test]
async fn at_every_point_it_comes_to_the_same_end() -> Result<()> {
    let points = undisturbed().await?;
    let names: BTreeSet<&str> =
        points.iter().filter_map(|point| point.split_once('#')).map(|(name, _)| name).collect();
    let gone: Vec<_> = POINTS.iter().filter(|point| !names.contains(*point)).collect();
    assert!(gone.is_empty(), "{gone:?} are gone from {names:?}");
    println!("{} points, {} of them named otherwise", points.len(), names.len());
    let kill = |point: String| (point.clone(), Deaths { at: vec![point], after: None });
    all(points.into_iter().map(kill)).await;
    Ok(())
}

/// At moments that no point names: within a write, between two packets.
#[tokio::test]
async fn at_any_moment_it_comes_to_the_same_end() -> Result<()> {
    let mut dice = Dice::of("killed at any moment");
    let deaths = (0..if soak() { 48 } else { 8 }).map(|_| {
        let after = dice.time(Duration::from_secs(6)) + Duration::from_micros(dice.throw(1_000));
        (format!("after {after:?}"), Deaths { at: Vec::new(), after: Some(after) })
    });
    all(deaths).await;
    Ok(())
}

/// The successor dies too, and its successor.
#[tokio::test]
async fn again_and_again_it_comes_to_the_same_end() -> Result<()> {
    let mut dice = Dice::of("killed again and again");
    let points = undisturbed().await?;
    let deaths = (0..if soak() { 48 } else { 4 }).map(|_| {
        let mut point = || format!("*#{}", 1 + dice.throw(points.len() as u64 / 2));
        let at = vec![point(), point(), point()];
        (at.join(", "), Deaths { at, after: None })
    });
    all(deaths).await;
    Ok(())
}
