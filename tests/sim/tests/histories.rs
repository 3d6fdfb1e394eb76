//! The law holds in hundreds of histories; the same seed gives the same history; and where a far side does not keep what
//! the law asks of it, the simulation sees it.
//!
//! `cargo xtask sim` lives through ten thousand with the optimised program; `PICKET_SOAK=1` through more of them here. A failing
//! seed is printed with the one command that replays it.

use std::collections::BTreeSet;

use picket_sim::{Broken, Lived, Weakness, live, many};
use tokio::runtime::Runtime;

/// How many histories are lived through here, without optimisation.
const HISTORIES: u64 = 300;
/// In so many histories of a weak world at the most its weakness is seen.
const MOST: u64 = 400;
/// The seed from which on histories of a weak world are lived through where the weakness is seldom seen: shortly before one that shows it,
/// when this was written. Which seed shows it changes with the engine, and the cost alone with that.
const SELDOM: u64 = 100;

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime")
}

fn once(seed: u64, weakness: Weakness, loud: bool) -> Result<Lived, Box<Broken>> {
    live(runtime(), seed, weakness, loud)
}

#[test]
fn in_every_history_the_law_holds_and_every_fence_ends() {
    let soak = std::env::var("PICKET_SOAK").is_ok_and(|on| on != "0");
    let count = if soak { HISTORIES * 20 } else { HISTORIES };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lived = many(0..count, cores, Weakness::None, runtime);
    let (tally, failed) = (lived.tally, lived.words());
    println!("{count} histories: {:?}", tally.fields());
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n"));
    // What never happens is not shown to be safe.
    let never: Vec<&str> =
        tally.fields().iter().filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect();
    assert!(never.is_empty(), "never: {never:?}, of {:?}", tally.fields());
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..12 {
        let (first, second) = (once(seed, Weakness::None, false), once(seed, Weakness::None, true));
        match (first, second) {
            (Ok(first), Ok(second)) => {
                assert_eq!((first.hash, first.tally), (second.hash, second.tally), "seed {seed}");
            }
            (first, second) => panic!("seed {seed}: {first:?} {second:?}"),
        }
    }
}

/// Lives through histories of a weak world until one of the invariants of these names is broken.
fn seen(weakness: Weakness, from: u64, by: &[&str]) {
    let mut others = BTreeSet::new();
    for seed in from..from + MOST {
        if let Err(end) = once(seed, weakness, false) {
            let named = |what: &String| by.iter().any(|name| what.starts_with(name));
            if let Some(what) = end.what.iter().find(|what| named(what)) {
                println!("{weakness:?}, seed {seed}: {}", what.lines().next().unwrap_or_default());
                return;
            }
            let name = |what: &String| what.split(':').next().unwrap_or_default().to_owned();
            others.extend(end.what.first().map(name));
        }
    }
    panic!("{weakness:?} is not seen by {by:?} in {MOST} histories; others: {others:?}");
}

#[test]
fn leases_that_end_early_are_seen() {
    seen(Weakness::LeasesEndEarly, 0, &["one_leader_sends"]);
}

#[test]
fn stale_writers_that_are_heard_are_seen() {
    seen(Weakness::StaleWritersAreHeard, 0, &["one_leader_sends"]);
}

#[test]
fn sessions_that_never_end_are_seen() {
    seen(
        Weakness::SessionsNeverEnd,
        0,
        &["no_on_after_confirmation", "one_writer", "release_only_when_dark"],
    );
}

#[test]
fn sessions_that_live_on_after_their_end_are_seen() {
    seen(
        Weakness::EndedSessionsLiveOn,
        SELDOM,
        &["no_on_after_confirmation", "one_writer", "release_only_when_dark", "confirmed_means_dark"],
    );
}

#[test]
fn releases_that_heed_no_end_are_seen() {
    seen(Weakness::ReleasesHeedNoEnd, 0, &["release_only_when_dark", "one_writer"]);
}

#[test]
fn devices_that_all_lie_are_seen() {
    seen(Weakness::EverybodyLies, 0, &["confirmed_means_dark"]);
}

#[test]
fn a_gateway_that_does_not_know_its_own_host_is_seen() {
    seen(Weakness::NobodyKnowsItsHost, 0, &["not_its_own_machine"]);
}

#[test]
fn programs_that_outlive_their_gateway_are_seen() {
    seen(Weakness::ProgramsOutliveTheirGateway, 0, &["release_only_when_dark", "one_writer"]);
}

#[test]
fn detaches_that_heed_no_end_are_seen() {
    seen(Weakness::DetachesHeedNoEnd, SELDOM, &["volumes_only_when_dark"]);
}
