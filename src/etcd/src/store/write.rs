//! Writing a record, and asking whether one may still be written.

use std::collections::BTreeMap;

use picket_core::ids::{FenceId, NodeId, Revision, Version};
use picket_core::record::Fence;
use picket_core::store::{Guard, KeyEntry, StoreError, Stored, Write, Written};
use picket_etcd_api::{Compare, KeyValue, RequestOp, TxnRequest};
use picket_store::format;

use super::{MOST_OPERATIONS, version_of};
use crate::connection::Fault;
use crate::life::{gets, revision_of};
use crate::page;
use crate::shared::{HeldLeadership, Shared};

/// How often a write is tried because somebody bound one of its keys, to the same request, at the same moment.
const ATTEMPTS: usize = 4;

/// etcd's number of a version; one that it cannot have is compared with what no key has.
fn number(version: Version) -> i64 {
    i64::try_from(version.0).unwrap_or(i64::MAX)
}

/// The keys of a write, each once, in the order in which they are looked at; `None`: one of them has two digests.
fn keys_of(write: &Write) -> Option<Vec<(&str, &KeyEntry)>> {
    let mut keys: Vec<(&str, &KeyEntry)> = Vec::new();
    for (name, entry) in &write.keys {
        match keys.iter_mut().find(|(known, _)| known == name) {
            Some((_, former)) if former.digest != entry.digest => return None,
            Some((_, former)) => *former = entry,
            None => keys.push((name, entry)),
        }
    }
    Some(keys)
}

/// Why a write that binds a key to two requests is refused: in the order in which every store looks.
async fn refused(shared: &Shared, guard: Guard, write: &Write) -> StoreError {
    let node = &write.record.node;
    if let Err(error) = check(shared, guard, node, write.expected).await {
        return error;
    }
    let mut digests: BTreeMap<&str, String> = BTreeMap::new();
    for (name, entry) in &write.keys {
        let stored = match page::one(&shared.connection, shared.keys.key(node, name)).await {
            Ok(stored) => stored.map(|stored| format::decode_key(name, &stored.value)).transpose(),
            Err(fault) => return fault.of_a_read(),
        };
        let stored = match stored {
            Ok(stored) => stored.map(|stored| stored.digest),
            Err(error) => return error,
        };
        let former = digests.insert(name, entry.digest.clone()).or(stored);
        if former.is_some_and(|former| former != entry.digest) {
            return StoreError::KeyTaken(name.clone());
        }
    }
    StoreError::Unavailable(format!("a write of {node} binds a key to two requests"))
}

/// The record as it is to be stored. Its version and revision are etcd's own; what stands here is what they were meant to be.
fn record_of(write: &Write) -> Result<Vec<u8>, StoreError> {
    format::encode_record(&Stored {
        version: write.expected.next(),
        revision: Revision(0),
        record: write.record.clone(),
    })
}

fn puts(
    shared: &Shared,
    write: &Write,
    record: &[u8],
    keys: &[(&str, &KeyEntry)],
) -> Result<Vec<RequestOp>, StoreError> {
    let (names, node) = (&shared.keys, &write.record.node);
    let mut puts = vec![RequestOp::put(names.node(node), record.to_vec())];
    let fences: BTreeMap<FenceId, &Fence> = write.fences.iter().map(|fence| (fence.id, fence)).collect();
    for (id, fence) in fences {
        puts.push(RequestOp::put(names.fence(id), format::encode_fence(fence)?));
        puts.push(RequestOp::put(names.fence_of_node(&fence.node, id), Vec::new()));
    }
    for (name, entry) in keys {
        puts.push(RequestOp::put(names.key(node, name), format::encode_key(name, entry)?));
    }
    Ok(puts)
}

