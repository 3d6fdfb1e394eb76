//! One machine: what is truly on.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_core::device::Identity;
use picket_core::time::BootTime;
use serde::{Deserialize, Serialize};

use crate::wire::{HoldSettings, Verb};
use crate::world::forget;

/// What a machine does when its mains come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestorePolicy {
    /// Stay off.
    AlwaysOff,
    /// As it was when the mains failed.
    LastState,
    /// Switch on.
    AlwaysOn,
}

impl RestorePolicy {
    /// As a driver writes it down.
    pub fn label(self) -> &'static str {
        match self {
            RestorePolicy::AlwaysOff => "always-off",
            RestorePolicy::LastState => "last-state",
            RestorePolicy::AlwaysOn => "always-on",
        }
    }

    /// What [`RestorePolicy::label`] wrote.
    pub fn from_label(label: &str) -> Option<Self> {
        [Self::AlwaysOff, Self::LastState, Self::AlwaysOn].into_iter().find(|p| p.label() == label)
    }
}

/// The machine's power changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When.
    pub at: BootTime,
    /// To on, or to off.
    pub on: bool,
    /// By what, in words (`n1-bmc`, `somebody else`, `mains`).
    pub by: String,
}

/// A fall or rise that a device has begun.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) verb: Verb,
    pub(crate) due: BootTime,
    pub(crate) by: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) identity: Identity,
    /// Its host devices, and the outlets that truly feed it.
    pub(crate) devices: BTreeSet<String>,
    /// Switched on, as far as its own switch goes.
    switched_on: bool,
    /// It has, or had until less than the hold-up time ago, power from its supplies.
    pub(crate) fed: bool,
    /// The mains behind its supplies.
    pub(crate) mains: bool,
    /// Since when no supply has power, while the hold-up time lasts.
    pub(crate) starving_since: Option<BootTime>,
    /// How long it runs on when the last supply is gone.
    pub(crate) hold_up: Duration,
    pub(crate) hold: HoldSettings,
    pub(crate) pending: Option<Pending>,
    born: BootTime,
    born_on: bool,
    edges: Vec<Edge>,
}

impl Machine {
    pub(crate) fn new(identity: Identity, on: bool, now: BootTime) -> Self {
        Self {
            identity,
            devices: BTreeSet::new(),
            switched_on: on,
            fed: true,
            mains: true,
            starving_since: None,
            hold_up: Duration::from_secs(1),
            hold: HoldSettings::FREE,
            pending: None,
            born: now,
            born_on: on,
            edges: Vec::new(),
        }
    }

    /// Whether it runs, and therefore may write.
    pub(crate) fn is_on(&self) -> bool {
        self.switched_on && self.fed
    }

    pub(crate) fn was_on(&self, at: BootTime) -> bool {
        let before = self.edges.iter().rev().find(|edge| edge.at <= at);
        before.map_or(self.born_on && at >= self.born, |edge| edge.on)
    }

    pub(crate) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The last moment up to `now` in which it ran. A running machine writes in every moment: stricter than any
    /// heartbeat, and an edge is the exact end of its writing.
    pub(crate) fn last_write(&self, now: BootTime) -> Option<BootTime> {
        if self.is_on() {
            return Some(now);
        }
        self.edges.last().map(|edge| edge.at).or(self.born_on.then_some(self.born))
    }

    /// The first moment not before `since` in which it ran.
    pub(crate) fn first_write_since(&self, since: BootTime) -> Option<BootTime> {
        if self.was_on(since) {
            return Some(since);
        }
        self.edges.iter().find(|edge| edge.on && edge.at >= since).map(|edge| edge.at)
    }

    /// Throws its switch, whatever its supplies do. A machine that is off has nothing to fall from: a fall under
    /// way is over with it, and so is a rise when it is on.
    pub(crate) fn switch(&mut self, verb: Verb, now: BootTime, by: &str) {
        if self.pending.as_ref().is_some_and(|pending| pending.verb == verb) {
            self.pending = None;
        }
        self.change(now, by, |machine| machine.switched_on = verb == Verb::On);
    }

    /// The hold-up time is over and no supply has power.
    pub(crate) fn starve(&mut self, now: BootTime, by: &str) {
        self.pending = None;
        self.starving_since = None;
        self.change(now, by, |machine| machine.fed = false);
    }

    /// A supply has power again; the restore policy decides.
    pub(crate) fn feed(&mut self, now: BootTime, by: &str) {
        self.starving_since = None;
        if self.fed {
            return;
        }
        self.change(now, by, |machine| {
            machine.fed = true;
            machine.switched_on = match machine.hold.restore {
                RestorePolicy::AlwaysOff => false,
                RestorePolicy::LastState => machine.switched_on,
                RestorePolicy::AlwaysOn => true,
            };
        });
    }

    /// Forgets all but about the last `most` changes.
    pub(crate) fn forget(&mut self, most: usize) {
        if let Some(last) = forget(&mut self.edges, most) {
            (self.born, self.born_on) = (last.at, last.on);
        }
    }

    fn change(&mut self, now: BootTime, by: &str, change: impl FnOnce(&mut Self)) {
        let before = self.is_on();
        change(self);
        if self.is_on() != before {
            self.edges.push(Edge { at: now, on: !before, by: by.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootTime {
        BootTime::from_boot(Duration::from_secs(seconds))
    }

    #[test]
    fn the_last_write_is_the_last_falling_edge() {
        let mut machine = Machine::new(Identity::default(), true, at(0));
        assert_eq!(machine.last_write(at(9)), Some(at(9)));
        machine.switch(Verb::Off, at(10), "test");
        machine.switch(Verb::Off, at(11), "test");
        assert_eq!(machine.last_write(at(60)), Some(at(10)));
        assert_eq!(machine.edges().len(), 1);
        assert!(machine.was_on(at(9)) && !machine.was_on(at(10)));
        machine.switch(Verb::On, at(70), "test");
        assert_eq!(machine.first_write_since(at(12)), Some(at(70)));
    }

    #[test]
    fn the_restore_policy_decides_when_the_mains_come_back() {
        for (policy, on_before, on_after) in [
            (RestorePolicy::AlwaysOff, true, false),
            (RestorePolicy::LastState, true, true),
            (RestorePolicy::LastState, false, false),
            (RestorePolicy::AlwaysOn, false, true),
        ] {
            let mut machine = Machine::new(Identity::default(), on_before, at(0));
            machine.hold.restore = policy;
            machine.starve(at(1), "mains");
            assert!(!machine.is_on());
            machine.feed(at(2), "mains");
            assert_eq!(machine.is_on(), on_after, "{policy:?}");
        }
    }
}
