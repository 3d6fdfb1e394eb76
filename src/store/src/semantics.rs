//! What every store does, once, over an ordered map.
//!
//! # Invariants
//!
//! - A function that refuses has changed nothing: everything is compared, and everything is encoded, before
//!   the first change. Shown by `the_stores_and_the_model_agree`.
//! - Each change of a record takes the next revision, and the map keeps one revision a node.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{FenceQuery, Guard, KeyEntry, StoreError, Stored, Write, Written};
use picket_core::time::WallTime;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::format::{self, FORMAT, keys};
use crate::map::{Order, OrderedRead, OrderedWrite, entries};

pub(crate) const FORMAT_KEY: &str = "format";
pub(crate) const INCARNATION: &str = "incarnation";
pub(crate) const TERM: &str = "term";
pub(crate) const REVISION: &str = "revision";
const COMMITS: &str = "commits";
/// Where everything went, in a store that was sealed.
pub(crate) const MOVED: &str = "moved";
/// The format of a sealed store: none that any version reads.
pub(crate) const SEALED: u64 = 1_000_000;

/// How many entries one step of forgetting looks at, so that no write waits for long behind it.
const FORGET_STEP: usize = 256;

pub(crate) fn meta<T: DeserializeOwned>(map: &dyn OrderedRead, name: &'static str) -> Result<T, StoreError> {
    match map.get(&keys::meta(name))? {
        Some(bytes) => format::decode_meta(name, &bytes),
        None => Err(StoreError::Damaged(format!("the store's own value {name:?} is missing"))),
    }
}

pub(crate) fn put_meta<T: Serialize>(
    map: &mut dyn OrderedWrite,
    name: &'static str,
    value: &T,
) -> Result<(), StoreError> {
    map.put(keys::meta(name), format::encode_meta(name, value)?)
}

/// Makes an empty map a store.
pub(crate) fn create(map: &mut dyn OrderedWrite, incarnation: Incarnation) -> Result<(), StoreError> {
    put_meta(map, FORMAT_KEY, &FORMAT)?;
    put_meta(map, INCARNATION, &incarnation)?;
    put_meta(map, TERM, &Term(0))?;
    put_meta(map, REVISION, &Revision(0))?;
    put_meta(map, COMMITS, &0_u64)
}

/// The format in which the store was written; `None`: the map is no store.
pub(crate) fn stored_format(map: &dyn OrderedRead) -> Result<Option<u64>, StoreError> {
    map.get(&keys::meta(FORMAT_KEY))?.map(|bytes| format::decode_format(&bytes)).transpose()
}

/// Reads everything that recovery stands on, and answers with the store's life. Records, changes and the store's own
/// numbers must agree.
pub(crate) fn verify(map: &dyn OrderedRead) -> Result<Incarnation, StoreError> {
    let damaged = |what: String| Err(StoreError::Damaged(what));
    let newest = revision(map)?;
    meta::<Term>(map, TERM)?;
    let changes: BTreeMap<Revision, NodeId> = changes_after(map, None)?.into_iter().collect();
    let records = load_all(map)?;
    for Stored { version, revision, record } in &records {
        if version.0 == 0 || *revision > newest || changes.get(revision) != Some(&record.node) {
            return damaged(format!(
                "the record of {} has version {version} and revision {revision}, which do not fit the store's {newest}",
                record.node
            ));
        }
    }
    if changes.len() != records.len() {
        return damaged(format!("{} records are stored, and {} changes", records.len(), changes.len()));
    }
    crate::notes::notes(map, "")?;
    meta(map, INCARNATION)
}

/// How many transactions changed the map.
pub(crate) fn commits(map: &dyn OrderedRead) -> Result<u64, StoreError> {
    meta(map, COMMITS)
}

/// Counts one more transaction; with it a store can tell whether one that failed is there.
pub(crate) fn count_commit(map: &mut dyn OrderedWrite) -> Result<u64, StoreError> {
    let commit = commits(map)? + 1;
    put_meta(map, COMMITS, &commit)?;
    Ok(commit)
}

/// The next term, from then on the only one.
pub(crate) fn take_term(map: &mut dyn OrderedWrite) -> Result<Term, StoreError> {
    let term = meta::<Term>(map, TERM)?.next();
    put_meta(map, TERM, &term)?;
    Ok(term)
}

