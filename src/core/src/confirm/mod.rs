//! The judge: readings in, proof out. [`ConfirmedOff`] has no other maker.
//!
//! The judge sees every answer with its asked-at, answered-at and epoch, every off as its device took it,
//! and the ledger. `Trace` is one device, `Judge` a node.
//!
//! # Invariants
//!
//! - No Off counts unless it was asked for after our own off was taken, in the same epoch (S2). Shown by
//!   `confirmed_only_as_the_law_says`, `what_was_asked_before_the_off_was_answered_does_not_count`.
//! - An off is never due without a look before it (S2). Shown by
//!   `nothing_is_sent_before_the_device_was_looked_at`,
//!   `a_look_that_is_old_is_not_the_last_thing_before_the_off`.
//! - Whatever devices do, a confirmed node is off and stays off, but for what `docs/remains.md` names.
//!   Shown by `confirmed_only_when_it_stays_dark`.
//! - An identity holds in the epoch in which it was asked, and in no other (S13). In a new epoch no Off
//!   counts and no off is due before the device was asked again. Shown by
//!   `a_fence_whose_bmc_is_another_from_any_request_on_switches_and_believes_no_other`.
//! - A device that said once whose machine it controls, in this fence or at a check, is not believed in
//!   silence (S13). Shown by `a_successor_knows_what_the_bmc_said_first`,
//!   `a_successor_knows_that_the_bmc_told_an_earlier_check_whose_it_is`.
//! - The long window is asked for where the first look was not On or the off was answered "already off". It
//!   also follows without epochs, and after a takeover. Shown by `after_a_first_look_that_said_off`,
//!   `after_an_answer_already_off`, `without_epochs`, `for_a_successor`.
//! - While an on or an unhold is open no Off counts (S5). Shown by `no_off_counts_while_an_on_is_open`,
//!   `an_unhold_that_opens_after_the_count_bars_the_verdict`.
//! - An honest node is confirmed in the end, however slowly it falls. Shown by
//!   `an_honest_node_is_confirmed_in_the_end`.

mod lacks;
mod own_off;
mod proof;
mod run;
mod shape;
#[cfg(test)]
mod tests;
mod trace;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

pub use proof::ConfirmedOff;
use trace::Trace;
pub use trace::restart::DWELL as RESTART_DWELL;
pub use trace::silence::SILENCE;

use crate::device::{DeviceClass, Grade, IdentityMatch};
use crate::ids::{DeviceId, FenceId, Generation, NodeId, ReleaseId, Term};
use crate::ledger::Ledger;
use crate::power::{Began, Epoch, Power, Reading};
use crate::record::{NodeRecord, Phase};
use crate::rules::Rules;
use crate::time::BootTime;
use crate::topology::Topology;

/// What the judge says of the level being tried.
#[derive(Debug)]
pub enum Verdict {
    /// Not yet.
    Open,
    /// Proven off.
    Confirmed(ConfirmedOff),
    /// It would be proven, but with a grade below the least that was asked for.
    GradeTooLow {
        /// The grade.
        grade: Grade,
        /// What lowered it, in words.
        lowered_by: Vec<String>,
        /// It is what was read that lowered it too far: a later reading may say more.
        may_rise: bool,
    },
    /// Devices say Off whose session was lost within this fence, and which were not seen on since.
    Restarted(Vec<DeviceId>),
    /// Host devices contradict each other, or a host is on though its supplies are off.
    Contradiction(String),
}

/// Judges one node's fence, from the evidence that this process saw.
///
/// It may be copied, and that weakens nothing: a judge opens no door. [`verdict`](Self::verdict) makes a proof on every
/// call that the evidence bears, so a copy says what the judge itself would say. The lock is [`ConfirmedOff`], which is
/// not `Clone`.
#[derive(Clone, Debug)]
pub struct Judge {
    node: NodeId,
    fence: FenceId,
    generation: Generation,
    term: Term,
    round: u32,
    min_grade: Grade,
    topology: Topology,
    level: usize,
    hold_up: Duration,
    contradiction: Duration,
    traces: BTreeMap<DeviceId, Trace>,
    /// When a host device, of whatever level, first read Off after our own off.
    first_host_off: Option<BootTime>,
    /// A release whose far side may know the node by its name alone.
    by_name: Option<ReleaseId>,
}

