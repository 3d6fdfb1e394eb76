//! One run: two machines fenced, one of them brought back and fenced again, whatever happens meanwhile; and what came of it.

use std::time::{Duration, SystemTime};

use picket_tests::peers::Verdict;
use picket_tests::{Dice, PeerError, Result};
use tokio::time::{Instant, sleep, timeout};

use crate::hosts::caller::{Caller, End};
use crate::hosts::plan::Plan;
use crate::hosts::scene::{LEASE, Scene};
use crate::hosts::trouble::{Met, Trouble};

/// No run takes longer.
const LONGEST: Duration = Duration::from_secs(900);

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// What must never be; empty: it was right.
    pub faults: Vec<String>,
    pub verdict: Verdict,
    pub met: Vec<Met>,
    /// How each request ended.
    pub ends: Vec<(String, End)>,
    /// From the loss of a leader to the next call of another one to a device.
    pub takeovers: Vec<Takeover>,
    pub wall: Duration,
    /// What the gateways logged, where something was wrong.
    pub logs: String,
}

/// How long it took until another gateway acted.
#[derive(Clone, Debug)]
pub struct Takeover {
    pub what: String,
    pub time: Duration,
    /// Whether nothing else was wrong meanwhile.
    pub alone: bool,
}

impl Takeover {
    /// The longest that it may take, where nothing else is wrong.
    pub fn bound(&self) -> Duration {
        if self.what.contains("etcd") {
            LEASE * 2 + Duration::from_secs(3)
        } else {
            LEASE + Duration::from_millis(2_500)
        }
    }
}

/// Makes the run.
pub async fn run(plan: &Plan, dice: Dice) -> Result<Report> {
    let began = Instant::now();
    let mut report = timeout(LONGEST, walk(plan, dice)).await.map_err(|_elapsed| PeerError::TimedOut {
        what: format!("a run ends: {plan:?}"),
        within: LONGEST,
        seen: String::new(),
    })??;
    report.wall = began.elapsed();
    Ok(report)
}

async fn walk(plan: &Plan, dice: Dice) -> Result<Report> {
    let variables: Vec<(&str, &str)> =
        plan.variables.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut scene = Scene::start(&variables, &plan.falls).await?;
    let caller = scene.caller();
    let mut trouble = Trouble::new(plan, dice);
    let told = {
        let story = story(&caller, plan.second);
        tokio::pin!(story);
        loop {
            tokio::select! {
                biased;
                told = &mut story => break told,
                stepped = trouble.step(&mut scene) => stepped?,
            }
        }
    };
    trouble.heal(&mut scene).await?;
    let mut report = Report::default();
    match told {
        Ok(ends) => report.ends = ends,
        Err(error) => report.faults.push(format!("{error}")),
    }
    if let Err(error) = scene.agreed().await {
        report.faults.push(format!("{error}"));
    }
    report.verdict = scene.judged().await?;
    report.faults.extend(report.verdict.violations.iter().cloned());
    report.faults.extend(scene.panics());
    report.faults.extend(ends_wrong(&scene, &report));
    report.takeovers = takeovers(&scene, &trouble.met);
    report.met = trouble.met;
    if !report.faults.is_empty() {
        report.logs = format!("{}\n{}", scene.logs(), notes(&scene));
    }
    Ok(report)
}

/// The first machine there, back, and there again; the second one there.
async fn story(caller: &Caller, second: Duration) -> Result<Vec<(String, End)>> {
    let first = async {
        let mut ends = Vec::new();
        for (what, key) in [("fence", "there"), ("unfence", "back"), ("fence", "again")] {
            let end = match what {
                "fence" => caller.fence("n1", key).await?,
                _ => caller.unfence("n1", key).await?,
            };
            let on = end == End::Done;
            ends.push((format!("n1 {key}"), end));
            if !on {
                break;
            }
        }
        Ok(ends)
    };
    let second = async {
        sleep(second).await;
        Ok::<_, PeerError>(("n2 there".to_owned(), caller.fence("n2", "there").await?))
    };
    let (mut ends, last) = tokio::try_join!(first, second)?;
    ends.push(last);
    Ok(ends)
}

/// What is fenced is dark, and its volumes were let go once for each fence.
fn ends_wrong(scene: &Scene, report: &Report) -> Vec<String> {
    let mut wrong = Vec::new();
    let done = |what: &str| report.ends.iter().any(|(name, end)| name == what && *end == End::Done);
    for (n, what) in [(0, "n1 again"), (1, "n2 there")] {
        if done(what) && scene.nodes[n].machine.lives() {
            wrong.push(format!("{what} ended well, and the machine lives"));
        }
    }
    let fences = ["n1 there", "n1 again", "n2 there"].into_iter().filter(|what| done(what)).count();
    if report.verdict.releases < fences {
        wrong.push(format!("{fences} fences ended well, and {} releases were", report.verdict.releases));
    }
    if report.verdict.beats == 0 {
        wrong.push("no heartbeat was seen at all".to_owned());
    }
    wrong
}

/// When another gateway called a device first, after one that led was taken away.
fn takeovers(scene: &Scene, met: &[Met]) -> Vec<Takeover> {
    let calls = scene.calls.all();
    let one = |which: usize| {
        let lost = &met[which];
        let deposed = lost.deposed?;
        let next = calls.iter().find(|call| call.at > lost.from && call.from != deposed)?.at;
        let ended = |other: &Met| other.to.unwrap_or_else(SystemTime::now);
        // A misfortune that is just over has effects still.
        let near = |other: &Met| other.from < next && ended(other) + Duration::from_secs(8) > lost.from;
        let alone = !met.iter().enumerate().any(|(n, other)| n != which && near(other));
        let time = next.duration_since(lost.from).unwrap_or_default();
        Some(Takeover { what: lost.what.clone(), time, alone })
    };
    (0..met.len()).filter_map(one).collect()
}

/// The journals, for a person.
fn notes(scene: &Scene) -> String {
    let mut text = String::new();
    let mut add = |name: &str, path: &std::path::Path| {
        text += &format!("--- {name}\n{}", std::fs::read_to_string(path).unwrap_or_default());
    };
    add("asked", &scene.caller().asked());
    add("releases", &scene.receiver.journal());
    for node in &scene.nodes {
        add(&format!("power of {}", node.name), &node.machine.power_log());
    }
    text
}