pub(crate) fn compare_guard(map: &dyn OrderedRead, guard: Guard) -> Result<(), StoreError> {
    let incarnation: Incarnation = meta(map, INCARNATION)?;
    if guard.incarnation != incarnation {
        return Err(StoreError::Deposed(format!(
            "it led in the store's life {}, and this is {incarnation}",
            guard.incarnation
        )));
    }
    let term: Term = meta(map, TERM)?;
    if guard.term != term {
        return Err(StoreError::Deposed(format!("it led in term {}, and term {term} has begun", guard.term)));
    }
    Ok(())
}

fn compare_version(
    map: &dyn OrderedRead,
    node: &NodeId,
    expected: Version,
) -> Result<format::RecordNumbers, StoreError> {
    let found = match map.get(&keys::record(node))? {
        Some(bytes) => format::decode_numbers(node.as_str(), &bytes)?,
        None => format::RecordNumbers::default(),
    };
    if found.version == expected {
        Ok(found)
    } else {
        Err(StoreError::Conflict { node: node.clone(), expected, found: found.version })
    }
}

pub(crate) fn check(
    map: &dyn OrderedRead,
    guard: Guard,
    node: &NodeId,
    version: Version,
) -> Result<(), StoreError> {
    compare_guard(map, guard)?;
    compare_version(map, node, version).map(|_| ())
}

/// A key is free, or bound by the same parameters; also within one write.
fn compare_keys(
    map: &dyn OrderedRead,
    node: &NodeId,
    wanted: &[(String, KeyEntry)],
) -> Result<(), StoreError> {
    let mut digests: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, entry) in wanted {
        let stored = key(map, node, name)?;
        let within = digests.insert(name, &entry.digest);
        let other = |digest: Option<&str>| digest.is_some_and(|digest| digest != entry.digest);
        if other(stored.as_ref().map(|entry| entry.digest.as_str())) || other(within) {
            return Err(StoreError::KeyTaken(name.clone()));
        }
    }
    Ok(())
}

pub(crate) fn write(map: &mut dyn OrderedWrite, guard: Guard, write: &Write) -> Result<Written, StoreError> {
    compare_guard(map, guard)?;
    let node = &write.record.node;
    let before = compare_version(map, node, write.expected)?;
    compare_keys(map, node, &write.keys)?;

    let written = Written { version: write.expected.next(), revision: revision(map)?.next() };
    let record = format::encode_record(&Stored {
        version: written.version,
        revision: written.revision,
        record: write.record.clone(),
    })?;
    let fences = write.fences.iter().map(format::encode_fence).collect::<Result<Vec<_>, _>>()?;
    let bound = write
        .keys
        .iter()
        .map(|(name, entry)| format::encode_key(name, entry))
        .collect::<Result<Vec<_>, _>>()?;

    map.put(keys::record(node), record)?;
    if before.version > Version(0) {
        map.delete(&keys::change(before.revision))?;
    }
    map.put(keys::change(written.revision), node.as_str().as_bytes().to_vec())?;
    for (fence, bytes) in write.fences.iter().zip(fences) {
        map.put(keys::fence(fence.id), bytes)?;
        map.put(keys::fence_of_node(&fence.node, fence.id), Vec::new())?;
    }
    for ((name, _), bytes) in write.keys.iter().zip(bound) {
        map.put(keys::key(node, name), bytes)?;
    }
    put_meta(map, REVISION, &written.revision)?;
    Ok(written)
}

