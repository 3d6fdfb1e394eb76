//! One turn: when each step was done.

use std::time::{Duration, SystemTime};

/// From one step to the next.
pub const STEPS: [&str; 9] =
    ["not Ready", "asked", "off", "proven", "settled", "pod gone", "detached", "attached", "writes"];

/// When each step was done; what a way does not have is done with the step before.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The kubelet was killed.
    pub killed: SystemTime,
    /// Whether it runs on the other machine: one that was rebooted may have it again.
    pub elsewhere: bool,
    /// As in [`STEPS`].
    pub done: [SystemTime; STEPS.len()],
}

/// Places in [`STEPS`].
pub const ASKED: usize = 1;
pub const SETTLED: usize = 4;
pub const DETACHED: usize = 6;
pub const WRITES: usize = 8;

fn from(before: SystemTime, after: SystemTime) -> Duration {
    after.duration_since(before).unwrap_or_default()
}

impl Turn {
    /// How long each step took.
    pub fn steps(&self) -> [Duration; STEPS.len()] {
        let mut before = self.killed;
        self.done.map(|done| {
            let took = from(before, done);
            before = before.max(done);
            took
        })
    }

    /// From the kubelet's death.
    pub fn whole(&self) -> Duration {
        from(self.killed, self.done[WRITES])
    }

    /// From one step to another.
    pub fn between(&self, one: usize, other: usize) -> Duration {
        from(self.done[one], self.done[other])
    }

    /// For people.
    pub fn words(&self) -> String {
        let steps = STEPS.iter().zip(self.steps());
        let steps: Vec<String> =
            steps.map(|(name, took)| format!("{name} {:.2}", took.as_secs_f64())).collect();
        let place = if self.elsewhere { "" } else { "; ON THE SAME MACHINE" };
        format!("{:.1} s: {}{place}", self.whole().as_secs_f64(), steps.join(", "))
    }
}
