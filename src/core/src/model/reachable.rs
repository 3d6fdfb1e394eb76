//! From every reachable state an end state is reachable: a search backwards over the explored graph.
//!
//! stateright's `eventually` does not see a violation that is a cycle, and here almost everything may go round: a search over
//! the edges does.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

/// Edges are kept in so many parts, each under a lock of its own.
const PARTS: usize = 64;

/// Which states follow which, and which are ends.
#[derive(Debug)]
pub(super) struct Graph(Vec<Mutex<Part>>);

#[derive(Debug, Default)]
struct Part {
    /// Towards a state: from which ones.
    into: HashMap<u64, Vec<u64>>,
    ends: HashSet<u64>,
}

impl Graph {
    pub(super) fn new() -> Self {
        Self((0..PARTS).map(|_| Mutex::default()).collect())
    }

    fn with<T>(&self, digest: u64, does: impl FnOnce(&mut Part) -> T) -> T {
        let part = usize::try_from(digest % PARTS as u64).unwrap_or(0);
        does(&mut self.0[part].lock())
    }

    /// `to` follows `from`.
    pub(super) fn edge(&self, from: u64, to: u64) {
        self.with(to, |part| {
            let into = part.into.entry(to).or_default();
            if !into.contains(&from) {
                into.push(from);
            }
        });
    }

    /// A state that is one of the graph, and whether it is an end.
    pub(super) fn state(&self, digest: u64, end: bool) {
        self.with(digest, |part| {
            part.into.entry(digest).or_default();
            if end {
                part.ends.insert(digest);
            }
        });
    }

    /// How many states there are, and those from which no end can be reached.
    pub(super) fn stuck(&self) -> (usize, HashSet<u64>) {
        let mut good: HashSet<u64> = HashSet::new();
        let mut all = 0;
        let mut stuck = HashSet::new();
        for part in &self.0 {
            let part = part.lock();
            good.extend(&part.ends);
        }
        let mut todo: Vec<u64> = good.iter().copied().collect();
        while let Some(state) = todo.pop() {
            let before = self.with(state, |part| part.into.get(&state).cloned().unwrap_or_default());
            todo.extend(before.into_iter().filter(|from| good.insert(*from)));
        }
        for part in &self.0 {
            let part = part.lock();
            all += part.into.len();
            stuck.extend(part.into.keys().filter(|state| !good.contains(state)));
        }
        (all, stuck)
    }
}