/// How it is said of a host device that it answers although all supplies of the node are cut.
pub const HAS_POWER: &str = "still answers: it has power";

/// How it is said of a release whose far side may know the node by its name alone.
pub fn by_name(release: &ReleaseId) -> String {
    format!("release {release} may know the node by its name alone")
}

impl Judge {
    /// A judge for the fence that is open in `record`; `None` if none is being confirmed.
    ///
    /// `resumed`: the fence was begun by another process or leadership; the long window is asked for throughout.
    pub fn new(record: &NodeRecord, term: Term, rules: &Rules, resumed: bool) -> Option<Self> {
        let fence = record.fence.as_ref().filter(|_| record.phase == Phase::Fencing)?;
        let trace = |spec: &crate::device::DeviceSpec| {
            let (is_learned, is_lost) = (record.expected(spec).is_learned, fence.lost.contains(&spec.id));
            let mut trace = Trace::new(spec.clone(), is_learned, resumed, is_lost);
            trace.seen_off = fence.seen_off.contains(&spec.id);
            trace.proved_held = fence.proved_held.get(&spec.id).cloned().unwrap_or_default();
            (spec.id.clone(), trace)
        };
        let judge = Self {
            node: record.node.clone(),
            fence: fence.id,
            generation: record.generation,
            term,
            round: fence.round,
            min_grade: fence.min_grade,
            topology: fence.topology.clone(),
            level: fence.level,
            hold_up: rules.supply_hold_up,
            contradiction: rules.contradiction,
            traces: fence.topology.devices().map(trace).collect(),
            first_host_off: None,
            by_name: fence.by_name(|_| None).cloned(),
        };
        Some(judge.known_to_say(&fence.identified))
    }

    /// When the fence began, on our boot-time clock: a session that had stopped answering before was not lost within
    /// the fence (S2). Without this every loss counts.
    #[must_use]
    pub fn begun(mut self, began: Began) -> Self {
        self.traces.values_mut().for_each(|trace| trace.began(began));
        self
    }

