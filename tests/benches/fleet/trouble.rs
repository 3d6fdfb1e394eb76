//! Some BMCs are dead, or packets are lost: what becomes of the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};

use crate::Wrong;
use crate::bmcs::{Bmcs, is_dead};
use crate::race::contest::Deed;
use crate::race::farm::Farm;
use crate::race::goals::Goals;
use crate::race::ours::{Start, each, each_at};
use crate::race::powerman::{IPMIPOWER, Ipmipower};
use crate::race::series::{Series, millis, ratio};
use crate::race::subject::{Maker, Subject};

/// How long one call may take here: the dead take all of it.
const LIFE: Duration = Duration::from_secs(4);
/// The same where packets are lost: ipmipower's session timeout.
const PATIENT: Duration = Duration::from_secs(20);
/// How much later the others may be.
const LATER: f64 = 1.2;

/// Drivers that have sent nothing yet, and which of them have a living BMC.
async fn subjects(farm: &Bmcs, maker: &Arc<Maker>) -> Result<Vec<Arc<Subject>>, Wrong> {
    let made = stream::iter(farm.addresses().to_vec()).then(|bmc| {
        let maker = maker.clone();
        async move { Ok::<_, Wrong>(Arc::new(maker.subject(bmc).await?)) }
    });
    made.try_collect().await
}

/// All are switched off at once; when each of the living ones was confirmed.
async fn others(farm: &Bmcs, maker: &Arc<Maker>, start: Start, percent: usize) -> Result<Series, Wrong> {
    farm.switch_on()?;
    let all = subjects(farm, maker).await?;
    if start == Start::Warm {
        for ended in each(&all, |subject| async move { subject.look().await.map(drop) }).await? {
            ended?;
        }
    }
    farm.dead(percent)?;
    // All of them take turns with each other, and the dead keep theirs for as long as they may.
    let ends = each_at(&all, |subject| async move { subject.confirmed_off().await }).await?;
    farm.mend()?;
    let mut times = Series::default();
    for (index, end) in ends {
        match (is_dead(index, percent), end) {
            (true, Ok(_)) => return Err("a dead BMC was confirmed off".into()),
            (true, Err(_)) => {}
            (false, time) => times.push(time?),
        }
    }
    let living = all.into_iter().enumerate().filter(|(index, _)| !is_dead(*index, percent));
    for (_, subject) in living {
        subject.close().await?;
    }
    Ok(times)
}

/// One of a hundred is dead.
pub async fn dead(bmcs: usize, rounds: usize, goals: &mut Goals) -> Result<(), Wrong> {
    println!("\n1 % DEAD of {bmcs}: off, when the others are confirmed; {rounds} rounds");
    let farm = Bmcs::start(bmcs)?;
    let maker = Arc::new(Maker::with_life(LIFE)?);
    for (start, name) in [(Start::Warm, "picket, warm"), (Start::Cold, "picket, cold")] {
        let (mut without, mut with) = (Series::default(), Series::default());
        // The first round warms caches, and is not counted.
        for round in 0..=rounds {
            let (all, others) =
                (others(&farm, &maker, start, 0).await?, others(&farm, &maker, start, 1).await?);
            if round > 0 {
                without.push(all.quantile(0.99));
                with.push(others.quantile(0.99));
            }
        }
        let (a, b) = (without.median(), with.median());
        println!("  {name:<30} p99 {:>9} ms, without dead ones {:>9} ms", millis(b), millis(a));
        goals.judge(
            format!(
                "1 % of {bmcs} dead: {name}: p99 of the others at most {LATER} x: {} and {} ms, {:.2} x",
                millis(b),
                millis(a),
                ratio(b, a)
            ),
            ratio(b, a) <= LATER,
        );
    }
    farm.switch_on()?;
    farm.dead(1)?;
    peer(&farm)
}

/// Of a hundred packets five are lost, each way.
pub async fn loss(bmcs: usize, goals: &mut Goals) -> Result<(), Wrong> {
    println!("\n5 % LOST of all packets, each way: off of {bmcs}");
    let farm = Bmcs::start(bmcs)?;
    let all = subjects(&farm, &Arc::new(Maker::with_life(PATIENT)?)).await?;
    farm.loss(5)?;
    let ends = each(&all, |subject| async move { subject.confirmed_off().await }).await?;
    let mut times = Series::default();
    ends.into_iter().flatten().for_each(|time| times.push(time));
    let on = farm.count_on()?;
    println!(
        "  {:<30} {} of {bmcs} confirmed; median {:>9} ms, p99 {:>9} ms, the last {:>9} ms",
        "picket, cold",
        times.len(),
        millis(times.median()),
        millis(times.quantile(0.99)),
        millis(times.quantile(1.0))
    );
    if on > bmcs - times.len() {
        return Err(format!("{} were confirmed off, and {on} of {bmcs} are on", times.len()).into());
    }
    goals.judge(
        format!("5 % lost: picket, cold: {} of {bmcs} confirmed off", times.len()),
        times.len() == bmcs,
    );
    farm.switch_on()?;
    peer(&farm)
}

fn peer(farm: &Bmcs) -> Result<(), Wrong> {
    let began = Instant::now();
    let (done, _) = tokio::task::block_in_place(|| Ipmipower::new(farm).count(Deed::Off))?;
    println!(
        "  {IPMIPOWER:<30} {done} of {} confirmed; it ended after {} ms",
        farm.len(),
        millis(began.elapsed())
    );
    Ok(())
}
