//! When the Off of a device is believed again that may have restarted within the fence, and was not seen on
//! since (S2).
//!
//! # Invariants
//!
//! - A loss is forgiven by a person's word for the losses before it (`Fence::seen_off`). It is also
//!   forgiven by the hold with which the device proved the node before, read engaged after the loss
//!   (`Fence::proved_held`). Shown by
//!   `the_word_of_a_person_who_saw_the_machine_off_lets_its_bmc_be_believed_after_a_minute_as_claimed`,
//!   `a_node_that_was_proven_is_proven_anew_by_itself_once_its_bmc_answers_with_its_hold_engaged`.
//! - Both end with the next loss. Shown by `that_word_does_not_outlive_the_next_restart`.

use std::time::Duration;

use super::Trace;
use crate::power::Epoch;

/// How long a device that restarted must read Off where a person's look, or its hold, lets it be believed; its settings may say another
/// time.
pub const DWELL: Duration = Duration::from_secs(60);

impl Trace {
    /// Its life from before is over. Whoever looked at the machine, or at its hold, did so before.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.seen_off = false;
        self.held_on = false;
    }

    /// A host device says On: what a person saw, and what was proven with a hold, is not so any more.
    pub(in crate::confirm) fn believe_no_look(&mut self) {
        (self.seen_off, self.held_on) = (false, false);
        self.proved_held.clear();
    }

    /// Whether the loss that the device tells of came before the person's look: a driver tells its newest one again and again.
    pub(super) fn is_covered(&self, epoch: Epoch) -> bool {
        let at = self.seen_off_at.filter(|_| self.seen_off);
        at.zip(epoch.loss).is_some_and(|(at, loss)| loss.since < at)
    }

    /// What of its hold was found engaged now.
    pub(in crate::confirm) fn hold_was_found(&mut self, engaged: &[String]) {
        let proved = &self.proved_held;
        self.held_on = !proved.is_empty() && proved.iter().all(|word| engaged.contains(word));
        if !self.held_on {
            // What reads engaged later is what we engage now.
            self.proved_held.clear();
        }
    }

    /// Whether a look at its hold may let its Off count again.
    pub(in crate::confirm) fn wants_its_hold_read(&self) -> bool {
        self.lost && !self.proved_held.is_empty() && !self.held_on
    }

    /// For how long it must read Off to be believed; `None`: however long, it is not.
    pub(super) fn trust(&self) -> Option<Duration> {
        self.spec.trust_after_restart.or((self.seen_off || self.held_on).then_some(DWELL))
    }

    /// What it is believed for.
    pub(super) fn trusted_for(&self) -> &'static str {
        if self.spec.trust_after_restart.is_some() {
            "it restarted and was trusted"
        } else if self.held_on {
            "its session was lost, and the hold with which it proved the node off before was engaged still"
        } else {
            "it restarted, and a person looked at the machine"
        }
    }
}
