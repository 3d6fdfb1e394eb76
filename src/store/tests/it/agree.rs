//! Both stores do the same, and what they do is what the trait says: a model written in another way agrees.

use std::mem::discriminant;

use crate::common::model::*;
use crate::common::*;
use picket_core::ids::{Revision, Version};
use picket_core::record::Fence;
use picket_core::store::{FenceQuery, Guard, Store, StoreError, Write};
use picket_store::{EmbeddedStore, MemoryStore};
use proptest::prelude::*;

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
            model: Model::new(),
            memory: MemoryStore::new(life(1)).unwrap(),
            embedded: Some(embedded),
            home,
        }
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
                let (guard, expected) = (self.model.guard(*guard), self.model.version(*node, *off_by));
                let write = write_at(step, *node, expected, fences, keys);
                let want = self.model.write(guard, &write);
                let said = (memory.write(guard, write.clone()).await, embedded.write(guard, write).await);
                same("write", &want, &said.0, &said.1)?;
            }
            Op::Check { node, off_by, guard } => {
                let (guard, version) = (self.model.guard(*guard), self.model.version(*node, *off_by));
                let name = crate::common::node(NODES[*node]);
                let want = self.model.guarded(guard).and_then(|()| self.model.versioned(&name, version));
                let said =
                    (memory.check(guard, &name, version).await, embedded.check(guard, &name, version).await);
                same("check", &want, &said.0, &said.1)?;
            }
            Op::Fences { node, before, limit } => {
                let query = FenceQuery {
                    node: node.map(|n| crate::common::node(NODES[n])),
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
                let (guard, name) = (self.model.guard(*guard), NOTES[*name]);
                let expected = self.model.note_version(name, *off_by);
                let text = (!gone).then(|| step.to_string());
                let want = self.model.put_note(guard, name, expected, text.clone());
                let said = (
                    memory.put_note(guard, name, expected, text.clone()).await,
                    embedded.put_note(guard, name, expected, text).await,
                );
                same("put_note", &want, &said.0, &said.1)?;
            }
            Op::Forget { before, guard } => {
                let guard = self.model.guard(*guard);
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
        for name in NODES.map(crate::common::node) {
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
