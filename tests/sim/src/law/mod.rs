//! What must hold in every history: one file each. They see every event in the order of time, and the truth.

mod audit_follows;
mod confirmed_means_dark;
mod every_fence_ends;
mod holds;
mod keys;
mod ledger_first;
mod no_on_after_confirmation;
mod not_its_own_machine;
mod numbers_only_grow;
mod one_leader_sends;
mod one_writer;
mod past;
mod receipts;
mod release_only_when_dark;
mod stays_within_budget;
mod volumes_only_when_dark;
mod within_rights;

use std::sync::Arc;

use picket_driver_sim::SharedWorld;

pub(crate) use every_fence_ends::waits_for_somebody;
pub(crate) use past::Past;

use crate::book::Books;
use crate::shape::Shape;
use crate::trace::Event;

/// One thing that must hold.
pub(crate) trait Invariant: std::fmt::Debug {
    /// Its name: that of its file.
    fn name(&self) -> &'static str;

    /// Looks at what happens. `past` is what was before it.
    ///
    /// # Errors
    /// What is broken, in words.
    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String>;
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Law {
    pub(crate) past: Past,
    pub(crate) broken: Vec<String>,
    invariants: Vec<Box<dyn Invariant + Send>>,
}

impl Law {
    pub(crate) fn new(shape: Arc<Shape>, world: SharedWorld, books: Arc<Books>) -> Self {
        let invariants: Vec<Box<dyn Invariant + Send>> = vec![
            Box::new(audit_follows::AuditFollows::new(books)),
            Box::new(confirmed_means_dark::ConfirmedMeansDark),
            Box::new(holds::Holds),
            Box::<keys::Keys>::default(),
            Box::new(ledger_first::LedgerFirst),
            Box::<numbers_only_grow::NumbersOnlyGrow>::default(),
            Box::<no_on_after_confirmation::NoOnAfterConfirmation>::default(),
            Box::new(not_its_own_machine::NotItsOwnMachine),
            Box::<one_leader_sends::OneLeaderSends>::default(),
            Box::<one_writer::OneWriter>::default(),
            Box::<receipts::Receipts>::default(),
            Box::new(release_only_when_dark::ReleaseOnlyWhenDark),
            Box::<stays_within_budget::StaysWithinBudget>::default(),
            Box::<volumes_only_when_dark::VolumesOnlyWhenDark>::default(),
            Box::new(within_rights::WithinRights),
        ];
        Self { past: Past::new(shape, world), broken: Vec::new(), invariants }
    }

    pub(crate) fn see(&mut self, event: &Event) {
        for invariant in &mut self.invariants {
            if let Err(words) = invariant.see(&self.past, event) {
                self.broken.push(format!("{}: {words}", invariant.name()));
            }
        }
        self.past.take(event);
    }
}
