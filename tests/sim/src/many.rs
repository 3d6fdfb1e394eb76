//! Many histories: each in one thread, so many at once as there are threads for them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Runtime;

use crate::{Broken, Lived, Tally, Weakness, live};

/// What came of many histories.
#[derive(Clone, Debug, Default)]
pub struct Many {
    /// How much happened in those that were lived to their end.
    pub tally: Tally,
    /// How long they took, in their own time.
    pub time: Duration,
    /// The seeds of the others, in order, and what is broken there.
    pub failed: Vec<(u64, Box<Broken>)>,
    weakness: Weakness,
}

impl Many {
    fn take(&mut self, seed: u64, lived: Result<Lived, Box<Broken>>) {
        match lived {
            Ok(lived) => {
                self.tally = self.tally.and(lived.tally);
                self.time += lived.time;
            }
            Err(broken) => self.failed.push((seed, broken)),
        }
    }

    /// What is wrong, and how to see it again: of each that failed.
    pub fn words(&self) -> Vec<String> {
        let weak = match self.weakness {
            Weakness::None => String::new(),
            weakness => format!(" --weak {weakness:?}"),
        };
        let words = |(seed, broken): &(u64, Box<Broken>)| {
            let reason = broken.what.first().and_then(|what| what.lines().next()).unwrap_or_default();
            let reason: String = reason.chars().take(300).collect();
            format!("seed {seed}: {reason}\n  replay: cargo xtask sim --seed {seed}{weak}")
        };
        self.failed.iter().map(words).collect()
    }
}

/// Lives through the histories of `seeds` in worlds of that weakness, in `threads` threads. `runtime` makes runtimes of one thread whose time is paused.
pub fn many(
    seeds: Range<u64>,
    threads: usize,
    weakness: Weakness,
    runtime: impl Fn() -> Runtime + Sync,
) -> Many {
    let (next, all) = (AtomicU64::new(seeds.start), Mutex::new(Many { weakness, ..Many::default() }));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let lived = live(runtime(), seed, weakness, false);
                    all.lock().take(seed, lived);
                }
            });
        }
    });
    let mut all = all.into_inner();
    all.failed.sort_by_key(|(seed, _)| *seed);
    all
}
