//! Memory and idle processor time of many nodes, weighed in processes that did nothing before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use picket_core::rules::Rules;
use picket_driver::{Call, PowerDriver};
use picket_driver_ipmi::IpmiDriver;
use picket_fleet::room_for;

use crate::Wrong;
use crate::bmcs::Bmcs;
use crate::child::{self, Child};
use crate::options::Child as What;
use crate::race::cost;
use crate::race::farm::Farm;
use crate::race::goals::Goals;
use crate::race::line::Line;
use crate::race::subject::Maker;

/// How long it is watched at rest.
const REST: Duration = Duration::from_secs(20);
/// How often a session is asked something, so that no BMC ends it: most real ones do after a minute.
const KEPT_WARM_BY: Duration = Duration::from_secs(45);
/// How many are asked at once in the beginning, as the engine does it.
const SIDE_BY_SIDE: usize = 64;
/// How long one question may take.
const LOOK: Duration = Duration::from_secs(5);
/// What ten thousand may take, in MB.
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
    let drivers = bmcs.iter().map(|bmc| maker.driver(*bmc, "operator")).collect::<Result<Vec<_>, _>>()?;
    let clock = maker.context().clock.clone();
    let look = |driver: Arc<IpmiDriver>| {
        let call = Call::reading(tokio::time::Instant::now() + LOOK, clock.clone());
        async move { driver.read_power(&call).await }
    };
    let mut looks = stream::iter(drivers.iter().cloned()).map(look).buffer_unordered(SIDE_BY_SIDE);
    while let Some(looked) = looks.next().await {
        looked?;
    }
    drop(looks);
    child::say(&grown())?;
    let pause = KEPT_WARM_BY / u32::try_from(drivers.len())?;
    let keep = async {
        for driver in drivers.iter().cycle() {
            tokio::time::sleep(pause).await;
            if let Err(error) = look(driver.clone()).await {
                eprintln!("a session was not kept warm: {error}");
            }
        }
    };
    let told = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    tokio::select! {
        biased;
        ended = told => ended?.map(drop).map_err(Wrong::from),
        () = keep => Ok(()),
    }
}
