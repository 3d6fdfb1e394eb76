//! The store's trait, read literally, and what is done to it and to a store.

use std::collections::BTreeMap;

use picket_core::ids::{FenceId, NodeId, Revision, Term, Version};
use picket_core::outcome::Outcome;
use picket_core::record::{Fence, NodeRecord};
use picket_core::store::{FenceQuery, Guard, KeyEntry, Note, StoreError, Stored, Write, Written};
use picket_core::time::WallTime;
use proptest::prelude::*;

use super::*;

pub const NODES: [&str; 3] = ["r1n01", "r1n02", "r1n1"];
pub const NOTES: [&str; 4] = ["pause/1", "pause/10", "receipt-key/1", ""];
pub const KEYS: [&str; 3] = ["k1", "k2", ""];
pub const DIGESTS: [&str; 2] = ["a", "b"];

/// What is done, with small numbers that stand for things that exist or nearly do.
#[derive(Clone, Debug)]
pub enum Op {
    TakeTerm,
    Write {
        node: usize,
        off_by: i8,
        guard: Who,
        fences: Vec<(u8, Option<u8>)>,
        keys: Vec<(usize, usize, u8, u8)>,
    },
    Check {
        node: usize,
        off_by: i8,
        guard: Who,
    },
    Fences {
        node: Option<usize>,
        before: Option<u8>,
        limit: usize,
    },
    Changed {
        back: i8,
    },
    Forget {
        before: u8,
        guard: Who,
    },
    Note {
        name: usize,
        off_by: i8,
        guard: Who,
        gone: bool,
    },
    Reopen,
}

#[derive(Clone, Copy, Debug)]
pub enum Who {
    Leader,
    Former,
    Foreign,
}

pub fn who() -> impl Strategy<Value = Who> {
    prop_oneof![8 => Just(Who::Leader), 1 => Just(Who::Former), 1 => Just(Who::Foreign)]
}

pub fn op() -> impl Strategy<Value = Op> {
    let off_by = prop_oneof![6 => Just(0_i8), 1 => Just(-1), 1 => Just(1)];
    let fences = prop::collection::vec((0..12_u8, prop::option::of(0..14_u8)), 0..3);
    let keys = prop::collection::vec((0..KEYS.len(), 0..DIGESTS.len(), 0..12_u8, 0..14_u8), 0..3);
    prop_oneof![
        1 => Just(Op::TakeTerm),
        8 => (0..NODES.len(), off_by.clone(), who(), fences, keys)
            .prop_map(|(node, off_by, guard, fences, keys)| Op::Write { node, off_by, guard, fences, keys }),
        2 => (0..NODES.len(), off_by.clone(), who()).prop_map(|(node, off_by, guard)| Op::Check { node, off_by, guard }),
        2 => (prop::option::of(0..NODES.len()), prop::option::of(0..12_u8), 0..6_usize)
            .prop_map(|(node, before, limit)| Op::Fences { node, before, limit }),
        1 => (-1..6_i8).prop_map(|back| Op::Changed { back }),
        1 => (0..15_u8, who()).prop_map(|(before, guard)| Op::Forget { before, guard }),
        4 => (0..NOTES.len(), off_by, who(), any::<bool>())
            .prop_map(|(name, off_by, guard, gone)| Op::Note { name, off_by, guard, gone }),
        1 => Just(Op::Reopen),
    ]
}

/// Moments a day apart.
pub fn day(n: u8) -> WallTime {
    at(1_700_000_000_000 + u64::from(n) * 86_400_000)
}

pub fn id(n: u8) -> FenceId {
    fence_id(day(n).millis(), n)
}

/// The trait, read literally.
pub struct Model {
    pub term: Term,
    pub revision: Revision,
    pub records: BTreeMap<NodeId, Stored>,
    pub fences: BTreeMap<FenceId, Fence>,
    pub keys: BTreeMap<(NodeId, String), KeyEntry>,
    pub notes: BTreeMap<String, Note>,
}

impl Model {
    /// Nothing is stored, in the life `life(1)`.
    pub fn new() -> Self {
        Self {
            term: Term(0),
            revision: Revision(0),
            records: BTreeMap::new(),
            fences: BTreeMap::new(),
            keys: BTreeMap::new(),
            notes: BTreeMap::new(),
        }
    }

    pub fn guard(&self, who: Who) -> Guard {
        match who {
            Who::Leader => Guard { term: self.term, incarnation: life(1) },
            Who::Former => Guard { term: Term(self.term.0.wrapping_sub(1)), incarnation: life(1) },
            Who::Foreign => Guard { term: self.term, incarnation: life(2) },
        }
    }

