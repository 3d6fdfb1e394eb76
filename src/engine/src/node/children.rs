//! Looks for children (S22): the answer to one of them serves the others that ask in the meantime.
//!
//! # Invariants
//!
//! - However many children ask, the parent's own work goes on, and so do the readings of what may speak
//!   against its proof. Shown by `children_that_look_do_not_keep_their_parent_from_its_own_work`,
//!   `a_parent_that_is_found_on_is_heard_through_all_who_look`.
//! - What a child is told as Off is no older than a fresh look of the same devices may be. Shown by
//!   `a_slow_proof_is_not_voided_by_those_who_ask_of_it`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use picket_core::ground::{LOOK_LIFE, Look};
use picket_core::power::Power;
use picket_core::record::Phase;
use picket_core::time::BootTime;

use super::command::Command;
use super::{Fatal, Ground, NodeTask};
use crate::parents::ParentAsk;

/// What a look for a child said, for the others that ask.
#[derive(Debug)]
pub(super) struct SharedLook {
    looks: Vec<Look>,
    /// Of which proof it is.
    ground: Weak<Ground>,
    /// What proves reads Off.
    is_good: bool,
    until: BootTime,
}

/// What a command asks of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// None is asked.
    Nothing,
    /// Those whose Off is the proof.
    Proving,
    /// Any.
    Anything,
}

impl NodeTask {
    /// Reads what proves, or tells what was read for another child just now. `good`: only where that was Off.
    pub(super) async fn look_for_children(&mut self, good: bool) -> Result<Vec<Look>, Fatal> {
        if let Some(last) =
            self.shared_look(self.plan.paces.shared_look_grace).filter(|last| last.is_good || !good)
        {
            return Ok(last.looks.clone());
        }
        let (asked_at, needed) = (self.now(), self.needed());
        let ground = self.ground.as_ref().map(Arc::downgrade).unwrap_or_default();
        let looks = self.glance_within(self.plan.paces.child_look, self.lets_go()).await;
        self.store_sessions().await?;
        let now = self.now();
        let proving = || looks.iter().filter(|look| needed.contains(&look.device));
        let is_off = |look: &Look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::Off);
        let is_good = proving().all(is_off);
        let serves = now + now.since(asked_at).max(self.plan.paces.shared_look);
        let oldest = proving().map(Look::asked).min().unwrap_or(asked_at);
        let until = if is_good { serves.min(oldest + LOOK_LIFE * 3 / 4) } else { serves };
        self.shared_look = Some(Box::new(SharedLook { looks: looks.clone(), ground, is_good, until }));
        Ok(looks)
    }

    /// What a command asks of devices, as the node stands.
    pub(super) fn asks(&self, command: &Command) -> Asks {
        let is_proven =
            matches!(self.record().phase, Phase::Fenced | Phase::Released) && self.ground.is_some();
        match command {
            Command::Parent(ParentAsk::Look { .. }, ..)
                if !is_proven || self.shared_look(Duration::ZERO).is_some() =>
            {
                Asks::Nothing
            }
            Command::Parent(ParentAsk::Look { .. } | ParentAsk::Hold { .. }, ..) => Asks::Proving,
            Command::Parent(ParentAsk::LetGo { .. } | ParentAsk::Settle, ..) => Asks::Nothing,
            Command::Parent(ParentAsk::Read, ..) => Asks::Anything,
            Command::VerifyReceipt { id, .. } if !self.holds_receipt(*id) => Asks::Nothing,
            command => {
                let proves = self.record().phase == Phase::Released && !command.is_check();
                match command.asks_devices() {
                    true => Asks::Anything,
                    // A look goes on with the readings of all else.
                    false if proves || command.looks() => Asks::Proving,
                    false => Asks::Nothing,
                }
            }
        }
    }

    /// What was read for a child a moment ago, and was answered.
    pub(super) fn just_told(&self) -> Vec<Look> {
        let last = self.shared_look(Duration::ZERO).filter(|last| last.is_good);
        let answered = |look: &&Look| look.reading.is_some();
        last.into_iter().flat_map(|last| &last.looks).filter(answered).cloned().collect()
    }

    fn shared_look(&self, grace: Duration) -> Option<&SharedLook> {
        let (now, ground) = (self.now(), self.ground.as_ref()?);
        let last = self.shared_look.as_deref()?;
        (now < last.until + grace && last.ground.as_ptr() == Arc::as_ptr(ground)).then_some(last)
    }
}
