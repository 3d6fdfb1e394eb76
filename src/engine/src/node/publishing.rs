//! What others see of a node: its record, as the store has it, and what is known besides.
//!
//! # Invariants
//!
//! - A record that says Fenced is shown only while the readings that it goes by are fresh (S1). Where the
//!   store took longer than that, power is read once more first. Shown by
//!   `fenced_is_told_by_a_reading_that_is_newer_than_the_store_s_answer`.

use std::sync::Arc;
use std::time::Duration;

use picket_core::event::Event;
use picket_core::ground::{LOOK_LIFE, Look};
use picket_core::ids::DeviceId;
use picket_core::order::Opened;
use picket_core::record::Phase;
use picket_core::time::BootTime;

use super::{Failure, Fatal, NodeTask, Place};
use crate::view::{DeviceLive, Live, NodeView, Wait};

/// The readings by which a step is decided.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Until when they are fresh, where the step that is being stored says so.
    fresh_until: Option<BootTime>,
    /// They were not fresh any more when the store had answered, and power was not read since.
    are_old: bool,
    /// What was read while the proof was being stored.
    pub(super) heard: Vec<Look>,
}

impl NodeTask {
    /// Applies what was decided by readings that are fresh until then.
    pub(super) async fn apply_by_readings(
        &mut self,
        event: Event<'_>,
        fresh_until: BootTime,
    ) -> Result<Vec<Opened>, Failure> {
        self.readings.fresh_until = Some(fresh_until);
        self.readings.heard.clear();
        let applied = self.apply(event).await;
        self.readings.fresh_until = None;
        applied
    }

    /// A proof is being stored: it is none yet, and what speaks against it is heard all the same.
    pub(super) fn is_being_confirmed(&self) -> bool {
        matches!(self.record().phase, Phase::Fencing | Phase::NeedsOperator(_))
            && self.readings.fresh_until.is_some()
    }

    /// Notes whether the step that was just stored says Fenced by readings that are too old for that. `began`: when it was decided.
    pub(super) fn weigh_age(&mut self, before: Place, began: BootTime) {
        // Nobody watches power while the store hangs over a step, and the node may have been switched on meanwhile.
        let fresh_until = self.readings.fresh_until.unwrap_or(began + LOOK_LIFE);
        let is_late = self.place() != before && self.now() > fresh_until;
        let record = self.record();
        let says_off = matches!(record.phase, Phase::Fenced | Phase::Released) && !record.is_groundless();
        // Of an orphan nobody reads power.
        let says_off = says_off && self.orphan.is_none();
        self.readings.are_old = says_off && (self.readings.are_old || is_late);
    }

    /// Whether this leadership holds a proof that says something of now.
    pub(super) fn is_proven_now(&self) -> bool {
        self.ground.is_some() && !self.readings.are_old
    }

    /// Reads power once more where the store took longer than readings are fresh. What is stored is shown if the node is off still; else the
    /// proof begins anew, or it is a breach.
    pub(super) async fn show_if_still_off(&mut self) -> Result<(), Fatal> {
        let mut looked = 0;
        while self.readings.are_old {
            if looked > 0 {
                // What refuses at once may answer a moment later.
                tokio::time::sleep(self.plan.paces.old_readings).await;
            }
            let looks = self.look().await?;
            // Each of these moves the node, and what it is then is shown.
            if let Some(why) = self.gives_up_what_restarted().await?
                && self.readings.are_old
            {
                return self.lose_proof(why).await;
            }
            if !self.readings.are_old || self.found_on(&looks).await? || self.proof_is_gone(&looks).await? {
                return Ok(());
            }
            // Without a ground nothing but an On speaks against what is stored.
            let is_off = self.ground.as_ref().is_none_or(|held| {
                held.ground.is_seen_off(&looks, self.now(), |device| self.hands.time(device))
            });
            looked += 1;
            if is_off {
                self.readings.are_old = false;
                self.live_mut().proven = self.is_proven_now();
                self.show_stored();
            } else if looked >= self.plan.paces.looks_without_off {
                return self.lose_proof("it did not read Off once the store had answered".to_owned()).await;
            }
        }
        Ok(())
    }

    /// Shows what is stored, and says that it changed.
    pub(super) fn show_stored(&self) {
        self.publish();
        if !self.readings.are_old {
            let _ = self.feed.send((self.stored.revision, self.record().node.clone()));
        }
    }

    pub(super) fn publish(&self) {
        let stored = match self.readings.are_old {
            true => self.view.borrow().stored.clone(),
            false => self.stored.clone(),
        };
        self.view.send_replace(NodeView { stored, live: self.live.clone(), plan: self.plan.clone() });
    }

    pub(super) fn set_wait(&mut self, wait: Option<Wait>) {
        if self.live.wait != wait {
            self.live_mut().wait = wait;
            self.publish();
        }
    }

    pub(super) fn wait_for(
        &mut self,
        what: impl Into<String>,
        whose: impl Into<String>,
        for_at_most: Option<Duration>,
    ) {
        let until = for_at_most.map(|time| self.wall().after(time));
        let wait = Wait { what: what.into(), whose: whose.into(), until };
        // A deadline that moves by the moment of asking alone is not news.
        let same = |old: &Wait| old.what == wait.what && old.whose == wait.whose;
        if !self.live.wait.as_ref().is_some_and(same) {
            self.set_wait(Some(wait));
        }
    }

    pub(super) fn device_live(&mut self, device: &DeviceId) -> &mut DeviceLive {
        Arc::make_mut(self.live_mut().devices.entry(device.clone()).or_default())
    }

    pub(super) fn live_mut(&mut self) -> &mut Live {
        Arc::make_mut(&mut self.live)
    }
}
