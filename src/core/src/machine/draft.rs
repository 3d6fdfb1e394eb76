//! A record being changed, and what goes with it into one write.

use std::collections::BTreeMap;
use std::time::Duration;

use super::refused::Refused;
use crate::device::MaxInFlight;
use crate::event::{BoundKey, Holder};
use crate::ids::{DeviceId, EffectId, Generation, Term, Version};
use crate::ledger::{EffectKind, OpenEffect, describe};
use crate::outcome::ASKS;
use crate::record::{Bringing, Fence, Hold, Moment, NodeRecord, Phase, Then};
use crate::step::{LockedEffect, Step};
use crate::store::KeyEntry;
use crate::time::WallTime;

/// The most bytes of JSON with which a text is stored: a record with as many texts as there may be is one request to etcd, and its
/// fence with it.
const LONGEST: usize = 1_024;

/// The text, or its beginning and how many of its bytes were left out.
pub(super) fn bounded(mut text: String) -> String {
    let mut length = 0;
    let kept = text.char_indices().find_map(|(at, one)| {
        length += json_length(one);
        (length > LONGEST).then_some(at)
    });
    if let Some(kept) = kept {
        let left_out = text.len() - kept;
        text.truncate(kept);
        text += &format!(" … and {left_out} bytes more");
    }
    text
}

/// How many bytes it has in JSON at most.
fn json_length(one: char) -> usize {
    match one {
        '"' | '\\' => 2,
        '\0'..='\x1f' => 6,
        one => one.len_utf8(),
    }
}

pub(super) struct Draft {
    pub(super) record: NodeRecord,
    pub(super) term: Term,
    pub(super) at: WallTime,
    /// In which session what is entered will be sent, by device.
    pub(super) sessions: BTreeMap<DeviceId, String>,
    /// How long what is entered may live, by device, as the far side says now.
    pub(super) lives: BTreeMap<DeviceId, MaxInFlight>,
    ended: Vec<Fence>,
    keys: Vec<(String, KeyEntry)>,
    effects: Vec<LockedEffect>,
}

impl Draft {
    pub(super) fn new(record: NodeRecord, term: Term, at: WallTime) -> Self {
        let (sessions, lives) = (BTreeMap::new(), BTreeMap::new());
        Self { record, term, at, sessions, lives, ended: Vec::new(), keys: Vec::new(), effects: Vec::new() }
    }

    pub(super) fn finish(self, version: Version) -> Step {
        let mut fences = self.ended;
        fences.extend(self.record.fence.clone());
        Step::new(version, self.record).with(fences, self.keys, self.effects)
    }

    pub(super) fn expect_phase(
        &self,
        wanted: &'static str,
        phases: &[&str],
        hint: &'static str,
    ) -> Result<(), Refused> {
        let phase = self.record.phase.label();
        if phases.contains(&phase) { Ok(()) } else { Err(Refused::Phase { wanted, phase, hint }) }
    }

    pub(super) fn fence(&mut self) -> Result<&mut Fence, Refused> {
        let phase = self.record.phase.label();
        self.record.fence.as_mut().ok_or(Refused::Phase {
            wanted: "this",
            phase,
            hint: "the node has no open fence",
        })
    }

    /// Whether the fence in the record is of the present generation: an unfence ends it by starting one of its own.
    pub(super) fn fence_is_current(&self) -> bool {
        self.record.fence.as_ref().is_some_and(|fence| fence.generation == self.record.generation)
    }

    pub(super) fn moment(&mut self, what: impl Into<String>) {
        let (at, phase) = (self.at, self.record.phase.label().to_owned());
        if let Some(fence) = &mut self.record.fence {
            if fence.moments.len() >= Fence::MOMENTS {
                // The beginning says why it was opened; what goes is the oldest of the rest, but for the reason why a
                // person is asked: whoever joins or holds again and again would push it out.
                let oldest = Fence::MOMENTS / 4;
                let reason = fence.moments.iter().rposition(|moment| moment.what.starts_with(ASKS));
                fence.moments.remove(oldest + usize::from(reason == Some(oldest)));
            }
            fence.moments.push(Moment { at, phase, what: bounded(what.into()) });
        }
    }

    /// The same of what may happen again and again: it is told once a fence.
    pub(super) fn moment_once(&mut self, what: String) {
        let what = bounded(what);
        let is_told = |fence: &Fence| fence.moments.iter().any(|moment| moment.what == what);
        if !self.record.fence.as_ref().is_some_and(is_told) {
            self.moment(what);
        }
    }

