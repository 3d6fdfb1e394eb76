//! Fences of the history.

use std::time::Duration;

use picket_core::ids::FenceId;
use picket_core::record::Fence;
use picket_core::store::{FenceQuery, StoreError};
use picket_core::time::WallTime;
use picket_etcd_api::{KeyValue, RangeRequest, RequestOp, TxnRequest};
use picket_store::format;

use super::MOST_OPERATIONS;
use crate::connection::Fault;
use crate::keys::{end_of, fence_id_of};
use crate::life::gets;
use crate::page;
use crate::shared::Shared;

fn no_id() -> StoreError {
    StoreError::Damaged("a fence of the history has no id".to_owned())
}

/// How far back it is looked first, and then, in the history of all nodes.
const BACK: [Duration; 2] = [Duration::from_secs(86_400), Duration::from_secs(16 * 86_400)];

/// Newest first. etcd reads and sorts the whole range before it cuts it: with a history of some hundred thousand fences that takes
/// longer than a request may, and each leadership begins with such a question. So it is asked of the last days first: ids grow with
/// the time at which a fence was opened.
pub(super) async fn fences(shared: &Shared, query: &FenceQuery) -> Result<Vec<Fence>, StoreError> {
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let names = &shared.keys;
    let room = query.node.as_ref().map_or_else(|| names.fences(), |node| names.fences_of_node(node));
    let to = match (query.before, &query.node) {
        (None, _) => end_of(&room),
        (Some(before), None) => names.fence(before),
        (Some(before), Some(node)) => names.fence_of_node(node, before),
    };
    if query.node.is_none() {
        let newest = query.before.and_then(format::opened_at).unwrap_or_else(|| shared.clock.wall());
        for back in BACK {
            let back = u64::try_from(back.as_millis()).unwrap_or(u64::MAX);
            let oldest = WallTime::from_millis(newest.millis().saturating_sub(back));
            let from = names.fence(FenceId::mint(oldest, [0; 10]));
            let last = page::last(&shared.connection, &from, &to, query.limit).await;
            let (entries, _) = last.map_err(Fault::of_a_read)?;
            if entries.len() >= query.limit {
                return decoded(&entries);
            }
        }
    }
    let (entries, revision) =
        page::last(&shared.connection, &room, &to, query.limit).await.map_err(Fault::of_a_read)?;
    if query.node.is_some() {
        let ids: Vec<FenceId> = entries
            .iter()
            .map(|entry| fence_id_of(&entry.key).ok_or_else(no_id))
            .collect::<Result<_, _>>()?;
        return listed(shared, &ids, revision).await;
    }
    decoded(&entries)
}

fn decoded(entries: &[KeyValue]) -> Result<Vec<Fence>, StoreError> {
    let read = entries.iter().map(|entry| {
        let id = fence_id_of(&entry.key).ok_or_else(no_id)?;
        format::decode_fence(id, &entry.value)
    });
    read.collect()
}

/// These fences, as they stood at the revision at which they were listed.
async fn listed(shared: &Shared, ids: &[FenceId], revision: i64) -> Result<Vec<Fence>, StoreError> {
    let mut found = Vec::new();
    for ids in ids.chunks(MOST_OPERATIONS) {
        let at = |key| RangeRequest { revision, ..RangeRequest::one(key) };
        let reads: Vec<RequestOp> = ids.iter().map(|id| at(shared.keys.fence(*id)).into()).collect();
        let answer =
            shared.read_txn(TxnRequest::default().and_then(reads)).await.map_err(Fault::of_a_read)?;
        for (id, entry) in ids.iter().zip(gets(&answer)) {
            let missing = || StoreError::Damaged(format!("fence {id} is listed and is not there"));
            found.push(format::decode_fence(*id, &entry.ok_or_else(missing)?.value)?);
        }
    }
    Ok(found)
}