pub(super) async fn write(shared: &Shared, guard: Guard, write: &Write) -> Result<Written, StoreError> {
    let held = shared.held_for(guard)?;
    let names = &shared.keys;
    let node = &write.record.node;
    let Some(keys) = keys_of(write) else { return Err(refused(shared, guard, write).await) };
    let record = record_of(write)?;
    let puts = puts(shared, write, &record, &keys)?;
    let mut reads = shared.guard_reads();
    reads.push(RequestOp::get(names.node(node)));
    reads.extend(keys.iter().map(|(name, _)| RequestOp::get(names.key(node, name))));
    let most = puts.len().max(reads.len());
    if most > MOST_OPERATIONS {
        return Err(StoreError::Unavailable(format!(
            "this write has {most} parts, and etcd takes {MOST_OPERATIONS} at once"
        )));
    }
    // What a key that is bound already was last written at; the others must not be there.
    let mut bound: BTreeMap<&str, i64> = BTreeMap::new();
    // Why it is not known what became of the first copy.
    let mut lost: Option<String> = None;
    for _ in 0..ATTEMPTS {
        let mut compares = shared.guards(&held)?;
        compares.push(Compare::version(names.node(node), number(write.expected)));
        compares.extend(keys.iter().map(|(name, _)| {
            let at = bound.get(*name).copied().unwrap_or(0);
            Compare::mod_revision(names.key(node, name), at)
        }));
        let txn = TxnRequest::default().when(compares).and_then(puts.clone()).or_else(reads.clone());
        let answer = match shared.connection.commit(txn).await {
            Ok(answer) => answer,
            // Sent again it happens once at most, since it compares the version; and whichever of the two comes later, after this
            // one was answered, changes nothing any more.
            Err(Fault::Unknown(why)) if lost.is_none() => {
                lost = Some(why);
                continue;
            }
            Err(fault) => return Err(lost.map_or_else(|| fault.of_a_write(), StoreError::Unknown)),
        };
        if answer.succeeded {
            let revision = revision_of(&answer).map_err(Fault::of_a_write)?;
            let revision = Revision(u64::try_from(revision).unwrap_or(0));
            return Ok(Written { version: write.expected.next(), revision });
        }
        let mut read = gets(&answer);
        shared.guard_says(&held, &mut read)?;
        let found = read.next().flatten();
        let is_ours = |found: &&KeyValue| version_of(found) == write.expected.next() && found.value == record;
        if let Some(ours) = found.as_ref().filter(is_ours).filter(|_| lost.is_some()) {
            // The first copy came through.
            return Ok(Written { version: version_of(ours), revision: super::revision_of(ours) });
        }
        version_says(node, write.expected, found.as_ref())?;
        for ((name, wanted), found) in keys.iter().zip(read) {
            let Some(found) = found else { continue };
            if format::decode_key(name, &found.value)?.digest != wanted.digest {
                return Err(StoreError::KeyTaken((*name).to_owned()));
            }
            bound.insert(name, found.mod_revision);
        }
    }
    Err(StoreError::Unavailable(format!(
        "the idempotency keys of {node} change faster than it can be written"
    )))
}

fn version_says(node: &NodeId, expected: Version, found: Option<&KeyValue>) -> Result<(), StoreError> {
    let found = found.map_or(Version(0), version_of);
    if found == expected {
        return Ok(());
    }
    Err(StoreError::Conflict { node: node.clone(), expected, found })
}

/// One round trip that compares and changes nothing. It reads a key also where everything holds: a transaction without a
/// reading is answered by the member that was asked from what it has, which may be old.
pub(super) async fn check(
    shared: &Shared,
    guard: Guard,
    node: &NodeId,
    version: Version,
) -> Result<(), StoreError> {
    let held = shared.held_for(guard)?;
    let key = shared.keys.node(node);
    let mut compares = shared.guards(&held)?;
    compares.push(Compare::version(key.clone(), number(version)));
    let mut reads = shared.guard_reads();
    reads.push(RequestOp::get(key.clone()));
    let txn = TxnRequest::default().when(compares).and_then([RequestOp::get(key)]).or_else(reads);
    let answer = shared.read_txn(txn).await.map_err(Fault::of_a_read)?;
    if answer.succeeded {
        return Ok(());
    }
    let mut read = gets(&answer);
    shared.guard_says(&held, &mut read)?;
    version_says(node, version, read.next().flatten().as_ref())?;
    Err(StoreError::Unavailable(format!("etcd contradicts itself about {node}: ask again")))
}

/// Commits changes that compare `further` beside the guard; `None`: the guard holds, and one of `further` does not.
pub(super) async fn guarded(
    shared: &Shared,
    held: &HeldLeadership,
    further: Vec<Compare>,
    changes: Vec<RequestOp>,
    reads: Vec<RequestOp>,
) -> Result<Result<(), Vec<Option<KeyValue>>>, StoreError> {
    let mut compares = shared.guards(held)?;
    compares.extend(further);
    let mut all_reads = shared.guard_reads();
    all_reads.extend(reads);
    let txn = TxnRequest::default().when(compares).and_then(changes).or_else(all_reads);
    let answer = shared.connection.commit(txn).await.map_err(Fault::of_a_write)?;
    if answer.succeeded {
        return Ok(Ok(()));
    }
    let mut read = gets(&answer);
    shared.guard_says(held, &mut read)?;
    Ok(Err(read.collect()))
}