    /// Enters an effect into the ledger and locks it for sending. One that this leadership opened in this generation
    /// and that is open still is sent again under its old entry, unless it would go in another session: each session is
    /// ended for itself. So is each hold.
    pub(super) fn enter(
        &mut self,
        kind: EffectKind,
        life: Option<Duration>,
        found: BTreeMap<String, String>,
    ) {
        let (generation, term) = (self.record.generation, self.term);
        let session = kind.device().and_then(|device| self.sessions.get(device)).cloned();
        let life = self.life_now(&kind, life);
        // The end of a hold may be known, where that of the one before it is not. What nothing bounds would pile up.
        let is_hold = matches!(kind, EffectKind::Hold(_)) && life.is_some();
        let same = |open: &&OpenEffect| {
            !is_hold
                && open.kind == kind
                && open.generation == generation
                && open.term == term
                && open.session == session
        };
        let effect = match self.record.ledger.open().iter().find(same).map(|open| open.id) {
            Some(open) => {
                self.record.ledger.lengthen(open, life);
                open
            }
            None => self.record.ledger.enter(kind.clone(), generation, term, self.at, life, session),
        };
        self.effects.push(LockedEffect { effect, generation, kind, found });
    }

    /// What the far side says now holds before what the settings say.
    fn life_now(&self, kind: &EffectKind, life: Option<Duration>) -> Option<Duration> {
        let now = kind.device().and_then(|device| self.lives.get(device));
        now.map_or(life, |now| kind.life_at(*now))
    }

    /// Enters an effect that is new in any case: each attempt has an entry, and an end, of its own.
    pub(super) fn enter_new(&mut self, kind: EffectKind, life: Option<Duration>) -> EffectId {
        let generation = self.record.generation;
        let effect = self.record.ledger.enter(kind.clone(), generation, self.term, self.at, life, None);
        self.effects.push(LockedEffect { effect, generation, kind, found: BTreeMap::new() });
        effect
    }

    /// Closes an effect if it is of that kind: an end of one thing is not taken for the end of another.
    pub(super) fn close_if(&mut self, id: EffectId, wanted: impl Fn(&EffectKind) -> bool) {
        if self.record.ledger.get(id).is_some_and(|open| wanted(&open.kind)) {
            self.record.ledger.close(id);
        }
    }

    pub(super) fn bind(&mut self, key: Option<BoundKey>) {
        let entry = key.map(|bound| self.entry_of(bound));
        self.keys.extend(entry);
    }

    /// The same of a request that changes nothing, or renews what stands.
    pub(super) fn bind_idle(&mut self, key: BoundKey, by: &str) {
        let (key, entry) = self.entry_of(key);
        self.record.idle_keys.bind(key, entry, by);
    }

    fn entry_of(&self, bound: BoundKey) -> (String, KeyEntry) {
        let fence = self.record.fence.as_ref().map(|fence| fence.id);
        (bound.key, KeyEntry { digest: bound.digest, fence, at: self.at, outcome: None })
    }

    pub(super) fn place(&mut self, holder: &Holder) {
        let drop_when_released = holder.then == Then::PowerOn;
        let since = self.at;
        let (reason, by) = (bounded(holder.reason.clone()), holder.by.clone());
        let hold = Hold {
            reason,
            by,
            since,
            drop_when_released,
            breached: false,
            ended: false,
            placed_alone: false,
            kept: false,
            askers: holder.asker.iter().cloned().collect(),
        };
        let asker = &holder.asker;
        self.record
            .holds
            .entry(holder.name.clone())
            // Asked for twice, the hold is dropped by itself only if both wanted that. Whoever asks anew begins from zero.
            .and_modify(|old| {
                old.drop_when_released &= drop_when_released;
                old.breached = false;
                old.is_asked_by(asker.as_ref());
            })
            .or_insert(hold);
    }

    /// Drops the holds that were to last until everything is released; with none left it is brought back.
    pub(super) fn drop_released(&mut self) {
        self.record.holds.retain(|_, hold| !hold.drop_when_released);
        if self.record.holds.is_empty() {
            self.begin_unfencing(Bringing::PowerOn);
            self.moment("no hold is left: bringing it back");
        }
    }

    /// The fence in the record ends here; it stays in the history.
    pub(super) fn end_fence(&mut self) -> Option<Fence> {
        let mut fence = self.record.fence.take()?;
        fence.ended_at = Some(self.at);
        self.record.off_was_sent = fence.off_sent;
        self.ended.push(fence.clone());
        Some(fence)
    }

    pub(super) fn next_generation(&mut self) -> Generation {
        self.record.generation = self.record.generation.next();
        self.record.generation
    }

    /// All holds are gone: the node is to be brought back, under a generation of its own.
    pub(super) fn begin_unfencing(&mut self, bringing: Bringing) {
        self.next_generation();
        self.record.bringing = bringing;
        self.record.phase = Phase::Unfencing;
    }

    pub(super) fn bars(&self, barred: impl Fn(&EffectKind) -> bool) -> Result<(), Refused> {
        let open: Vec<String> =
            self.record.ledger.open().iter().filter(|e| barred(&e.kind)).map(|e| describe(&e.kind)).collect();
        if open.is_empty() { Ok(()) } else { Err(Refused::OpenEffects(open)) }
    }
}
