//! S14, S22: what callers bring about is within their roles and the budget, and names them; and nothing that they hear names a node that is
//! hidden from them. Callers, roles, labels, groups, limits and what is asked for are drawn; roles, groups and limits change in the middle, the
//! wall clock jumps or the gateway dies and another one takes over, requests wait in the queue, pauses come and go, and machines that run on
//! others, and move, are fenced by those.
//!
//! Whatever is stored is judged here, by other code than the gateway's.

mod acts;
mod bounds;
mod brake;
mod gateway;
mod holds;
mod laws;
mod pauses;
mod queue;
mod rights;
mod seen;
mod stage;
mod within_budget;

use picket_driver_sim::Random;

use self::acts::Acts;
use self::seen::Seen;
use self::stage::Stage;
use crate::lab::s;

const HISTORIES: u64 = 40;
const ACTS: usize = 70;
/// One history alone is played, and told.
const SEED: &str = "PICKET_SEED";

/// One history; what was broken in it, and what came about at all.
async fn history(seed: u64) -> (Vec<String>, Seen) {
    tokio::time::advance(s(100)).await;
    let mut random = Random::new(seed);
    let stage = Stage::new(&mut random).await;
    let mut acts = Acts::new(&stage);
    for _ in 0..ACTS {
        acts.one(&mut random).await;
        if random.percent(70) {
            tokio::time::sleep(s(random.below(40))).await;
        }
    }
    // Whatever was let in comes to where it waits for somebody.
    tokio::time::sleep(s(1_200)).await;
    acts.all_have_left().await;
    stage.end().await
}

#[test]
fn what_callers_bring_about_is_within_their_roles_and_the_budget_and_names_them() {
    let seeds = match std::env::var(SEED) {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..=HISTORIES).collect::<Vec<u64>>(),
    };
    let (mut failed, mut all) = (Vec::new(), Seen::default());
    for &seed in &seeds {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
        let (broken, seen) = runtime.block_on(history(seed));
        all.add(&seen);
        if !broken.is_empty() {
            failed.push(format!("{SEED}={seed}: {}", broken.join("\n")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Histories in which nothing happens would hold every law.
    if seeds.len() > 1 {
        all.is_rich();
    }
}
