//! Forgetting what is too old: fences first, from the oldest, then keys.
//!
//! # Invariants
//!
//! - What goes was looked at as it is when it goes: each removal compares that it did not change meanwhile,
//!   and the guard.
//! - A key stays as long as its fence. Shown by `a_long_history_is_forgotten_wholly`.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::ids::FenceId;
use picket_core::store::{Guard, KeyEntry, StoreError};
use picket_core::time::WallTime;
use picket_etcd_api::{Compare, KeyValue, RangeRequest, RequestOp, TxnRequest};
use picket_store::format;

use super::MOST_OPERATIONS;
use super::write::guarded;
use crate::connection::Fault;
use crate::keys::{fence_id_of, node_and_key};
use crate::life::gets;
use crate::page;
use crate::shared::{HeldLeadership, Shared};

/// How many entries are looked at at once, so that no write waits for long behind it.
const STEP: i64 = 250;
/// How many go at once: two removals each, and as many comparisons beside the guard's four.
const BATCH: usize = 60;
/// How often a batch is looked at anew because something of it changed meanwhile.
const ATTEMPTS: usize = 3;

pub(super) async fn forget(shared: &Shared, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
    let held = shared.held_for(guard)?;
    let fences = forget_fences(shared, &held, before).await?;
    forget_keys(shared, &held, before).await?;
    Ok(fences)
}

async fn forget_fences(
    shared: &Shared,
    held: &HeldLeadership,
    before: WallTime,
) -> Result<usize, StoreError> {
    let room = shared.keys.fences();
    let (mut from, mut gone, mut failed) = (room.clone(), 0, 0);
    loop {
        let (seen, more, _) =
            page::page(&shared.connection, &from, &room, 0, STEP).await.map_err(Fault::of_a_read)?;
        let mut going = Vec::new();
        let mut all_newer = false;
        for entry in &seen {
            let id = fence_id_of(&entry.key)
                .ok_or_else(|| StoreError::Damaged("a fence of the history has no id".to_owned()))?;
            // Ids grow with the time at which a fence was opened, and none ended before it was opened.
            all_newer = format::opened_at(id).is_some_and(|opened| opened >= before);
            if all_newer {
                break;
            }
            let fence = format::decode_fence(id, &entry.value)?;
            if fence.ended_at.is_some_and(|ended| ended < before) {
                going.push((entry, shared.keys.fence_of_node(&fence.node, id)));
            }
        }
        let mut again = false;
        for batch in going.chunks(BATCH) {
            let same = batch.iter().map(|(entry, _)| unchanged(entry)).collect();
            let removals = batch
                .iter()
                .flat_map(|(entry, of)| [&entry.key, of].map(|key| RequestOp::delete(key.clone())));
            match guarded(shared, held, same, removals.collect(), Vec::new()).await? {
                Ok(()) => gone += batch.len(),
                Err(_) => again = true,
            }
        }
        if again && failed < ATTEMPTS {
            failed += 1;
            continue;
        }
        match seen.last() {
            Some(last) if more && !all_newer => from = [&last.key[..], &[0]].concat(),
            _ => return Ok(gone),
        }
    }
}

async fn forget_keys(shared: &Shared, held: &HeldLeadership, before: WallTime) -> Result<(), StoreError> {
    let room = shared.keys.all_keys();
    let (mut from, mut failed) = (room.clone(), 0);
    loop {
        let (seen, more, _) =
            page::page(&shared.connection, &from, &room, 0, STEP).await.map_err(Fault::of_a_read)?;
        let mut old: Vec<(&KeyValue, KeyEntry)> = Vec::new();
        for entry in &seen {
            let (_, key) = node_and_key(&room, &entry.key)
                .ok_or_else(|| StoreError::Damaged("an idempotency key in etcd has no node".to_owned()))?;
            let bound = format::decode_key(key, &entry.value)?;
            if bound.at < before {
                old.push((entry, bound));
            }
        }
        let kept = still_there(shared, old.iter().filter_map(|(_, bound)| bound.fence).collect()).await?;
        old.retain(|(_, bound)| bound.fence.is_none_or(|fence| !kept.contains(&fence)));
        let mut again = false;
        for batch in old.chunks(BATCH) {
            let mut same: Vec<Compare> = batch.iter().map(|(entry, _)| unchanged(entry)).collect();
            let gone: BTreeMap<FenceId, Compare> = batch
                .iter()
                .filter_map(|(_, bound)| bound.fence)
                .map(|fence| (fence, Compare::version(shared.keys.fence(fence), 0)))
                .collect();
            same.extend(gone.into_values());
            let removals = batch.iter().map(|(entry, _)| RequestOp::delete(entry.key.clone())).collect();
            again |= guarded(shared, held, same, removals, Vec::new()).await?.is_err();
        }
        if again && failed < ATTEMPTS {
            failed += 1;
            continue;
        }
        match seen.last() {
            Some(last) if more => from = [&last.key[..], &[0]].concat(),
            _ => return Ok(()),
        }
    }
}

fn unchanged(entry: &KeyValue) -> Compare {
    Compare::mod_revision(entry.key.clone(), entry.mod_revision)
}

/// Those of these fences that are in the history.
async fn still_there(shared: &Shared, ids: BTreeSet<FenceId>) -> Result<BTreeSet<FenceId>, StoreError> {
    let ids: Vec<FenceId> = ids.into_iter().collect();
    let mut there = BTreeSet::new();
    for ids in ids.chunks(MOST_OPERATIONS) {
        let only_key = |key| RangeRequest { keys_only: true, ..RangeRequest::one(key) };
        let reads: Vec<RequestOp> = ids.iter().map(|id| only_key(shared.keys.fence(*id)).into()).collect();
        let answer =
            shared.read_txn(TxnRequest::default().and_then(reads)).await.map_err(Fault::of_a_read)?;
        there.extend(ids.iter().zip(gets(&answer)).filter(|(_, found)| found.is_some()).map(|(id, _)| *id));
    }
    Ok(there)
}
