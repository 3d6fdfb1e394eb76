//! Memory and idle processor time of the drivers alone, weighed in a process that did nothing before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use picket_driver::{Call, PowerDriver};
use picket_driver_ipmi::IpmiDriver;
use picket_fleet::room_for;

use crate::Wrong;
use crate::bmcs::Bmcs;
use crate::child::{self, Child};
use crate::options::Child as What;
use crate::race::cost;
use crate::race::farm::Farm;
use crate::race::subject::Maker;

/// How long it is watched at rest.
const REST: Duration = Duration::from_secs(10);
/// How often a session is asked something, so that no BMC ends it: most real ones do after a minute.
const KEPT_WARM_BY: Duration = Duration::from_secs(45);
/// How many are asked at once in the beginning, as the engine does it.
const SIDE_BY_SIDE: usize = 64;
/// How long one question may take.
const LOOK: Duration = Duration::from_secs(5);

/// Prints what drivers with warm sessions take.
pub async fn drivers(bmcs: usize) -> Result<(), Wrong> {
    println!("\n{bmcs} IPMI DRIVERS ALONE, each with its session, each asked every {KEPT_WARM_BY:?}");
    let farm = Bmcs::start(bmcs)?;
    let began = Instant::now();
    let mut child = Child::start(&What::Drivers, farm.addresses())?;
    let mb = child.heard()?.parse::<u64>()? as f64 / 1e6;
    let ready = began.elapsed();
    let (cpu, start) = (cost::family_cpu(child.id()), Instant::now());
    tokio::time::sleep(REST).await;
    let busy = cost::family_cpu(child.id()).saturating_sub(cpu).as_secs_f64() / start.elapsed().as_secs_f64();
    println!(
        "  the resident set grew by {mb:.1} MB, {:.1} KB each; {:.2} % of a core at rest; all were read after {:.1} s",
        mb * 1e3 / bmcs as f64,
        busy * 100.0,
        ready.as_secs_f64(),
    );
    Ok(())
}

/// The child: makes the drivers, says by how many bytes it grew, and keeps them warm until the bench ends it.
pub async fn serve() -> Result<(), Wrong> {
    let bmcs = child::addresses()?;
    room_for(bmcs.len())?;
    let before = cost::resident(std::process::id());
    let grown = || cost::resident(std::process::id()).saturating_sub(before).to_string();
    let maker = Arc::new(Maker::new()?);
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
