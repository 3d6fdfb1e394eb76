//! The first leadership over a restored store (S21): nodes of which the backup has nothing are marked as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use picket_core::election::Leadership;
use picket_core::event::Event;
use picket_core::ids::{NodeId, Version};
use picket_core::record::NodeRecord;
use picket_core::restore::{NOTE, Restored};
use picket_core::store::{StoreError, Stored};
use picket_core::{machine, step};

use crate::parts::Parts;

/// Before any node's task begins: every node of the settings without a record gets one that is marked. Once all have one the
/// store's own note goes; whoever dies in between leaves it to the next leadership.
pub(super) async fn mark(
    parts: &Parts,
    leadership: &Leadership,
    nodes: impl Iterator<Item = &NodeId>,
    stored: &mut BTreeMap<NodeId, Arc<Stored>>,
) -> Result<(), StoreError> {
    let store = &*parts.store;
    let Some(note) = store.note(NOTE).await? else { return Ok(()) };
    let mark: Restored = serde_json::from_str(&note.text)
        .map_err(|error| StoreError::Damaged(format!("the note {NOTE:?} cannot be read: {error}")))?;
    tracing::warn!(
        at = %mark.at, taken_at = %mark.taken_at, from = %mark.from,
        "the store was restored from a backup: what reads Off is kept off until an admin drops its hold"
    );
    let (term, wall) = (leadership.term(), parts.clock.wall());
    for node in nodes {
        if stored.contains_key(node) {
            continue;
        }
        let new = NodeRecord::new(node.clone());
        let step = machine::step(&new, Version(0), Event::Marked(mark.clone()), term, wall)
            .map_err(|refused| StoreError::Damaged(format!("{node} cannot be marked: {refused}")))?;
        let saved = step::save(store, leadership, &step).await?;
        stored.insert(node.clone(), Arc::new(step.open(saved).0));
    }
    parts.hooks.reached("marked all").await;
    store.put_note(leadership.guard(), NOTE, note.version, None).await.map(drop)
}
