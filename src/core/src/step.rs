//! The lock between deciding and doing: what a step decided can be sent only once the store has it (S5).
//!
//! # Invariants
//!
//! - A stored step opens once, with its own proof of storage, and with no other. Shown by
//!   `the_proof_of_another_step_opens_nothing`, `a_step_that_is_saved_twice_is_opened_once`.
//! - A deposed leader saves nothing (S6). Shown by `a_deposed_leader_saves_nothing`.
//! - A write whose answer was lost is looked up, and is not said not to have happened. Shown by
//!   `where_the_store_does_not_say_it_is_read_again`,
//!   `a_write_that_lands_after_it_was_looked_for_is_not_said_not_to_have_happened`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::election::Leadership;
use crate::ids::{EffectId, Generation, Incarnation, Version};
use crate::ledger::EffectKind;
use crate::order::Opened;
use crate::record::{AuditHead, Fence, NodeRecord};
use crate::store::{Guard, KeyEntry, Store, StoreError, Stored, Write, Written};

/// One effect of a step, not to be sent yet.
#[derive(Clone, Debug)]
pub(crate) struct LockedEffect {
    pub(crate) effect: EffectId,
    pub(crate) generation: Generation,
    pub(crate) kind: EffectKind,
    pub(crate) found: BTreeMap<String, String>,
}

/// What the state machine decided: a new record, and effects that stay locked until it is stored.
#[derive(Debug)]
#[must_use = "a step that is not saved did not happen"]
pub struct Step {
    nonce: u64,
    expected: Version,
    record: NodeRecord,
    fences: Vec<Fence>,
    keys: Vec<(String, KeyEntry)>,
    effects: Vec<LockedEffect>,
    opened: AtomicBool,
}

/// Proof that the store has a step. Made by [`save`] alone.
#[derive(Debug)]
pub struct Saved {
    nonce: u64,
    stored: Stored,
    /// The store's life in which it is stored.
    incarnation: Incarnation,
}

/// What a step came to in the store: the record as it stands there, and the orders that its effects became. Made by [`Step::open`] alone,
/// and not to be copied: nobody can say that something is stored which is not.
#[derive(Debug)]
#[must_use = "what is stored is in the ledger, and nobody else has its orders"]
pub struct Landed {
    stored: Stored,
    orders: Vec<Opened>,
}

impl Landed {
    /// The record, with the version under which it is stored.
    pub fn stored(&self) -> &Stored {
        &self.stored
    }

    /// What may be sent, in that order.
    pub fn orders(&self) -> &[Opened] {
        &self.orders
    }

    /// Both, by value.
    pub fn into_parts(self) -> (Stored, Vec<Opened>) {
        (self.stored, self.orders)
    }
}

static NONCE: AtomicU64 = AtomicU64::new(1);

impl Step {
    pub(crate) fn new(expected: Version, record: NodeRecord) -> Self {
        Self {
            nonce: NONCE.fetch_add(1, Ordering::Relaxed),
            expected,
            record,
            fences: Vec::new(),
            keys: Vec::new(),
            effects: Vec::new(),
            opened: AtomicBool::new(false),
        }
    }

    pub(crate) fn with(
        mut self,
        fences: Vec<Fence>,
        keys: Vec<(String, KeyEntry)>,
        effects: Vec<LockedEffect>,
    ) -> Self {
        self.fences = fences;
        self.keys = keys;
        self.effects = effects;
        self
    }

    /// Writes into the fences of this step where the audit stands, so that its end cannot be cut off unseen.
    pub fn anchor(mut self, head: &AuditHead) -> Self {
        for fence in self.fences.iter_mut().chain(&mut self.record.fence) {
            fence.audit = Some(head.clone());
        }
        self
    }

    /// The fences that are stored with it: those that end here, and the one in the record.
    pub fn fences(&self) -> &[Fence] {
        &self.fences
    }

    /// The record as it will be.
    pub fn record(&self) -> &NodeRecord {
        &self.record
    }

