//! Idempotency keys of callers, as they are stored (S20).

use picket_core::event::BoundKey;
use picket_core::ids::NodeId;
use picket_core::record::IdleKeys;
use picket_core::store::{KeyEntry, Store, StoreError};

/// To what a key is bound; `idle`: the keys that stand in the node's record. A version before bound it under a name that all callers shared: there it counts for the same request alone (S20).
pub(crate) async fn bound_to(
    store: &dyn Store,
    node: &NodeId,
    bound: &BoundKey,
    idle: &IdleKeys,
) -> Result<Option<KeyEntry>, StoreError> {
    if let Some(entry) = idle.get(&bound.key) {
        return Ok(Some(entry.clone()));
    }
    let own = store.key(node, &bound.key).await?;
    if own.is_some() || bound.written() == bound.key {
        return Ok(own);
    }
    let before = store.key(node, bound.written()).await?;
    Ok(before.filter(|entry| entry.digest == bound.digest))
}