    /// Devices that said before whose machine they control, in this fence or at a check: that they say nothing now is no answer (S13).
    #[must_use]
    pub fn known_to_say<'d>(mut self, devices: impl IntoIterator<Item = &'d DeviceId>) -> Self {
        for device in devices {
            if let Some(trace) = self.traces.get_mut(device) {
                trace.was_identified = true;
            }
        }
        self
    }

    /// When a person, to this process, said that he looked at the machine: a loss from before that is no new one.
    #[must_use]
    pub fn seen_off_at(mut self, at: Option<BootTime>) -> Self {
        self.traces.values_mut().for_each(|trace| trace.seen_off_at = at);
        self
    }

    /// A release whose far side may know the node by its name alone, by the settings of now; `None`: there is none.
    #[must_use]
    pub fn by_name(mut self, release: Option<ReleaseId>) -> Self {
        self.knows_by_name(release);
        self
    }

    /// The same as it is known now.
    pub fn knows_by_name(&mut self, release: Option<ReleaseId>) {
        self.by_name = release;
    }

    /// Goes on with another level. What the devices showed so far stays.
    pub fn try_level(&mut self, level: usize) {
        self.level = level;
    }

    /// What comparing its identity said, as it was answered in this epoch. It holds there and in no other: in a new one nothing
    /// is sent, and no Off counts, before the device is asked again (S13). True if the answer shows that the session was lost: that
    /// must be stored.
    pub fn identified(
        &mut self,
        device: &DeviceId,
        said: IdentityMatch,
        epoch: Option<Epoch>,
        at: BootTime,
    ) -> bool {
        let Some(trace) = self.traces.get_mut(device) else { return false };
        let lost = trace.contact(epoch, at);
        trace.identified(said);
        lost
    }

    /// What the device said, another node's device says of itself too: it identifies neither, for as long as that is so.
    pub fn has_a_twin(&mut self, device: &DeviceId) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.was_identified = false;
        }
    }

    /// Whether the device said whose machine it controls in the epoch in which it answers now, or is not known ever to say it.
    pub fn is_identified(&self, device: &DeviceId) -> bool {
        self.traces.get(device).is_some_and(Trace::is_identified)
    }

    /// Whether the device answers, and does not say whose machine it controls, as it did before.
    pub fn withholds_its_identity(&self, device: &DeviceId) -> bool {
        let withholds = |trace: &Trace| trace.answered && trace.was_identified && !trace.is_identified();
        self.traces.get(device).is_some_and(withholds)
    }

    /// Devices that said whose machine they control, and it is the node's.
    pub fn identities(&self) -> Vec<DeviceId> {
        let is_known = |trace: &&Trace| trace.identity.is_as_expected();
        self.traces.values().filter(is_known).map(|trace| trace.spec.id.clone()).collect()
    }

    /// The epoch in which the device was identified, where it has any: what is sent to it goes in no other (S13).
    pub fn life(&self, device: &DeviceId) -> Option<u64> {
        self.traces.get(device).and_then(Trace::life)
    }

    /// What of its hold was found engaged, before anything of it was changed. Where the device proved the node off with that hold before,
    /// in this generation, its Off is believed again after a loss (S2).
    pub fn hold_was_found(&mut self, device: &DeviceId, engaged: &[String]) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.hold_was_found(engaged);
        }
    }

    /// Whether the device's hold is to be read again: it was lost, and an engaged hold would let its Off count.
    pub fn wants_its_hold_read(&self, device: &DeviceId) -> bool {
        self.traces.get(device).is_some_and(Trace::wants_its_hold_read)
    }

    /// What was engaged to keep it off; empty: nothing. The first look, and our own off, come after this (S2).
    pub fn held(&mut self, device: &DeviceId, engaged: &[String]) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.hold = engaged.to_vec();
            trace.begin_anew();
        }
    }

    /// What of that still stands, as it was read after our off (S11): the evidence says no more.
    pub fn hold_stands(&mut self, device: &DeviceId, engaged: &[String]) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.hold.retain(|word| engaged.contains(word));
        }
    }

    /// The device took our off. True if this shows that its session was lost: that must be stored.
    /// An off that was taken in a new epoch does not count: there, one is sent after a look and after the store.
    pub fn off_taken(
        &mut self,
        device: &DeviceId,
        asked_at: BootTime,
        answered_at: BootTime,
        epoch: Option<Epoch>,
        already: bool,
    ) -> bool {
        let Some(trace) = self.traces.get_mut(device) else { return false };
        let known = trace.knows(epoch);
        let lost = trace.contact(epoch, answered_at);
        let lost_unseen = trace.heard(asked_at, answered_at);
        if known && !lost_unseen {
            trace.off_taken(asked_at, answered_at, epoch.map(|epoch| epoch.id), already);
        } else {
            trace.off_failed();
        }
        lost || lost_unseen
    }

    /// The device itself answered our off with a refusal. One that took an off of ours in this life, and has read Off since, answers
    /// so because it is off: that counts as the off that is sent again at the end of the long window, and as no first one. True if
    /// this shows that its session was lost: that must be stored.
    pub fn off_refused(
        &mut self,
        device: &DeviceId,
        asked_at: BootTime,
        answered_at: BootTime,
        epoch: Option<Epoch>,
    ) -> bool {
        let Some(trace) = self.traces.get_mut(device) else { return false };
        let known = trace.knows(epoch);
        let lost = trace.contact(epoch, answered_at);
        let lost_unseen = trace.heard(asked_at, answered_at);
        match known && !lost_unseen {
            true => trace.off_refused(asked_at, answered_at),
            false => trace.off_failed(),
        }
        lost || lost_unseen
    }

    /// Our off ended Unknown, or never left: after another look it must be sent again, and nothing counts until it
    /// is taken.
    pub fn off_failed(&mut self, device: &DeviceId) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.off_failed();
        }
    }

    /// An answer. True if it shows that the device's session was lost: that must be stored.
    pub fn reading(&mut self, device: &DeviceId, reading: &Reading, ledger: &Ledger) -> bool {
        let Some(trace) = self.traces.get_mut(device) else { return false };
        let lost = trace.contact(reading.epoch, reading.asked_at);
        let lost = trace.heard(reading.asked_at, reading.answered_at) || lost;
        trace.reading(reading, ledger.bars_proof());
        if trace.spec.class == DeviceClass::Host && reading.power == Power::On {
            self.traces.values_mut().for_each(Trace::believe_no_look);
        }
        let Some(trace) = self.traces.get(device) else { return lost };
        if trace.spec.class == DeviceClass::Host && trace.run().is_some() {
            self.first_host_off.get_or_insert(reading.answered_at);
        } else if reading.power == Power::On && !self.some_host_says_off() {
            // They agree again: what comes later is another contradiction.
            self.first_host_off = None;
        }
        lost
    }

    /// No answer to what was asked at `asked_at`.
    pub fn silence(&mut self, device: &DeviceId, asked_at: BootTime, now: BootTime) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.silence(asked_at, now);
        }
    }

    /// What was to be asked at `asked_at` never left: it is no look at the device, and no silence of it (S3).
    pub fn not_asked(&mut self, device: &DeviceId, asked_at: BootTime) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.not_asked(asked_at);
        }
    }

    /// Something other than power was answered (identity, hold), in this epoch. True if the session was lost.
    pub fn contact(&mut self, device: &DeviceId, epoch: Option<Epoch>, at: BootTime) -> bool {
        self.traces.get_mut(device).is_some_and(|trace| trace.contact(epoch, at))
    }

    /// It answered, whatever was asked. True if a device without epochs was silent for so long before that it may have restarted:
    /// that must be stored.
    pub fn heard(&mut self, device: &DeviceId, asked_at: BootTime, answered_at: BootTime) -> bool {
        self.traces.get_mut(device).is_some_and(|trace| trace.heard(asked_at, answered_at))
    }

    /// A command whose end is not known: a device without epochs is to be heard from then on.
    pub fn may_have_taken(&mut self, device: &DeviceId, asked_at: BootTime) {
        if let Some(trace) = self.traces.get_mut(device) {
            trace.may_have_taken(asked_at);
        }
    }

    /// A device without epochs showed that it restarted, in its own words. To be stored.
    pub fn restarted(&mut self, device: &DeviceId) -> bool {
        self.traces.get_mut(device).is_some_and(Trace::restarted)
    }

    /// When the off was taken again that seals the long window, where each device of the level has one and still reads Off: what lacks then is
    /// that the host devices elsewhere are asked once more.
    pub fn sealed_at(&self) -> Option<BootTime> {
        let sealed = self.level_traces().map(|trace| trace.run().and(trace.sealed_at()));
        sealed.collect::<Option<Vec<BootTime>>>()?.into_iter().max()
    }

    /// Whether anything of the level answered at all.
    pub fn level_answers(&self) -> bool {
        self.level_traces().any(|trace| trace.answered)
    }

    /// Devices of the level to which an off is to be sent now.
    pub fn wants_off(&self) -> Vec<DeviceId> {
        self.level_traces().filter(|trace| trace.wants_off()).map(|trace| trace.spec.id.clone()).collect()
    }

    /// Until when the device's last look lets an off go out. In a session that was made after that, what the device
    /// says once it took the off could not be believed any more.
    pub fn look_serves_until(&self, device: &DeviceId) -> BootTime {
        self.traces.get(device).and_then(Trace::look_serves_until).unwrap_or_default()
    }

    /// When each device is to be asked next: those of the level, and, once the level has begun to fall,
    /// the host devices of the others.
    pub fn readings_due(&self) -> Vec<(DeviceId, BootTime)> {
        let falling = self.level_traces().any(|trace| trace.run().is_some());
        let of_level = self.level_traces().filter(|trace| !trace.wants_off()).map(|trace| trace.read_at());
        let others = self.other_hosts().filter(|_| falling).map(|trace| trace.objects_at());
        of_level.chain(others).collect()
    }

    fn level_traces(&self) -> impl Iterator<Item = &Trace> {
        let level = self.topology.level(self.level);
        level.into_iter().flat_map(|level| &level.devices).filter_map(|spec| self.traces.get(&spec.id))
    }

    fn other_hosts(&self) -> impl Iterator<Item = &Trace> {
        let in_level = |id: &DeviceId| {
            self.topology
                .level(self.level)
                .is_some_and(|level| level.devices.iter().any(|spec| spec.id == *id))
        };
        self.traces
            .values()
            .filter(move |trace| trace.spec.class == DeviceClass::Host && !in_level(&trace.spec.id))
    }

    fn some_host_says_off(&self) -> bool {
        let says_off = |trace: &Trace| trace.last().is_some_and(|word| word.power == Power::Off);
        self.traces.values().any(|trace| trace.spec.class == DeviceClass::Host && says_off(trace))
    }
}
