//! Who would go on if this gateway led no more (S17).

use std::collections::BTreeSet;

use picket_core::election::{Election, Member};

/// The other gateways that stand for election, as last seen.
#[derive(Debug)]
pub(crate) struct Successors(Vec<Member>);

impl Successors {
    /// Asks nobody.
    pub(crate) fn of(election: &dyn Election) -> Self {
        let mut others = election.others();
        others.retain(|other| other.aside.is_none());
        Self(others)
    }

    /// Whether another gateway would take over.
    pub(crate) fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether one of them has not tried that fence yet, which these let others try.
    pub(crate) fn is_any_beside(&self, tried: &BTreeSet<String>) -> bool {
        self.0.iter().any(|other| !tried.contains(&other.gateway))
    }
}
