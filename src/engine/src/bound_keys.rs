//! Idempotency keys of callers, as they are stored (S20).
//!
//! # Invariants
//!
//! - An unfence that finds nothing to do binds its key. A later copy of it neither withdraws nor brings
//!   back what was asked for after it. Shown by
//!   `a_copy_of_an_unfence_withdraws_nothing_that_came_after_it`.
//! - An outcome without a sent off binds no key. Shown by
//!   `recovered_before_the_off_aborts_sends_nothing_and_does_not_bind_the_key`.

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
