//! One crowd's races: the status of all, and a confirmed off of all.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use picket_core::rules::Rules;

use crate::Wrong;
use crate::bmcs::Bmcs;
use crate::options::Crowd;
use crate::race::contest::{Beside, Contestant, Deed, Rounds, Score, against, compete, print};
use crate::race::farm::Farm;
use crate::race::floor::Floor;
use crate::race::goals::Goals;
use crate::race::line::Line;
use crate::race::ours::{self, Ours, Start};
use crate::race::powerman::{IPMIPOWER, Ipmipower, POWERMAN, Powerman};
use crate::race::series::{Dice, millis, ratio};
use crate::race::subject::Maker;

/// What ipmipower's rate is to be exceeded by.
const FASTER: f64 = 3.0;
/// How near to the floor it is to be.
const NEAR: f64 = 1.2;
/// Processor time for one operation, in microseconds.
const CPU_US: f64 = 100.0;

/// With or without sessions, whoever comes with them is compared with the floor that does.
fn floor_of(name: &str) -> &'static str {
    if name.ends_with("warm") { Floor::WARM } else { Floor::COLD }
}

const COLUMNS: [Beside; 3] = [
    Beside { head: "x ipmipower", whom: |_| IPMIPOWER },
    Beside { head: "x powerman", whom: |_| POWERMAN },
    Beside { head: "x floor", whom: floor_of },
];

/// What a crowd's races came to.
pub struct Raced {
    /// BMCs.
    pub bmcs: usize,
    /// What was done.
    pub deed: Deed,
    /// By whom.
    pub scores: Vec<Score>,
}

/// Both races.
pub async fn race(crowd: Crowd, seed: u64, goals: &mut Goals) -> Result<Vec<Raced>, Wrong> {
    let Crowd { bmcs, rounds } = crowd;
    println!("\n{bmcs} AT ONCE; {rounds} rounds; picket: {} side by side", bmcs.min(ours::SIDE_BY_SIDE));
    let farm = Bmcs::start(bmcs)?;
    let subjects = ours::subjects(&Arc::new(Maker::new()?), farm.addresses()).await?;
    let ours = |start| Box::new(Ours::new(start, subjects.clone()));
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        ours(Start::Warm),
        ours(Start::ColdAndClosed),
        Box::new(Floor::new(true, farm.addresses().to_vec())),
        Box::new(Floor::new(false, farm.addresses().to_vec())),
        Box::new(Ipmipower::new(&farm)),
    ];
    let deeds = [Deed::Status, Deed::Off];
    let rounds = Rounds { counted: rounds, warm_up: bmcs < 10_000 };
    let mut all = Vec::new();
    for deed in deeds {
        all.push(compete(&farm, &mut contestants, deed, rounds, &mut Dice(seed)).await?);
    }
    // Its ipmipower asks all BMCs again and again whether they are there: it would disturb the others.
    match Powerman::start(&farm).await {
        Ok(powerman) => {
            let mut alone: Vec<Box<dyn Contestant>> = vec![Box::new(powerman)];
            for (deed, scores) in deeds.into_iter().zip(&mut all) {
                scores.extend(compete(&farm, &mut alone, deed, rounds, &mut Dice(seed)).await?);
            }
        }
        Err(why) => println!("  powerman cannot do it: {why}"),
    }
    let mut raced = Vec::new();
    for (deed, scores) in deeds.into_iter().zip(all) {
        let what = match deed {
            Deed::Status => format!("status of {bmcs}"),
            Deed::Off => format!("off of {bmcs}"),
        };
        match deed {
            Deed::Status => println!("  STATUS"),
            Deed::Off => println!("  OFF, confirmed by one reading, no dwell"),
        }
        print(&scores, bmcs, &COLUMNS);
        judge(&scores, bmcs, &what, goals);
        raced.push(Raced { bmcs, deed, scores });
    }
    Ok(raced)
}

fn judge(scores: &[Score], bmcs: usize, what: &str, goals: &mut Goals) {
    let (warm, cold) = (Start::Warm.name(), Start::ColdAndClosed.name());
    against(scores, what, (warm, Floor::WARM), NEAR, goals);
    against(scores, what, (cold, Floor::COLD), NEAR, goals);
    let done = |name| scores.iter().find(|score| score.name == name && score.times.len() > 0);
    if let Some(powerman) = done(POWERMAN) {
        against(scores, what, (warm, powerman.name), 1.0, goals);
    }
    if bmcs >= 1_000 {
        match (done(cold), done(IPMIPOWER), done(Floor::COLD)) {
            (Some(ours), Some(theirs), Some(floor)) => {
                let rate = |score: &Score| bmcs as f64 / score.times.median().as_secs_f64().max(1e-9);
                let allows =
                    if rate(floor) < FASTER * rate(theirs) { ", more than the floor allows" } else { "" };
                goals.judge(
                    format!(
                        "{what}: {cold}: at least {FASTER} x the rate of {IPMIPOWER}{allows}: {:.0} and {:.0} a second, {:.1} x",
                        rate(ours),
                        rate(theirs),
                        rate(ours) / rate(theirs)
                    ),
                    rate(ours) >= FASTER * rate(theirs),
                );
            }
            (Some(_), None, _) => println!("  {IPMIPOWER} never did it: {what} cannot be compared with it"),
            _ => goals.judge(format!("{what}: {cold} never did it"), false),
        }
    }
    for name in [warm, cold] {
        if let Some(score) = done(name) {
            let each = score.cpu_each(bmcs);
            let floor = done(floor_of(name)).map_or(0.0, |floor| floor.cpu_each(bmcs));
            goals.judge(
                format!("{what}: {name}: at most {CPU_US:.0} us of processor time each: {each:.0} us (the floor {floor:.0})"),
                each <= CPU_US,
            );
        }
    }
}

/// What the engine takes by the shipped rules, of which the race knows nothing.
pub async fn as_shipped(bmcs: usize) -> Result<(), Wrong> {
    let rules = Rules::default();
    println!(
        "\nBESIDE: {bmcs} FENCED AT ONCE by the engine over the embedded store, as shipped: readings {}, dwell {:?}",
        rules.readings, rules.dwell
    );
    let farm = Bmcs::start(bmcs)?;
    let line = Line::start(&Maker::new()?, farm.addresses(), &rules).await?;
    let start = std::time::Instant::now();
    let all = try_join_all(line.nodes.iter().map(|node| line.fence(node))).await?;
    let whole = start.elapsed();
    farm.must_be_off("the engine")?;
    let dwell = all.iter().map(|took| took.dwell).min().unwrap_or_default();
    let without: Duration = whole.saturating_sub(dwell);
    println!(
        "  all confirmed after {} ms; without the dwell {} ms, {:.0} fences a second",
        millis(whole),
        millis(without),
        bmcs as f64 * ratio(Duration::from_secs(1), without)
    );
    line.end().await
}
