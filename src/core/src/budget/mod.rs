//! How much may be fenced (S14): at once, in a window of time, and how much must be left; of the fleet and
//! of each group.
//!
//! **Purpose.** [`Books`] says of a fence that is asked for whether a limit bars it, and which. `check`
//! decides, `brake` looks how much seems dead, `pause` knows who paused what. Everything is pure: ages come
//! in on the boot-time clock, and are worked out from the stored stamps when a leadership begins. A stamp
//! that is yet to come counts as just now.
//!
//! # Invariants
//!
//! - A breach, a caller who joins a fence, and a caller who asks for what is proven off are barred by
//!   nothing here. What is exempt counts for others all the same. Shown by `joins_and_a_breach_are_exempt`,
//!   `the_books_decide_as_the_law_says`.
//! - *At once* counts from the intent until Released, NeedsOperator or the end. A node that is kept off
//!   counts as not left. Shown by
//!   `a_place_is_free_once_it_is_released_or_waits_for_a_person_and_what_is_kept_off_is_not_left`.
//! - Percents are rounded down, and are at least one node. Shown by
//!   `a_small_fleet_fences_one_at_once_and_a_large_one_a_tenth`.
//! - The brake counts nodes that somebody complains of, and never devices that are silent. Shown by
//!   `what_is_kept_off_counts_and_what_is_back_does_not`, `whoever_repeats_what_he_says_finds_no_window`.

mod bar;
mod books;
mod brake;
mod check;
pub mod pause;
mod quorum;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub use bar::{Bar, LimitKind};
pub use books::{Books, Ticket};
pub use brake::Complaints;
pub use check::Paused;
pub use quorum::Quorum;

/// The limits of a group, or of the fleet. What is `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Fences at once; least 1.
    pub at_once: Option<u32>,
    /// Fences at once, in percent of the nodes; 1 to 100. Where both are given the lesser holds.
    pub at_once_percent: Option<u32>,
    /// Fences that are begun within any `window`: how many, least 1, and how long, 1 s to 30 days.
    pub per_window: Option<(u32, Duration)>,
    /// So many nodes are left that are not fenced; 0 is no limit.
    pub min_not_fenced: Option<u32>,
}

impl Limits {
    /// How many fences may be open at once among so many nodes.
    pub fn most_at_once(&self, nodes: usize) -> Option<u32> {
        let share = |percent: u32| {
            let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
            let share = u64::from(nodes) * u64::from(percent) / 100;
            u32::try_from(share).unwrap_or(u32::MAX).max(1)
        };
        self.at_once.into_iter().chain(self.at_once_percent.map(share)).min()
    }
}

/// All limits. `Default` is what the documentation's table of defaults says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of the whole fleet. Without a number of fences at once: 1 under 10 nodes, else 10 percent. Without one of nodes that are left: half
    /// of them, rounded up; of a fleet of one node none.
    pub fleet: Limits,
    /// Of groups, by name.
    pub groups: BTreeMap<String, Limits>,
    /// From when a node is back until it may be fenced again. Default 10 min, 0 to 30 days.
    pub cool_down: Duration,
    /// The brake: so many percent of the fleet. Default 50, 1 to 100.
    pub brake_percent: u32,
    /// The brake: and at least so many nodes. Default 3, least 1.
    pub brake_least: u32,
    /// How long a request may wait in the queue. Default 10 min, 1 s to 1 day.
    pub queue_expires: Duration,
    /// How many requests may wait in the queue. Default 1000, 0 to 10000.
    pub queue_most: u32,
    /// Which nodes carry members of the store. Default: none does.
    pub quorum: Quorum,
}

/// Which limits somebody with the right to it sets aside for one fence, each by its own name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Budget, cool-down and brake (S14).
    pub budget: bool,
    /// The store's quorum (S17).
    pub quorum: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            fleet: Limits::default(),
            groups: BTreeMap::new(),
            cool_down: Duration::from_secs(600),
            brake_percent: 50,
            brake_least: 3,
            queue_expires: Duration::from_secs(600),
            queue_most: 1_000,
            quorum: Quorum::default(),
        }
    }
}

impl Budget {
    /// No limits at all, for tests that are about something else.
    pub fn unlimited() -> Self {
        let fleet = Limits { at_once: Some(u32::MAX), min_not_fenced: Some(0), ..Limits::default() };
        Self { fleet, cool_down: Duration::ZERO, brake_least: u32::MAX, ..Self::default() }
    }

    /// The limits of a fleet of so many nodes.
    pub fn of_fleet(&self, nodes: usize) -> Limits {
        let mut limits = self.fleet.clone();
        if limits.at_once.is_none() && limits.at_once_percent.is_none() {
            if nodes < 10 {
                limits.at_once = Some(1);
            } else {
                limits.at_once_percent = Some(10);
            }
        }
        let half = nodes.div_ceil(2);
        let least = if nodes < 2 { 0 } else { u32::try_from(half).unwrap_or(u32::MAX) };
        limits.min_not_fenced.get_or_insert(least);
        limits
    }

    /// The longest window that anything is counted in.
    pub fn longest_window(&self) -> Duration {
        let windows = self.groups.values().chain([&self.fleet]).filter_map(|limits| limits.per_window);
        windows.map(|(_, window)| window).chain([brake::STANDS]).max().unwrap_or_default()
    }

    /// How many nodes of so many must look dead at once for the brake to hold.
    pub fn brakes_at(&self, nodes: usize) -> usize {
        let percent = usize::try_from(self.brake_percent).unwrap_or(100);
        let least = usize::try_from(self.brake_least).unwrap_or(usize::MAX);
        nodes.saturating_mul(percent).div_ceil(100).max(least)
    }
}
