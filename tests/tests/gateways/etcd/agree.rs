//! A store in etcd does what the model and the store in memory do.

use std::collections::BTreeMap;
use std::mem::discriminant;

use picket_core::election::Election;
use picket_core::ids::Revision;
use picket_core::store::{FenceQuery, Guard, Store, StoreError, Stored, Write};
use picket_tests::peers::EtcdCluster;
use proptest::prelude::*;

use crate::etcd::common::model::*;
use crate::etcd::common::*;
use crate::etcd::house::House;

/// The same answer; of an error, the same kind and, where it names versions or keys, the same ones.
fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    model: &Result<T, StoreError>,
    etcd: &Result<T, StoreError>,
) -> Result<(), TestCaseError> {
    match (model, etcd) {
        (Err(StoreError::Deposed(_) | StoreError::Compacted(_)), Err(said)) => {
            let wanted = discriminant(model.as_ref().unwrap_err());
            prop_assert_eq!(discriminant(said), wanted, "{}: {}", what, said);
        }
        _ => prop_assert_eq!(model, etcd, "{}", what),
    }
    Ok(())
}

/// The model, a gateway that leads, and one that only reads.
struct Pair {
    model: Model,
    leader: House,
    reader: House,
    /// etcd's revisions, by the model's.
    revisions: BTreeMap<Revision, Revision>,
    term: picket_core::ids::Term,
}

impl Pair {
    async fn new(endpoints: Vec<String>, prefix: String) -> Self {
        let one = |gateway: &str| {
            let settings = crate::etcd::house::settings(endpoints.clone());
            House::new(
                picket_config::EtcdSettings { prefix: prefix.clone(), ..settings },
                crate::etcd::house::candidate(gateway),
            )
        };
        let (leader, reader) = (one("g1"), one("g2"));
        let revisions = BTreeMap::from([(Revision(0), Revision(0))]);
        let mut pair =
            Self { model: Model::new(), leader, reader, revisions, term: picket_core::ids::Term(0) };
        pair.take_term().await.unwrap();
        pair
    }

    async fn take_term(&mut self) -> Result<(), TestCaseError> {
        self.leader.election.resign().await.unwrap();
        let won = self.leader.lead().await;
        prop_assert_eq!(won.term, self.term.next(), "a term is the one after the highest");
        self.term = won.term;
        self.model.term = self.model.term.next();
        prop_assert_eq!(self.model.term, won.term);
        Ok(())
    }

    /// The model's guard, in the life that etcd minted.
    async fn guard(&self, who: Who) -> Guard {
        let guard = self.model.guard(who);
        let own = guard.incarnation == life(1);
        Guard { incarnation: if own { self.leader.life().await } else { guard.incarnation }, ..guard }
    }

    /// As the model counts.
    fn translated(&self, stored: Stored) -> Stored {
        let found = self.revisions.iter().find(|(_, etcd)| **etcd == stored.revision);
        Stored { revision: found.map_or(Revision(u64::MAX), |(model, _)| *model), ..stored }
    }

