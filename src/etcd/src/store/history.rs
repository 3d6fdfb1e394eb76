//! Fences of the history.

use etcd_client::{GetOptions, Txn, TxnOp};
use picket_core::ids::FenceId;
use picket_core::record::Fence;
use picket_core::store::{FenceQuery, StoreError};
use picket_store::format;

use super::MOST_OPERATIONS;
use crate::connection::Fault;
use crate::house::House;
use crate::keys::{end_of, fence_id_of};
use crate::life::gets;
use crate::page;

fn no_id() -> StoreError {
    StoreError::Damaged("a fence of the history has no id".to_owned())
}

/// Newest first. etcd sorts the whole range before it cuts it, so a long history without a node costs it some work.
pub(super) async fn fences(house: &House, query: &FenceQuery) -> Result<Vec<Fence>, StoreError> {
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let names = &house.keys;
    let room = query.node.as_ref().map_or_else(|| names.fences(), |node| names.fences_of_node(node));
    let to = match (query.before, &query.node) {
        (None, _) => end_of(&room),
        (Some(before), None) => names.fence(before),
        (Some(before), Some(node)) => names.fence_of_node(node, before),
    };
    let (entries, revision) =
        page::last(&house.connection, &room, &to, query.limit).await.map_err(Fault::of_a_read)?;
    if query.node.is_some() {
        let ids: Vec<FenceId> = entries
            .iter()
            .map(|entry| fence_id_of(entry.key()).ok_or_else(no_id))
            .collect::<Result<_, _>>()?;
        return listed(house, &ids, revision).await;
    }
    let read = entries.iter().map(|entry| {
        let id = fence_id_of(entry.key()).ok_or_else(no_id)?;
        format::decode_fence(id, entry.value())
    });
    read.collect()
}

/// These fences, as they stood at the revision at which they were listed.
async fn listed(house: &House, ids: &[FenceId], revision: i64) -> Result<Vec<Fence>, StoreError> {
    let mut found = Vec::new();
    for ids in ids.chunks(MOST_OPERATIONS) {
        let at = || GetOptions::new().with_revision(revision);
        let reads: Vec<TxnOp> = ids.iter().map(|id| TxnOp::get(house.keys.fence(*id), Some(at()))).collect();
        let answer = house.read_txn(Txn::new().and_then(reads)).await.map_err(Fault::of_a_read)?;
        for (id, entry) in ids.iter().zip(gets(&answer)) {
            let missing = || StoreError::Damaged(format!("fence {id} is listed and is not there"));
            found.push(format::decode_fence(*id, entry.ok_or_else(missing)?.value())?);
        }
    }
    Ok(found)
}
