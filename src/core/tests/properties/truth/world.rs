//! The true state of things.

use std::collections::BTreeMap;

use picket_core::ids::DeviceId;

use super::Time;

/// Whether the node has power, what will change that, and what its outlets are.
pub struct World {
    pub now: Time,
    pub power: bool,
    pub ignored: u8,
    /// What will switch the power: when, and to what.
    pub due: Vec<(Time, bool)>,
    pub outlets: BTreeMap<DeviceId, bool>,
    pub dark_at: Option<Time>,
}

impl World {
    pub fn plugged(&self) -> bool {
        self.dark_at.is_none_or(|at| self.now < at)
    }

    pub fn advance(&mut self, to: Time) {
        self.now = to;
        self.due.sort_unstable();
        while let Some((_, on)) = self.due.first().copied().filter(|(at, _)| *at <= to) {
            self.due.remove(0);
            self.power = on && self.plugged();
        }
        self.power &= self.plugged();
    }

    /// Whether it is, or may come, on.
    pub fn fault(&self) -> Option<String> {
        if self.power {
            return Some(format!("the node is on at {}", self.now));
        }
        let comes = self.due.iter().find(|(_, on)| *on && self.plugged());
        comes.map(|(at, _)| format!("the node comes on at {at}"))
    }
}