    /// Whether there is nothing of it to be stored, or to be sent: the record stays as it was `before`.
    pub fn changes_nothing(&self, before: &NodeRecord) -> bool {
        self.keys.is_empty() && self.effects.is_empty() && self.record == *before
    }

    /// Whether an effect is entered that was not open `before`: something is about to be sent.
    pub fn begins(&self, before: &NodeRecord) -> bool {
        self.record.ledger.open().iter().any(|open| before.ledger.get(open.id).is_none())
    }

    fn written(&self, written: Written, guard: Guard) -> Saved {
        let (version, revision) = (written.version, written.revision);
        let stored = Stored { version, revision, record: self.record.clone() };
        Saved { nonce: self.nonce, stored, incarnation: guard.incarnation }
    }

    /// Opens the effects with the proof that *this* step is stored.
    ///
    /// # Panics
    /// If `saved` belongs to another step, or the step was opened before: that is a defect of the caller, and sending would be
    /// worse. A step that is saved twice may give two proofs, where the store does not answer and the first write is found.
    pub fn open(&self, saved: Saved) -> Landed {
        assert_eq!(self.nonce, saved.nonce, "effects can be opened only with the proof of their own step");
        assert!(!self.opened.swap(true, Ordering::Relaxed), "a step is opened once");
        let opened = |locked| Opened::new(&saved.stored.record, saved.incarnation, locked);
        let orders = self.effects.iter().cloned().filter_map(opened).collect();
        Landed { stored: saved.stored, orders }
    }
}

/// How often a write that was not answered is written again.
const TRIES: u32 = 2;

/// Stores a step under the leadership's guard. The only maker of [`Saved`].
///
/// Where the store does not say whether the write happened, the record is read again: only if exactly this step
/// stands there, under a guard that still holds, it is saved. If it is not there it may be on its way still, so it is
/// written again: that one takes its place, or finds it there.
///
/// # Errors
/// [`StoreError::Unavailable`] only where the write surely did not happen and never will; [`StoreError::Unknown`] where it
/// may be stored, or may yet be.
pub async fn save(store: &dyn Store, leadership: &Leadership, step: &Step) -> Result<Saved, StoreError> {
    // A leadership that is over decides nothing any more, also where the store does not know that yet (S6).
    let leads = || leadership.check().map_err(|ended| StoreError::Deposed(ended.to_string()));
    leads()?;
    let guard = leadership.guard();
    let write = Write {
        expected: step.expected,
        record: step.record.clone(),
        fences: step.fences.clone(),
        keys: step.keys.clone(),
    };
    let why = match store.write(guard, write.clone()).await {
        Ok(written) => return Ok(step.written(written, guard)),
        Err(StoreError::Unknown(why)) => why,
        Err(error) => return Err(error),
    };
    // A store that cannot be asked now leaves it unknown: "unavailable" would say that nothing was written.
    let unknown = |error| match error {
        StoreError::Unavailable(now) => StoreError::Unknown(format!("{why}; asked again: {now}")),
        other => other,
    };
    let node = &step.record.node;
    for _ in 0..TRIES {
        let stored = store.load(node).await.map_err(unknown)?;
        if let Some(stored) = stored.filter(|stored| stored.version != step.expected) {
            if stored.version != step.expected.next() || stored.record != step.record {
                return Err(StoreError::Conflict {
                    node: node.clone(),
                    expected: step.expected,
                    found: stored.version,
                });
            }
            store.check(guard, node, stored.version).await.map_err(unknown)?;
            return Ok(Saved { nonce: step.nonce, stored, incarnation: guard.incarnation });
        }
        leads()?;
        match store.write(guard, write.clone()).await {
            Ok(written) => return Ok(step.written(written, guard)),
            // The first one may have arrived meanwhile: it is looked for once more.
            Err(StoreError::Unknown(_) | StoreError::Conflict { .. }) => {}
            Err(error) => return Err(unknown(error)),
        }
    }
    Err(StoreError::Unknown(why))
}

#[cfg(test)]
mod tests;
