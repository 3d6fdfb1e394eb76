//! Up to where everything that is stored can be seen.

use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::groups::Groups;
use picket_core::ids::Revision;

use super::Engine;
use crate::error::EngineError;

/// The newest revision that is known to be seen, and of which fleet.
///
/// What was seen once stays seen: a node's view never goes back. So only what came since is looked at, and not each node for
/// each question.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Option<(Arc<Groups>, Revision)>>);

impl Seen {
    fn of(&self, fleet: &Arc<Groups>) -> Revision {
        let seen = self.0.lock();
        // With other settings there may be nodes whose views begin anew.
        seen.as_ref().filter(|(of, _)| Arc::ptr_eq(of, fleet)).map_or(Revision(0), |(_, seen)| *seen)
    }

    fn note(&self, fleet: Arc<Groups>, now: Revision) {
        let mut seen = self.0.lock();
        let known = seen.as_ref().is_some_and(|(of, known)| Arc::ptr_eq(of, &fleet) && *known >= now);
        if !known {
            *seen = Some((fleet, now));
        }
    }
}

impl Engine {
    /// A revision such that every change up to it can be seen in the nodes' views from now on. A change that is stored and
    /// not yet shown comes after it.
    pub async fn settled(&self) -> Result<Revision, EngineError> {
        let store = &self.shared.parts.store;
        let fleet = self.groups();
        let since = self.shared.seen.of(&fleet);
        let newest = store.revision().await?;
        if newest == since {
            return Ok(newest);
        }
        let mut settled = newest;
        for (changed, node) in store.changed_since(since).await? {
            let shown = self.fleet().slots.get(&node).map(|slot| slot.view.borrow().stored.revision);
            if shown.is_some_and(|shown| shown < changed) {
                settled = settled.min(Revision(changed.0.saturating_sub(1)));
                break;
            }
        }
        self.shared.seen.note(fleet, settled);
        Ok(settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_counts_for_its_fleet_and_only_grows() {
        let (seen, fleet, other) = (Seen::default(), Arc::<Groups>::default(), Arc::<Groups>::default());
        assert_eq!(seen.of(&fleet), Revision(0));
        seen.note(fleet.clone(), Revision(7));
        seen.note(fleet.clone(), Revision(5));
        assert_eq!((seen.of(&fleet), seen.of(&other)), (Revision(7), Revision(0)));
        seen.note(other.clone(), Revision(3));
        assert_eq!((seen.of(&fleet), seen.of(&other)), (Revision(0), Revision(3)));
    }
}