    pub fn version(&self, of: usize, off_by: i8) -> Version {
        let found = self.records.get(&node(NODES[of])).map_or(0, |stored| stored.version.0);
        Version(found.saturating_add_signed(i64::from(off_by)))
    }

    pub fn note_version(&self, name: &str, off_by: i8) -> Version {
        let found = self.notes.get(name).map_or(0, |note| note.version.0);
        Version(found.saturating_add_signed(i64::from(off_by)))
    }

    pub fn guarded(&self, guard: Guard) -> Result<(), StoreError> {
        let holds = guard.incarnation == life(1) && guard.term == self.term;
        if holds { Ok(()) } else { Err(StoreError::Deposed(String::new())) }
    }

    pub fn versioned(&self, node: &NodeId, expected: Version) -> Result<(), StoreError> {
        let found = self.records.get(node).map_or(Version(0), |stored| stored.version);
        let conflict = StoreError::Conflict { node: node.clone(), expected, found };
        if found == expected { Ok(()) } else { Err(conflict) }
    }

    pub fn write(&mut self, guard: Guard, write: &Write) -> Result<Written, StoreError> {
        self.guarded(guard)?;
        let node = write.record.node.clone();
        self.versioned(&node, write.expected)?;
        let mut keys = self.keys.clone();
        for (key, entry) in &write.keys {
            let old = keys.insert((node.clone(), key.clone()), entry.clone());
            if old.is_some_and(|old| old.digest != entry.digest) {
                return Err(StoreError::KeyTaken(key.clone()));
            }
        }
        self.keys = keys;
        self.revision = self.revision.next();
        let (version, revision) = (write.expected.next(), self.revision);
        self.records.insert(node, Stored { version, revision, record: write.record.clone() });
        self.fences.extend(write.fences.iter().map(|fence| (fence.id, fence.clone())));
        Ok(Written { version, revision })
    }

    pub fn put_note(
        &mut self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        self.guarded(guard)?;
        if name.is_empty() {
            return Err(StoreError::Unavailable(
                "a note's name has 1 to 512 bytes and no zero byte, found \"\"".to_owned(),
            ));
        }
        let found = self.notes.get(name).map_or(Version(0), |note| note.version);
        if found != expected {
            return Err(StoreError::NoteChanged { name: name.to_owned(), expected, found });
        }
        self.notes.remove(name);
        let Some(text) = text else { return Ok(Version(0)) };
        self.notes.insert(name.to_owned(), Note { version: expected.next(), text });
        Ok(expected.next())
    }

    pub fn fences(&self, query: &FenceQuery) -> Vec<Fence> {
        let newest = self.fences.values().rev();
        let ours = newest.filter(|fence| query.node.as_ref().is_none_or(|node| fence.node == *node));
        let older = ours.filter(|fence| query.before.is_none_or(|before| fence.id < before));
        older.take(query.limit).cloned().collect()
    }

    pub fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        if since > self.revision {
            return Err(StoreError::Compacted(since));
        }
        let mut changed: Vec<_> =
            self.records.values().map(|r| (r.revision, r.record.node.clone())).collect();
        changed.retain(|(revision, _)| *revision > since);
        changed.sort();
        Ok(changed)
    }

    pub fn forget(&mut self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        self.guarded(guard)?;
        let had = self.fences.len();
        self.fences.retain(|_, fence| fence.ended_at.is_none_or(|ended| ended >= before));
        self.keys.retain(|_, entry| {
            entry.at >= before || entry.fence.is_some_and(|fence| self.fences.contains_key(&fence))
        });
        Ok(had - self.fences.len())
    }
}

/// The write of step `step` to node `of`.
pub fn write_at(
    step: u64,
    of: usize,
    expected: Version,
    fences: &[(u8, Option<u8>)],
    keys: &[(usize, usize, u8, u8)],
) -> Write {
    let name = node(NODES[of]);
    let record: NodeRecord = plain(NODES[of], step);
    // A fence belongs to one node for ever: its id says to which.
    let fences = fences.iter().filter(|(n, _)| usize::from(*n) % NODES.len() == of);
    let fences = fences.map(|(n, ended)| Fence {
        ended_at: ended.map(|ended| day(ended.max(*n))),
        ..fence(&name, id(*n), day(*n))
    });
    let keys = keys.iter().map(|(key, digest, fence, bound)| {
        // Of a node that had none.
        let bound_to = (*fence != 0).then(|| id(*fence));
        let entry = entry(DIGESTS[*digest], id(*fence), day(*bound), Some(Outcome::Superseded));
        (KEYS[*key].to_owned(), KeyEntry { fence: bound_to, ..entry })
    });
    Write { expected, record, fences: fences.collect(), keys: keys.collect() }
}