    async fn run(&mut self, step: u64, op: &Op) -> Result<(), TestCaseError> {
        match op {
            Op::TakeTerm | Op::Reopen => self.take_term().await?,
            Op::Write { node, off_by, guard, fences, keys } => {
                let expected = self.model.version(*node, *off_by);
                let write = write_at(step, *node, expected, fences, keys);
                let want = self.model.write(self.model.guard(*guard), &write);
                let said = self.leader.store.write(self.guard(*guard).await, write).await;
                if let (Ok(want), Ok(said)) = (&want, &said) {
                    let newest = self.revisions.values().max().copied().unwrap_or_default();
                    prop_assert!(said.revision > newest, "revisions grow");
                    self.revisions.insert(want.revision, said.revision);
                }
                same("write", &want.map(|w| w.version), &said.map(|w| w.version))?;
            }
            Op::Check { node, off_by, guard } => {
                let version = self.model.version(*node, *off_by);
                let name = crate::etcd::common::node(NODES[*node]);
                let want = self.model.guarded(self.model.guard(*guard));
                let want = want.and_then(|()| self.model.versioned(&name, version));
                same(
                    "check",
                    &want,
                    &self.leader.store.check(self.guard(*guard).await, &name, version).await,
                )?;
            }
            Op::Fences { node, before, limit } => {
                let node = node.map(|n| crate::etcd::common::node(NODES[n]));
                let query = FenceQuery { node, before: before.map(id), limit: *limit };
                same("fences", &Ok(self.model.fences(&query)), &self.reader.store.fences(query).await)?;
            }
            Op::Changed { back } => {
                let since = Revision(self.model.revision.0.saturating_add_signed(-i64::from(*back)));
                let want = self.model.changed_since(since);
                let newest = self.reader.store.revision().await.unwrap();
                let asked = self.revisions.get(&since).copied().unwrap_or(Revision(newest.0 + 1));
                let said = self.reader.store.changed_since(asked).await;
                let named = |changes: Vec<(Revision, _)>| {
                    changes.into_iter().map(|(_, node)| node).collect::<Vec<_>>()
                };
                same("changed_since", &want.map(named), &said.map(named))?;
            }
            Op::Note { name, off_by, guard, gone } => {
                let name = NOTES[*name];
                let expected = self.model.note_version(name, *off_by);
                let text = (!gone).then(|| step.to_string());
                let want = self.model.put_note(self.model.guard(*guard), name, expected, text.clone());
                let said = self.leader.store.put_note(self.guard(*guard).await, name, expected, text).await;
                same("put_note", &want, &said)?;
            }
            Op::Forget { before, guard } => {
                let want = self.model.forget(self.model.guard(*guard), day(*before));
                let said = self.leader.store.forget(self.guard(*guard).await, day(*before)).await;
                same("forget", &want, &said)?;
            }
        }
        Ok(())
    }

    /// Everything that can be read, by a gateway that did not write it.
    async fn compare(&self) -> Result<(), TestCaseError> {
        let store = &self.reader.store;
        let records: Vec<_> = self.model.records.values().cloned().collect();
        let said =
            store.load_all().await.map(|all| all.into_iter().map(|one| self.translated(one)).collect());
        same("load_all", &Ok(records), &said)?;
        for name in NODES.map(crate::etcd::common::node) {
            let want = Ok(self.model.records.get(&name).cloned());
            let said = store.load(&name).await.map(|one| one.map(|one| self.translated(one)));
            same("load", &want, &said)?;
            for key in KEYS {
                let want = Ok(self.model.keys.get(&(name.clone(), key.to_owned())).cloned());
                same("key", &want, &store.key(&name, key).await)?;
            }
        }
        for prefix in ["", "pause/", "pause/1", "receipt-key/", "q"] {
            let notes = self.model.notes.iter().filter(|(name, _)| name.starts_with(prefix));
            let want = Ok(notes.map(|(name, note)| (name.clone(), note.clone())).collect::<Vec<_>>());
            same("notes", &want, &store.notes(prefix).await)?;
        }
        for name in NOTES {
            same("note", &Ok(self.model.notes.get(name).cloned()), &store.note(name).await)?;
        }
        for n in 0..12 {
            same("fence", &Ok(self.model.fences.get(&id(n)).cloned()), &store.fence(id(n)).await)?;
        }
        Ok(())
    }
}

#[test]
fn etcd_and_the_model_agree() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let cluster = runtime.block_on(EtcdCluster::start(1)).expect("an etcd");
    let histories = std::sync::atomic::AtomicU64::new(0);
    let mut config = config(12);
    config.source_file = Some(file!());
    proptest!(config, |(ops in prop::collection::vec(op(), 1..60))| {
        runtime.block_on(async {
            // Each history in a fleet of its own, beside all others in one etcd.
            let n = histories.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut pair = Pair::new(cluster.endpoints(), format!("/fleet-{n}/")).await;
            for (step, op) in ops.iter().enumerate() {
                pair.run(step as u64, op).await?;
            }
            pair.compare().await
        })?;
    });
}

