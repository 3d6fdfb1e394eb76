//! Memory and idle processor time of many nodes, weighed in processes that did nothing before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use picket_core::rules::Rules;
use picket_fleet::room_for;
use tokio::task::JoinSet;

use crate::Wrong;
use crate::bmcs::Bmcs;
use crate::child::{self, Child};
use crate::options::Child as What;
use crate::race::cost;
use crate::race::farm::Farm;
use crate::race::goals::Goals;
use crate::race::line::Line;
use crate::race::ours::{each, subjects};
use crate::race::subject::Maker;

/// How long it is watched at rest.
const REST: Duration = Duration::from_secs(20);
/// How often a session is asked something, so that no BMC ends it: most real ones do after a minute.
const KEPT_WARM_BY: Duration = Duration::from_secs(45);
/// What so many may take.
const MOST: f64 = 100.0;

/// Prints what the nodes take, and judges it where they are as many as the goal says.
pub async fn nodes(bmcs: usize, goals: &mut Goals) -> Result<(), Wrong> {
    println!(
        "\nMEMORY AND REST of {bmcs} nodes with warm sessions; growth of the resident set, and {REST:?} of rest"
    );
    let farm = Bmcs::start(bmcs)?;
    for (load, what) in [
        (What::Drivers, "picket, drivers, each asked every 45 s"),
        (What::Engine, "picket, drivers, engine and embedded store"),
    ] {
        let began = Instant::now();
        let mut child = Child::start(&load, farm.addresses())?;
        let mib = child.heard()?.parse::<u64>()? as f64 / 1024.0 / 1024.0;
        let ready = began.elapsed();
        let (cpu, start) = (cost::family_cpu(child.id()), Instant::now());
        tokio::time::sleep(REST).await;
        let busy =
            cost::family_cpu(child.id()).saturating_sub(cpu).as_secs_f64() / start.elapsed().as_secs_f64();
        println!(
            "  {what:<44} {mib:>7.1} MiB, {:>5.1} KiB each; {:>5.2} % of a core at rest; ready after {:.1} s",
            mib * 1024.0 / bmcs as f64,
            busy * 100.0,
            ready.as_secs_f64(),
        );
        if bmcs >= 10_000 {
            goals.judge(
                format!("{bmcs} warm nodes, {what}: at most {MOST} MB: {mib:.1} MiB"),
                mib * 1.048_576 <= MOST,
            );
        }
    }
    Ok(())
}

/// A child: puts the load on, says by how many bytes it grew, and is at rest until the bench ends it.
pub async fn serve(load: &What) -> Result<(), Wrong> {
    let bmcs = child::addresses()?;
    room_for(bmcs.len())?;
    let before = cost::resident(std::process::id());
    let grown = || cost::resident(std::process::id()).saturating_sub(before).to_string();
    let maker = Arc::new(Maker::new()?);
    if *load == What::Engine {
        let line = Line::start(&maker, &bmcs, &Rules::default()).await?;
        child::say(&grown())?;
        while child::told()?.is_some() {}
        return line.end().await;
    }
    let subjects = subjects(&maker, &bmcs).await?;
    for ended in each(&subjects, |subject| async move { subject.look().await.map(drop) }).await? {
        ended?;
    }
    child::say(&grown())?;
    let mut warm = JoinSet::new();
    for (index, subject) in subjects.iter().enumerate() {
        let subject = subject.clone();
        let first = KEPT_WARM_BY.mul_f64(index as f64 / subjects.len() as f64);
        warm.spawn(async move {
            tokio::time::sleep(first).await;
            while subject.look().await.is_ok() {
                tokio::time::sleep(KEPT_WARM_BY).await;
            }
        });
    }
    while child::told()?.is_some() {}
    Ok(())
}
