//! Before the first off: a breach's pause, the right machine, and what a hold engaged.

use picket_core::budget::Bar;
use picket_core::device::{Expected, Identity};
use picket_core::event::Event;
use picket_core::ids::{DeviceId, EffectId};
use picket_core::outcome::Reason;
use picket_core::parent::child_of;
use picket_core::power::Began;
use picket_core::record::{Cause, Fence, Hold};
use picket_core::roles::{Person, Proof};
use picket_driver::{HoldReport, Identified};

use super::{Run, Stage};
use crate::node::drain::Drained;
use crate::node::{Fatal, NodeTask};

impl NodeTask {
    /// In a breach the first off is sent at once; the following ones back off, and never stop.
    pub(super) async fn back_off_a_breach(&mut self) -> Result<Drained, Fatal> {
        let record = self.record();
        let again = record.breaches.saturating_sub(1);
        if self.open_fence().is_none_or(|fence| fence.cause != Cause::Breach) || again == 0 || self.resumed {
            return Ok(Drained::Yes);
        }
        let here = self.place();
        let pause = self.plan.paces.breach.after_failures(again);
        let until = self.now() + pause;
        self.wait_for(format!("breach {}: the next off", again + 1), "picket", Some(pause));
        while self.now() < until {
            // A BMC that restarts meanwhile is seen to (S2).
            self.look().await?;
            let left = until.since(self.now());
            if self.pause(here, left.min(self.watched_every())).await? {
                return Ok(Drained::Moved);
            }
        }
        // The judge asks the same devices.
        self.lingering.clear();
        Ok(Drained::Yes)
    }

    /// The last look (S15) at pauses and limits, before the hold and again just before the first off; never once an off was sent.
    pub(super) fn barred(&self) -> Option<Bar> {
        self.bar().filter(|_| self.is_unsent())
    }

    /// The pause, or the limit, that holds for the open fence, whether or not its first off is stored: also in a round that a person asked for.
    pub(super) fn bar(&self) -> Option<Bar> {
        self.open_fence().filter(|_| !self.is_held_for_a_breach())?;
        self.office.last_look(&self.plan)
    }

    /// Why nobody who asked for the fence may have the node fenced by the roles of now, before its first off (S14). A hold of a child, of a restore, or
    /// of its own call is judged elsewhere.
    pub(super) fn nobody_may_any_more(&self) -> Option<String> {
        let record = self.record();
        // Who tried it again asked for it, too.
        let is_tried_again = self.open_fence().is_some_and(|fence| fence.round > 0 && fence.by_person);
        let is_asked = self.is_unsent() && !self.is_held_for_a_breach() && !is_tried_again;
        let is_judged_here = |(holder, hold): (&String, &Hold)| {
            child_of(holder).is_none() && !hold.kept && !hold.placed_alone && !hold.askers.is_empty()
        };
        if !is_asked || !record.holds.iter().all(is_judged_here) {
            return None;
        }
        // What a gateway grants to users of its own machine others need not grant: theirs are judged where the fence began.
        let is_ours = matches!(self.sessions.began, Began::Here(_));
        let is_everybodys = |asker: &Person| matches!(asker.proof, Proof::Certificate);
        let askers: Vec<Person> = record.holds.values().flat_map(|hold| hold.askers.clone()).collect();
        if !is_ours && !askers.iter().all(is_everybodys) {
            return None;
        }
        self.office.nobody_may(&askers, &self.plan)
    }

    /// Nothing was sent for the open fence, and nothing is known that wants it: a pause or a limit may end it still (S15).
    pub(in crate::node) fn is_undecided(&self) -> bool {
        let is_first = self.open_fence().is_some_and(|fence| fence.round == 0);
        is_first && self.is_unsent() && self.record().held_through_limits().is_empty()
    }

    pub(in crate::node) fn is_unsent(&self) -> bool {
        self.open_fence().is_some_and(Fence::is_unsent)
    }

    pub(super) async fn identified(
        &mut self,
        run: &mut Run,
        device: DeviceId,
        Identified { identity: said, epoch }: Identified,
    ) -> Result<(), Fatal> {
        // Nothing was known of it until now: another gateway may fence it (S17).
        if !self.is_known_as(&device, &said) && self.parts.own.may_be(&self.plan, &said) && self.is_unsent() {
            self.parts.own.found(&self.plan.id);
            return self.leave_own_host().await;
        }
        if let Some(detail) = self.another_s(&device, &said) {
            // What it says while a person is waited for counts in no life of it.
            self.asked_whose_in.remove(&device);
            return self.give_up(Reason::IdentityMismatch, detail).await;
        }
        if let Some(said) = self.said_and_not_stored(&device, &said) {
            self.persist(|| Event::Said { device: device.clone(), said: said.clone() }).await?;
        }
        if said.is_empty() && self.has_said_whose(&device) {
            // It said so before in this fence, also where nobody knows whether that is right.
            let lost = run.judge.contact(&device, epoch, self.now());
            self.note_loss(run, device.clone(), lost).await?;
            run.failed(&device, self.now());
            return Ok(());
        }
        let (compared, twin) = self.told_apart(&device, &said);
        if twin.is_some() {
            run.judge.has_a_twin(&device);
        }
        let lost = run.judge.identified(&device, compared, epoch, self.now());
        self.note_loss(run, device.clone(), lost).await?;
        if !run.judge.is_identified(&device) {
            // It said so before, and is not another's for saying nothing now. Nor is it known to be ours.
            run.failed(&device, self.now());
            return Ok(());
        }
        let next = if run.hand(&device).held { Stage::Live } else { Stage::Inspect };
        run.enter(&device, next);
        run.hand(&device).calm();
        Ok(())
    }

    /// What the device must say it is: from the settings as they stood, else learned at an earlier check (S13).
    pub(in crate::node) fn expected_identity(&self, device: &DeviceId) -> Expected {
        let topology = self.open_fence().map_or(&self.plan.topology, |fence| &fence.topology);
        let set = topology.device(device).map(|spec| spec.identity.clone()).unwrap_or_default();
        self.record().expected_of(device, &set)
    }

    /// Whether that is what the device is expected to say. An expectation that has nothing in common with what it says tells as little of it as none:
    /// a serial number in the settings, of a device that says a UUID alone.
    pub(in crate::node) fn is_known_as(&self, device: &DeviceId, said: &Identity) -> bool {
        self.expected_identity(device).compare(said).is_as_expected()
    }

    pub(super) async fn held(
        &mut self,
        run: &mut Run,
        device: DeviceId,
        known: Option<EffectId>,
        report: HoldReport,
    ) -> Result<(), Fatal> {
        run.judge.held(&device, &report.engaged);
        self.holds_read.remove(&device);
        self.undone_tries.remove(&device);
        run.enter(&device, Stage::Live);
        run.hand(&device).held = true;
        run.last_look.held(self.now());
        run.hand(&device).calm();
        let result = self.hold_state(&device, report.engaged, report.detail);
        let results = vec![(device, result)];
        let known: Vec<EffectId> = known.into_iter().collect();
        self.persist(|| Event::HoldEnded { results: results.clone(), known: known.clone() }).await?;
        Ok(())
    }
}
