//! What changed, and waiting for it.

use picket_core::ids::{NodeId, Revision};
use picket_core::store::StoreError;
use picket_etcd_api::{KeyValue, RangeRequest};

use crate::connection::Fault;
use crate::keys::{end_of, name_in};
use crate::page;
use crate::shared::{Etcd, Shared};

/// Nodes that changed after `since`, in the order of their last change.
pub(crate) async fn since(shared: &Shared, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
    shared.life().await?;
    let nodes = shared.keys.nodes();
    let after = i64::try_from(since.0).unwrap_or(i64::MAX).saturating_add(1);
    let range = RangeRequest {
        key: nodes.clone(),
        range_end: end_of(&nodes),
        keys_only: true,
        min_mod_revision: after,
        ..RangeRequest::default()
    };
    let answer = page::range_of(&shared.connection, range).await.map_err(Fault::of_a_read)?;
    let newest = page::header(&answer).map_err(Fault::of_a_read)?;
    if after.saturating_sub(1) > newest {
        return Err(StoreError::Compacted(since));
    }
    let named = |entry: &KeyValue| {
        let name = name_in(&nodes, &entry.key).and_then(|name| NodeId::new(name).ok());
        let revision = Revision(u64::try_from(entry.mod_revision).unwrap_or(0));
        name.map(|node| (revision, node)).ok_or_else(|| {
            StoreError::Damaged("a record in etcd stands under a name that is none".to_owned())
        })
    };
    let mut changed = answer.kvs.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    changed.sort();
    Ok(changed)
}

/// Waits until a node changed after `since`.
pub(crate) async fn wait(etcd: &Etcd, since: Revision) -> Result<(), StoreError> {
    etcd.observe();
    let mut observation = etcd.shared.observation.subscribe();
    let newer = observation.wait_for(|observation| observation.nodes > since).await;
    newer.map(drop).map_err(|_| StoreError::Unavailable("nobody looks any more what changes".to_owned()))
}