pub(crate) fn load_all(map: &dyn OrderedRead) -> Result<Vec<Stored>, StoreError> {
    let mut records = Vec::new();
    map.scan(&[keys::RECORD], &keys::after(keys::RECORD), Order::Ascending, &mut |key, bytes| {
        records.push(format::decode_record(&keys::text_of(key), bytes)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(records)
}

pub(crate) fn load(map: &dyn OrderedRead, node: &NodeId) -> Result<Option<Stored>, StoreError> {
    map.get(&keys::record(node))?.map(|bytes| format::decode_record(node.as_str(), &bytes)).transpose()
}

pub(crate) fn key(map: &dyn OrderedRead, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError> {
    map.get(&keys::key(node, key))?.map(|bytes| format::decode_key(key, &bytes)).transpose()
}

pub(crate) fn fence(map: &dyn OrderedRead, id: FenceId) -> Result<Option<Fence>, StoreError> {
    map.get(&keys::fence(id))?.map(|bytes| format::decode_fence(id, &bytes)).transpose()
}

pub(crate) fn fences(map: &dyn OrderedRead, query: &FenceQuery) -> Result<Vec<Fence>, StoreError> {
    let key_of = |id: FenceId| match &query.node {
        Some(node) => keys::fence_of_node(node, id),
        None => keys::fence(id),
    };
    let (from, end) = match &query.node {
        Some(node) => keys::fences_of_node(node),
        None => (vec![keys::FENCE], keys::after(keys::FENCE)),
    };
    let to = query.before.map_or(end, key_of);
    let mut found = Vec::new();
    for (key, value) in entries(map, &from, &to, Order::Descending, query.limit)? {
        let Some(id) = keys::fence_id_of(&key) else {
            return Err(StoreError::Damaged("a fence of the history has no id".to_owned()));
        };
        if query.node.is_none() {
            found.push(format::decode_fence(id, &value)?);
        } else {
            let missing = || StoreError::Damaged(format!("fence {id} is listed and is not there"));
            found.push(fence(map, id)?.ok_or_else(missing)?);
        }
    }
    Ok(found)
}

pub(crate) fn revision(map: &dyn OrderedRead) -> Result<Revision, StoreError> {
    meta(map, REVISION)
}

fn changes_after(
    map: &dyn OrderedRead,
    since: Option<Revision>,
) -> Result<Vec<(Revision, NodeId)>, StoreError> {
    let from = since.map_or(vec![keys::CHANGE], |since| keys::change(since.next()));
    let mut changes = Vec::new();
    map.scan(&from, &keys::after(keys::CHANGE), Order::Ascending, &mut |key, node| {
        let change = keys::revision_of(key).zip(NodeId::new(&String::from_utf8_lossy(node)).ok());
        changes.push(change.ok_or_else(|| StoreError::Damaged("a change cannot be read".to_owned()))?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(changes)
}

/// The last change of each node is kept for ever, so only a revision that this store never reached is refused.
pub(crate) fn changed_since(
    map: &dyn OrderedRead,
    since: Revision,
) -> Result<Vec<(Revision, NodeId)>, StoreError> {
    match revision(map)? {
        newest if since > newest => Err(StoreError::Compacted(since)),
        newest if since == newest => Ok(Vec::new()),
        _ => changes_after(map, Some(since)),
    }
}

/// What one step of forgetting did.
#[derive(Debug, Default)]
pub(crate) struct ForgetSummary {
    /// How many fences went.
    pub(crate) fences: usize,
    /// Where the next step goes on; `None`: everything was looked at.
    pub(crate) next: Option<Vec<u8>>,
}

/// One step of forgetting: fences first, from the oldest, then keys. Begins at `from`, or at the first fence.
///
/// A fence goes when it ended before `before`. A key goes when it was bound before `before` and its fence, if it
/// has one, is not in the history any more, so that the key of an open fence stays.
pub(crate) fn forget(
    map: &mut dyn OrderedWrite,
    guard: Guard,
    before: WallTime,
    from: Option<Vec<u8>>,
) -> Result<ForgetSummary, StoreError> {
    compare_guard(map, guard)?;
    let from = from.unwrap_or_else(|| vec![keys::FENCE]);
    let of_fences = from[0] == keys::FENCE;
    let kind = if of_fences { keys::FENCE } else { keys::KEY };
    let seen = entries(map, &from, &keys::after(kind), Order::Ascending, FORGET_STEP)?;
    let mut done = ForgetSummary::default();
    let mut all_newer = false;
    let mut going = Vec::new();
    for (key, value) in &seen {
        if of_fences {
            let id = keys::fence_id_of(key)
                .ok_or_else(|| StoreError::Damaged("a fence of the history has no id".to_owned()))?;
            // Ids grow with the time at which a fence was opened, and none ended before it was opened.
            all_newer = format::opened_at(id).is_some_and(|opened| opened >= before);
            if all_newer {
                break;
            }
            let end = format::decode_fence_end(id, value)?;
            if end.ended_at.is_some_and(|ended| ended < before) {
                going.extend([key.clone(), keys::fence_of_node(&end.node, id)]);
                done.fences += 1;
            }
        } else {
            let entry = format::decode_key(&keys::text_of(key), value)?;
            let is_kept = match entry.fence {
                Some(fence) => map.get(&keys::fence(fence))?.is_some(),
                None => false,
            };
            if entry.at < before && !is_kept {
                going.push(key.clone());
            }
        }
    }
    for key in going {
        map.delete(&key)?;
    }
    let more = (seen.len() == FORGET_STEP && !all_newer).then(|| seen.last()).flatten();
    done.next = match more {
        Some((last, _)) => Some([last.as_slice(), &[0]].concat()),
        None if of_fences => Some(vec![keys::KEY]),
        None => None,
    };
    Ok(done)
}
