//! The first leader dies or stops at a named step.

use std::collections::BTreeMap;

use futures::StreamExt;
use picket_tests::{Dice, PeerError, Result, soak};

use crate::hosts::figures::Sums;
use crate::hosts::plan::Plan;
use crate::hosts::random::{number, side_by_side};
use crate::hosts::run::run;

/// What CI tries. Three kills more are those of `tests/ha`.
const FEW: [(&str, &str); 6] = [
    ("PICKET_KILL_AT", "saved on_intent"),
    ("PICKET_KILL_AT", "permitted release"),
    ("PICKET_KILL_AT", "sent on"),
    ("PICKET_STOP_AT", "sending off"),
    ("PICKET_STOP_AT", "saved confirmed"),
    ("PICKET_STOP_AT", "saved unfence"),
];

/// The points that an undisturbed run goes through, each with the how-many-eth time.
async fn undisturbed() -> Result<Vec<String>> {
    let directory = tempfile::tempdir().map_err(PeerError::io("create a directory for points"))?;
    let file = directory.path().join("points");
    let plan = Plan { variables: vec![("PICKET_POINTS", file.display().to_string())], ..Plan::calm() };
    let report = run(&plan, Dice::by(0)).await?;
    assert_eq!(report.faults, Vec::<String>::new(), "{}", report.logs);
    assert_eq!((report.verdict.releases, report.verdict.repeated), (3, 0), "{:?}", report.verdict);
    let noted = std::fs::read_to_string(&file).map_err(PeerError::io("read the points"))?;
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    let points = noted.lines().map(|point| {
        let time = times.entry(point).or_default();
        *time += 1;
        format!("{point}#{time}")
    });
    // What a first look teaches is stored before the scene stands, and nobody would let the leader go on who stops there:
    // `tests/survival` has those.
    Ok(points.filter(|point| !point.contains(" learned")).collect())
}

/// Every named step in a soak (`PICKET_SKIP`: without the first so many), or so many of them, evenly, as `PICKET_RUNS` says; a few
/// of them else.
#[tokio::test]
async fn a_leader_that_dies_or_stops_at_a_named_step() -> Result<()> {
    let points = undisturbed().await?;
    let gone: Vec<_> = FEW.iter().filter(|(_, few)| !points.contains(&format!("{few}#1"))).collect();
    assert!(gone.is_empty(), "{gone:?} are gone from {points:?}");
    let fates: Vec<(&str, String)> = match soak() {
        true => points
            .iter()
            .flat_map(|point| [("PICKET_KILL_AT", point.clone()), ("PICKET_STOP_AT", point.clone())])
            .collect(),
        false => FEW.iter().map(|(what, point)| (*what, (*point).to_owned())).collect(),
    };
    let wanted =
        number("PICKET_RUNS").and_then(|runs| usize::try_from(runs).ok()).unwrap_or(usize::MAX).max(1);
    let skipped = number("PICKET_SKIP").and_then(|skip| usize::try_from(skip).ok()).unwrap_or_default();
    let every = fates.len().div_ceil(wanted);
    println!(
        "{} points; {} fates, one in {every} of them but the first {skipped}",
        points.len(),
        fates.len()
    );
    let runs =
        (1..).zip(fates.into_iter().step_by(every)).skip(skipped).map(|(seed, (what, point))| async move {
            let plan = Plan { variables: vec![(what, point.clone())], ..Plan::calm() };
            let report = run(&plan, Dice::by(seed)).await;
            (format!("{what}={point:?}"), report)
        });
    let mut running = futures::stream::iter(runs).buffer_unordered(side_by_side());
    let (mut sums, mut wrong) = (Sums::default(), Vec::new());
    while let Some((name, report)) = running.next().await {
        match report {
            Ok(report) => {
                sums.add(&report);
                println!("{name}: {:.0} s, met {}", report.wall.as_secs_f64(), report.met.len());
                if !report.faults.is_empty() {
                    wrong.push(format!("{name}: {}\n{}", report.faults.join("\n"), report.logs));
                }
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    println!("{}", sums.told());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}
