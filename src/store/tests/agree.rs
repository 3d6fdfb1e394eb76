//! Both stores do the same, and what they do is what the trait says: a model written in another way agrees.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod common;

use std::collections::BTreeMap;
use std::mem::discriminant;

use common::*;
use picket_core::ids::{FenceId, NodeId, Revision, Term, Version};
use picket_core::outcome::Outcome;
use picket_core::record::{Fence, NodeRecord};
use picket_core::store::{FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written};
use picket_core::time::WallTime;
use picket_store::{EmbeddedStore, MemoryStore};
use proptest::prelude::*;

const NODES: [&str; 3] = ["r1n01", "r1n02", "r1n1"];
const NOTES: [&str; 4] = ["pause/1", "pause/10", "receipt-key/1", ""];
const KEYS: [&str; 3] = ["k1", "k2", ""];
const DIGESTS: [&str; 2] = ["a", "b"];

/// What is done, with small numbers that stand for things that exist or nearly do.
#[derive(Clone, Debug)]
enum Op {
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
enum Who {
    Leader,
    Former,
    Foreign,
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![8 => Just(Who::Leader), 1 => Just(Who::Former), 1 => Just(Who::Foreign)]
}

fn op() -> impl Strategy<Value = Op> {
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
fn day(n: u8) -> WallTime {
    at(1_700_000_000_000 + u64::from(n) * 86_400_000)
}

fn id(n: u8) -> FenceId {
    fence_id(day(n).millis(), n)
}

/// The trait, read literally.
struct Model {
    term: Term,
    revision: Revision,
    records: BTreeMap<NodeId, Stored>,
    fences: BTreeMap<FenceId, Fence>,
    keys: BTreeMap<(NodeId, String), KeyEntry>,
    notes: BTreeMap<String, Note>,
}

impl Model {
    fn guarded(&self, guard: Guard) -> Result<(), StoreError> {
        let holds = guard.incarnation == life(1) && guard.term == self.term;
        if holds { Ok(()) } else { Err(StoreError::Deposed(String::new())) }
    }

    fn versioned(&self, node: &NodeId, expected: Version) -> Result<(), StoreError> {
        let found = self.records.get(node).map_or(Version(0), |stored| stored.version);
        let conflict = StoreError::Conflict { node: node.clone(), expected, found };
        if found == expected { Ok(()) } else { Err(conflict) }
    }

    fn write(&mut self, guard: Guard, write: &Write) -> Result<Written, StoreError> {
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

    fn put_note(
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

    fn fences(&self, query: &FenceQuery) -> Vec<Fence> {
        let newest = self.fences.values().rev();
        let ours = newest.filter(|fence| query.node.as_ref().is_none_or(|node| fence.node == *node));
        let older = ours.filter(|fence| query.before.is_none_or(|before| fence.id < before));
        older.take(query.limit).cloned().collect()
    }

    fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        if since > self.revision {
            return Err(StoreError::Compacted(since));
        }
        let mut changed: Vec<_> =
            self.records.values().map(|r| (r.revision, r.record.node.clone())).collect();
        changed.retain(|(revision, _)| *revision > since);
        changed.sort();
        Ok(changed)
    }

    fn forget(&mut self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        self.guarded(guard)?;
        let had = self.fences.len();
        self.fences.retain(|_, fence| fence.ended_at.is_none_or(|ended| ended >= before));
        self.keys.retain(|_, entry| {
            entry.at >= before || entry.fence.is_some_and(|fence| self.fences.contains_key(&fence))
        });
        Ok(had - self.fences.len())
    }
}

/// The same answer; of an error, the same kind and, where it names versions or keys, the same ones.
fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    model: &Result<T, StoreError>,
    memory: &Result<T, StoreError>,
    embedded: &Result<T, StoreError>,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(memory, embedded, "{}: memory and embedded", what);
    match (model, memory) {
        (Err(StoreError::Deposed(_)), Err(said)) => {
            prop_assert_eq!(
                discriminant(said),
                discriminant(&StoreError::Deposed(String::new())),
                "{}",
                what
            );
        }
        _ => prop_assert_eq!(model, memory, "{}: model and store", what),
    }
    Ok(())
}

struct Trio {
    model: Model,
    memory: MemoryStore,
    embedded: Option<EmbeddedStore>,
    home: tempfile::TempDir,
}

impl Trio {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let embedded = EmbeddedStore::open(&home.path().join("s.redb"), life(1)).unwrap();
        Self {
            model: Model {
                term: Term(0),
                revision: Revision(0),
                records: BTreeMap::new(),
                fences: BTreeMap::new(),
                keys: BTreeMap::new(),
                notes: BTreeMap::new(),
            },
            memory: MemoryStore::new(life(1)).unwrap(),
            embedded: Some(embedded),
            home,
        }
    }

    fn guard(&self, who: Who) -> Guard {
        match who {
            Who::Leader => Guard { term: self.model.term, incarnation: life(1) },
            Who::Former => Guard { term: Term(self.model.term.0.wrapping_sub(1)), incarnation: life(1) },
            Who::Foreign => Guard { term: self.model.term, incarnation: life(2) },
        }
    }

    fn version(&self, node: usize, off_by: i8) -> Version {
        let found = self.model.records.get(&common::node(NODES[node])).map_or(0, |stored| stored.version.0);
        Version(found.saturating_add_signed(i64::from(off_by)))
    }

    async fn run(&mut self, step: u64, op: &Op) -> Result<(), TestCaseError> {
        if matches!(op, Op::Reopen) {
            drop(self.embedded.take());
            let path = self.home.path().join("s.redb");
            self.embedded = Some(EmbeddedStore::open(&path, life(3)).expect("it was closed well"));
        }
        let (memory, embedded) = (&self.memory, self.embedded.as_ref().expect("open"));
        match op {
            Op::Reopen => prop_assert_eq!(embedded.incarnation(), life(1)),
            Op::TakeTerm => {
                let term = self.model.term.next();
                same("take_term", &Ok(term), &memory.take_term().await, &embedded.take_term().await)?;
                self.model.term = term;
            }
            Op::Write { node, off_by, guard, fences, keys } => {
                let (guard, expected) = (self.guard(*guard), self.version(*node, *off_by));
                let name = common::node(NODES[*node]);
                let record: NodeRecord = plain(NODES[*node], step);
                // A fence belongs to one node for ever: its id says to which.
                let fences = fences.iter().filter(|(n, _)| usize::from(*n) % NODES.len() == *node);
                let fences = fences.map(|(n, ended)| Fence {
                    ended_at: ended.map(|ended| day(ended.max(*n))),
                    ..fence(&name, id(*n), day(*n))
                });
                let keys = keys.iter().map(|(key, digest, fence, bound)| {
                    (
                        KEYS[*key].to_owned(),
                        KeyEntry {
                            // Of a node that had none.
                            fence: (*fence != 0).then(|| id(*fence)),
                            ..entry(DIGESTS[*digest], id(*fence), day(*bound), Some(Outcome::Superseded))
                        },
                    )
                });
                let write = Write { expected, record, fences: fences.collect(), keys: keys.collect() };
                let want = self.model.write(guard, &write);
                let said = (memory.write(guard, write.clone()).await, embedded.write(guard, write).await);
                same("write", &want, &said.0, &said.1)?;
            }
            Op::Check { node, off_by, guard } => {
                let (guard, version) = (self.guard(*guard), self.version(*node, *off_by));
                let name = common::node(NODES[*node]);
                let want = self.model.guarded(guard).and_then(|()| self.model.versioned(&name, version));
                let said =
                    (memory.check(guard, &name, version).await, embedded.check(guard, &name, version).await);
                same("check", &want, &said.0, &said.1)?;
            }
            Op::Fences { node, before, limit } => {
                let query = FenceQuery {
                    node: node.map(|n| common::node(NODES[n])),
                    before: before.map(id),
                    limit: *limit,
                };
                let want = Ok(self.model.fences(&query));
                let said = (memory.fences(query.clone()).await, embedded.fences(query).await);
                same("fences", &want, &said.0, &said.1)?;
            }
            Op::Changed { back } => {
                let since = Revision(self.model.revision.0.saturating_add_signed(-i64::from(*back)));
                let want = self.model.changed_since(since);
                let said = (memory.changed_since(since).await, embedded.changed_since(since).await);
                same("changed_since", &want, &said.0, &said.1)?;
            }
            Op::Note { name, off_by, guard, gone } => {
                let (guard, name) = (self.guard(*guard), NOTES[*name]);
                let found = self.model.notes.get(name).map_or(0, |note| note.version.0);
                let expected = Version(found.saturating_add_signed(i64::from(*off_by)));
                let text = (!gone).then(|| step.to_string());
                let want = self.model.put_note(guard, name, expected, text.clone());
                let said = (
                    memory.put_note(guard, name, expected, text.clone()).await,
                    embedded.put_note(guard, name, expected, text).await,
                );
                same("put_note", &want, &said.0, &said.1)?;
            }
            Op::Forget { before, guard } => {
                let guard = self.guard(*guard);
                let want = self.model.forget(guard, day(*before));
                let said =
                    (memory.forget(guard, day(*before)).await, embedded.forget(guard, day(*before)).await);
                same("forget", &want, &said.0, &said.1)?;
            }
        }
        Ok(())
    }

    /// Everything that can be read.
    async fn compare(&self) -> Result<(), TestCaseError> {
        let (memory, embedded) = (&self.memory, self.embedded.as_ref().expect("open"));
        let records = Ok(self.model.records.values().cloned().collect::<Vec<_>>());
        same("load_all", &records, &memory.load_all().await, &embedded.load_all().await)?;
        same("revision", &Ok(self.model.revision), &memory.revision().await, &embedded.revision().await)?;
        for name in NODES.map(common::node) {
            let want = Ok(self.model.records.get(&name).cloned());
            same("load", &want, &memory.load(&name).await, &embedded.load(&name).await)?;
            for key in KEYS {
                let want = Ok(self.model.keys.get(&(name.clone(), key.to_owned())).cloned());
                same("key", &want, &memory.key(&name, key).await, &embedded.key(&name, key).await)?;
            }
        }
        for prefix in ["", "pause/", "pause/1", "receipt-key/", "q"] {
            let notes = self.model.notes.iter().filter(|(name, _)| name.starts_with(prefix));
            let want = Ok(notes.map(|(name, note)| (name.clone(), note.clone())).collect::<Vec<_>>());
            same("notes", &want, &memory.notes(prefix).await, &embedded.notes(prefix).await)?;
        }
        for name in NOTES {
            let want = Ok(self.model.notes.get(name).cloned());
            same("note", &want, &memory.note(name).await, &embedded.note(name).await)?;
        }
        for n in 0..12 {
            let want = Ok(self.model.fences.get(&id(n)).cloned());
            same("fence", &want, &memory.fence(id(n)).await, &embedded.fence(id(n)).await)?;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(48))]
    #[test]
    fn the_stores_and_the_model_agree(ops in prop::collection::vec(op(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut trio = Trio::new();
            for (step, op) in ops.iter().enumerate() {
                trio.run(step as u64, op).await?;
            }
            trio.compare().await
        })?;
    }
}

/// Forgetting goes in steps: more than one of them, and writes in between.
#[tokio::test]
async fn a_long_history_is_forgotten_wholly() {
    let store = MemoryStore::new(life(1)).unwrap();
    let guard = Guard { term: store.take_term().await.unwrap(), incarnation: life(1) };
    let name = node("r1n01");
    let mut version = 0;
    for batch in 0..8_u64 {
        let fences = (0..100).map(|n| {
            let opened = at(1_700_000_000_000 + batch * 1_000 + n);
            let ended_at = (n != 50).then_some(opened);
            Fence { ended_at, ..fence(&name, fence_id(opened.millis(), n as u8), opened) }
        });
        let fences: Vec<Fence> = fences.collect();
        let bound = |n: usize| (format!("{batch}-{n}"), entry("a", fences[n].id, fences[n].opened_at, None));
        let keys = (0..100).map(bound).collect();
        let write = Write { expected: Version(version), record: plain("r1n01", batch), fences, keys };
        version = store.write(guard, write).await.unwrap().version.0;
    }
    assert_eq!(store.forget(guard, at(1_800_000_000_000)).await, Ok(800 - 8));
    let left =
        store.fences(FenceQuery { node: Some(name.clone()), before: None, limit: 1_000 }).await.unwrap();
    assert_eq!(left.len(), 8, "open fences stay");
    assert!(store.key(&name, "3-50").await.unwrap().is_some(), "and so do their keys");
    assert_eq!(store.key(&name, "3-51").await, Ok(None));
    assert_eq!(store.forget(guard, at(1_800_000_000_000)).await, Ok(0));
}
