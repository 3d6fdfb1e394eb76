//! Runs the check, prints its bounds and what it came to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stateright::{Checker, HasDiscoveries, Model, Path};

use super::actions::Action;
use super::checked::{self, Checked};
use super::reachable::Graph;
use super::setup::Setup;
use super::state::State;
use super::{next, possible};

/// Checks take turns: each uses all the threads that there are.
static TURN: Mutex<()> = Mutex::new(());

/// A path in words: a line an action.
pub(super) fn words(path: &Path<State, Action>) -> String {
    let mut lines = Vec::new();
    for (state, action) in path.clone().into_vec() {
        let phase = state.stored.record.phase.label();
        let action = action.map_or_else(|| "end".to_owned(), |action| format!("{action:?}"));
        lines.push(format!("  {:3} {phase:15} {action}", state.tick));
    }
    lines.join("\n")
}

/// Explores all of it: every property holds, everything that is to be seen is seen, and an end is in reach from everywhere.
pub(super) fn exhausts(setup: Setup) {
    let _turn = TURN.lock();
    let name = setup.name;
    let began = Instant::now();
    let graph = Arc::new(Graph::new());
    let checked = Checked { setup: Arc::new(setup), graph: Some(graph.clone()) };
    println!("{name}: bounds: {}", checked.setup.bounds());
    let checker = checked.checker().threads(2);
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    let took = began.elapsed();
    println!("{name}: {states} states, {} steps, depth {depth}, {took:.1?}", checker.state_count());
    let found = checker.discoveries();
    for property in checked::all() {
        let path = found.get(property.name);
        if property.expectation.discovery_is_failure() {
            let words = path.map(words).unwrap_or_default();
            assert!(path.is_none(), "{name}: violated: {}\n{words}", property.name);
        } else {
            assert!(path.is_some(), "{name}: never seen: {}", property.name);
        }
    }
    assert!(checker.is_done(), "{name}: not explored to the end");
    let (all, stuck) = graph.stuck();
    println!(
        "{name}: an end is in reach from {} of {all} states, {:.1?}",
        all - stuck.len(),
        began.elapsed()
    );
    if let Some(one) = stuck.iter().next() {
        let path = path_to(&checker.model().setup, *one);
        panic!("{name}: from {} states no end is in reach; one of them:\n{path}", stuck.len());
    }
}

/// The shortest path to a state, by exploring once more.
fn path_to(setup: &Setup, digest: u64) -> String {
    use std::collections::{HashMap, VecDeque};
    let first = setup.beginning();
    let mut before: HashMap<u64, (u64, String)> = HashMap::new();
    let mut todo = VecDeque::from([first.clone()]);
    while let Some(state) = todo.pop_front() {
        if state.digest == digest {
            break;
        }
        let mut next = Vec::new();
        possible::all(setup, &state, &mut next);
        for action in next {
            let after = next::next(setup, &state, &action);
            if after.digest != first.digest && !before.contains_key(&after.digest) {
                let words = format!("  {:3} {:15} {action:?}", state.tick, state.stored.record.phase.label());
                before.insert(after.digest, (state.digest, words));
                todo.push_back(after);
            }
        }
    }
    let mut lines = Vec::new();
    let mut at = digest;
    while let Some((from, words)) = before.get(&at) {
        lines.push(words.clone());
        at = *from;
    }
    lines.reverse();
    lines.join("\n")
}

/// Finds a violation of that property, with the fewest steps, and prints how it comes about.
pub(super) fn sees(setup: Setup, wanted: &'static str) {
    let (name, weak) = (setup.name, setup.weak);
    let began = Instant::now();
    let checked = Checked { setup: Arc::new(setup), graph: None };
    let checker = checked.checker().timeout(Duration::from_secs(120));
    let checker = checker.finish_when(HasDiscoveries::AnyOf([wanted].into())).spawn_bfs().join();
    let (states, took) = (checker.unique_state_count(), began.elapsed());
    let Some(path) = checker.discovery(wanted) else {
        panic!("{name}: with {weak:?} taken away nothing was found in {states} states, {took:.1?}: {wanted}");
    };
    println!("{name}: with {weak:?} taken away, violated after {states} states, {took:.1?}: {wanted}");
    println!("{}", words(&path));
}

/// States that have one number go on to states that have one number, whichever way they came about.
pub(super) fn agrees(setup: &Setup) {
    use std::collections::{HashMap, VecDeque};
    let goes_on = |state: &State| {
        let mut actions = Vec::new();
        possible::all(setup, state, &mut actions);
        let next = |action: Action| (next::next(setup, state, &action), action);
        let next: Vec<(State, Action)> = actions.into_iter().map(next).collect();
        let mut digests: Vec<u64> = next.iter().map(|(state, _)| state.digest).collect();
        digests.sort_unstable();
        (next, digests)
    };
    let told = |next: &[(State, Action)]| {
        let words: Vec<String> =
            next.iter().map(|(state, action)| format!("{:x} {action:?}", state.digest)).collect();
        words.join(", ")
    };
    let mut known: HashMap<u64, (Vec<u64>, String)> = HashMap::new();
    let mut todo = VecDeque::from([(setup.beginning(), String::new())]);
    let mut compared = 0_usize;
    while let Some((state, path)) = todo.pop_front() {
        let (next, digests) = goes_on(&state);
        if let Some((before, how)) = known.get(&state.digest) {
            compared += 1;
            if *before != digests {
                let first = path_to(setup, state.digest);
                let (name, now) = (setup.name, told(&next));
                panic!("{name}: not the same:\n{first}\n{how}\nand\n{path}\n{now}\n{:#?}", state.gateways);
            }
            continue;
        }
        known.insert(state.digest, (digests, told(&next)));
        for (after, action) in next {
            let path = format!("{path}\n  {:3} {action:?}", state.tick);
            todo.push_back((after, path));
        }
    }
    println!("{}: {} states, and {compared} that came about in another way, agree", setup.name, known.len());
}
