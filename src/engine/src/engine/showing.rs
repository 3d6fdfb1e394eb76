//! What is stored, as a gateway that does not lead shows it.
//!
//! # Invariants
//!
//! - What is shown is of one life of the store. What was seen of another life is void, also of a node of
//!   which a restored store has nothing (S21). Shown by
//!   `a_gateway_that_lives_through_a_restore_goes_on_with_the_new_life_alone`.

use std::sync::Arc;

use picket_core::ids::{Incarnation, NodeId, Revision};
use picket_core::store::{StoreError, Stored};

use super::fleet::never_stored;
use super::{Engine, queue};

impl Engine {
    /// Reads what changed since, or everything; returns up to where, and in which life of the store.
    pub(super) async fn read(
        &self,
        seen: Option<(Incarnation, Revision)>,
    ) -> Result<(Incarnation, Revision), StoreError> {
        let store = &self.shared.parts.store;
        let revision = store.revision().await?;
        // As it was read with that revision.
        let newest = (store.incarnation(), revision);
        if seen == Some(newest) {
            return Ok(newest);
        }
        let is_another = self.lives(newest.0);
        match seen.filter(|(life, _)| *life == newest.0 && !is_another) {
            None => {
                let all = store.load_all().await?;
                if is_another {
                    self.show_nothing();
                }
                all.into_iter().for_each(|stored| self.show_stored(Arc::new(stored), is_another));
            }
            Some((_, seen)) => {
                for (_, node) in store.changed_since(seen).await? {
                    let stored = store.load(&node).await?;
                    stored.into_iter().for_each(|stored| self.show_stored(Arc::new(stored), false));
                }
            }
        }
        self.shared.following.send_if_modified(|following| {
            following.life = Some(newest.0);
            false
        });
        self.shared.office.see(&**store).await?;
        queue::see(self).await?;
        Ok(newest)
    }

    /// Whether what is shown is of another life of the store than that one.
    fn lives(&self, life: Incarnation) -> bool {
        self.shared.following.borrow().life.is_some_and(|shown| shown != life)
    }

    /// Nothing is known of any node.
    fn show_nothing(&self) {
        tracing::warn!(
            "the store is another one than before, by its life: what was seen of the nodes is void"
        );
        let known: Vec<NodeId> = self.fleet().slots.keys().cloned().collect();
        known.iter().for_each(|node| self.show_stored(Arc::new(never_stored(node)), true));
    }

    /// `anew`: whatever was shown before.
    pub(super) fn show_stored(&self, stored: Arc<Stored>, anew: bool) {
        let (node, revision) = (stored.record.node.clone(), stored.revision);
        if let Some(slot) = self.seat(&stored) {
            slot.view.send_modify(|view| {
                view.plan = slot.plan.clone();
                Arc::make_mut(&mut view.live).orphaned.clone_from(&slot.orphan);
                if anew || stored.revision > view.stored.revision {
                    view.stored = stored;
                }
            });
        }
        let _ = self.shared.feed.send((revision, node));
    }
}