/// Forgetting goes in steps and in batches, and reading in pages.
#[tokio::test]
async fn a_long_history_is_forgotten_wholly() {
    let cluster = EtcdCluster::start(1).await.expect("an etcd");
    let house = House::named(cluster.endpoints(), "g1");
    let guard = crate::etcd::house::guard(&house.lead().await);
    let name = node("r1n01");
    let mut version = 0;
    for batch in 0..20_u64 {
        let fences = (0..40).map(|n| {
            let opened = at(1_700_000_000_000 + batch * 1_000 + n);
            let ended_at = (n != 20).then_some(opened);
            picket_core::record::Fence {
                ended_at,
                ..fence(&name, fence_id(opened.millis(), n as u8), opened)
            }
        });
        let fences: Vec<_> = fences.collect();
        let bound = |n: usize| (format!("{batch}-{n}"), entry("a", fences[n].id, fences[n].opened_at, None));
        let keys = (0..40).map(bound).collect();
        let write = Write {
            expected: picket_core::ids::Version(version),
            record: plain("r1n01", batch),
            fences: fences.clone(),
            keys,
        };
        version = house.store.write(guard, write).await.unwrap().version.0;
    }
    let of_node = || FenceQuery { node: Some(name.clone()), before: None, limit: 1_000 };
    assert_eq!(house.store.fences(of_node()).await.unwrap().len(), 800);
    assert_eq!(house.store.forget(guard, at(1_800_000_000_000)).await, Ok(800 - 20));
    assert_eq!(house.store.fences(of_node()).await.unwrap().len(), 20, "open fences stay");
    assert!(house.store.key(&name, "3-20").await.unwrap().is_some(), "and so do their keys");
    assert_eq!(house.store.key(&name, "3-21").await, Ok(None));
    assert_eq!(house.store.forget(guard, at(1_800_000_000_000)).await, Ok(0));

    let fences = (0..70).map(|n| fence(&name, fence_id(1_900_000_000_000 + n, 1), at(1_900_000_000_000)));
    let too_much = Write {
        expected: picket_core::ids::Version(version),
        record: plain("r1n01", 0),
        fences: fences.collect(),
        keys: vec![],
    };
    let refused = house.store.write(guard, too_much).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("128")), "{refused:?}");
}

/// The history of all nodes is looked at from its newest days on: what is found is the same, however old it is.
#[tokio::test]
async fn the_newest_fences_are_found_whatever_their_age() {
    const HOUR: u64 = 3_600_000;
    let cluster = EtcdCluster::start(1).await.expect("an etcd");
    let house = House::named(cluster.endpoints(), "g1");
    let guard = crate::etcd::house::guard(&house.lead().await);
    let now = crate::etcd::house::clock().wall().millis();
    // The first is of a gateway whose clock runs ahead.
    let ages = [now + HOUR, now - HOUR, now - 23 * HOUR, now - 25 * HOUR, now - 20 * 24 * HOUR, 1_000];
    let name = node("r1n01");
    let fences: Vec<_> = ages.iter().map(|then| fence(&name, fence_id(*then, 9), at(*then))).collect();
    let write = Write { fences: fences.clone(), ..write_of(plain("r1n01", 1), 0) };
    house.store.write(guard, write).await.unwrap();
    for skipped in 0..=ages.len() {
        let before = skipped.checked_sub(1).map(|last| fences[last].id);
        for limit in 0..=ages.len() + 1 {
            let query = FenceQuery { node: None, before, limit };
            let found = house.store.fences(query).await.unwrap();
            let wanted: Vec<_> = fences.iter().skip(skipped).take(limit).cloned().collect();
            assert_eq!(found, wanted, "{limit} after {skipped}");
        }
    }
}
