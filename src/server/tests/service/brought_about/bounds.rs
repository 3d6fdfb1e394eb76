//! How much may be fenced, and who is in the group that has a limit of its own, as they are drawn.

use std::collections::BTreeSet;

use picket_core::budget::{Budget, Limits};
use picket_driver_sim::Random;

use super::stage::NODES;
use crate::lab::s;

/// The one group; who is in it changes with the settings.
pub const RACK: &str = "rack=r1";

/// What the settings say of limits at one time.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub budget: Budget,
    pub rack: BTreeSet<&'static str>,
}

impl Bounds {
    pub fn draw(random: &mut Random) -> Self {
        Self { budget: budget(random), rack: NODES.into_iter().filter(|_| random.percent(50)).collect() }
    }

    /// From so many nodes on whoever says that they are dead is suspect.
    pub fn brakes_at(&self) -> usize {
        let share = (NODES.len() * self.budget.brake_percent as usize).div_ceil(100);
        share.max(self.budget.brake_least as usize)
    }
}

fn budget(random: &mut Random) -> Budget {
    let per_window = random.percent(40).then(|| (1 + random.below(4) as u32, s(60 + random.below(540))));
    let fleet = Limits {
        at_once: Some(1 + random.below(5) as u32),
        at_once_percent: None,
        per_window,
        min_not_fenced: Some(random.below(6) as u32),
    };
    let rack = Limits {
        at_once: Some(1 + random.below(2) as u32),
        min_not_fenced: random.percent(30).then(|| random.below(3) as u32),
        per_window: random.percent(30).then(|| (1, s(60 + random.below(540)))),
        ..Limits::default()
    };
    let groups = random.percent(75).then(|| (RACK.to_owned(), rack));
    Budget {
        fleet,
        groups: groups.into_iter().collect(),
        cool_down: s(random.below(300)),
        brake_percent: [25, 50, 75][random.below(3) as usize],
        brake_least: if random.percent(30) { 2 + random.below(4) as u32 } else { u32::MAX },
        queue_most: 1 + random.below(5) as u32,
        queue_expires: s(60 + random.below(900)),
        ..Budget::default()
    }
}
