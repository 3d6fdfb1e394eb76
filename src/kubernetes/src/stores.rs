//! In whose store's name something is noted at the far side: two gateways that were given one owner by mistake fence one cluster, each by a store of
//! its own, and neither uses or removes what is the other's (K7).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use picket_core::restore::Lives;

/// The store that the gateway serves, by whoever shares it; before the first leadership none is known, and whatever has our owner is ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stores(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    lives: Option<Arc<Lives>>,
    /// What an earlier life had noted is gone, or its name stands for ours by now.
    has_no_earlier: bool,
}

impl Stores {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn serves(&self, lives: &Arc<Lives>) {
        let mut known = self.known();
        if known.lives.as_ref() != Some(lives) {
            *known = Known { lives: Some(lives.clone()), has_no_earlier: false };
        }
    }

    /// In whose name we note.
    pub(crate) fn now(&self) -> Option<String> {
        self.known().lives.as_ref().map(|lives| lives.now.to_string())
    }

    /// Whether what was noted in that name is ours. What names no store was written before notes did.
    pub(crate) fn has(&self, noted: Option<&str>) -> bool {
        let known = self.known();
        let (Some(lives), Some(noted)) = (&known.lives, noted) else { return true };
        let is_earlier = || lives.before.iter().any(|life| life.to_string() == noted);
        noted == lives.now.to_string() || !known.has_no_earlier && is_earlier()
    }

    /// A check found that noted at the Node. Once it is no earlier life's, whoever notes in the name of one runs still, beside the store that came out
    /// of its backup.
    pub(crate) fn sees(&self, noted: Option<&str>) {
        let mut known = self.known();
        let Some(lives) = &known.lives else { return };
        let is_earlier = |noted| lives.before.iter().any(|life| life.to_string() == noted);
        known.has_no_earlier |= !noted.is_some_and(is_earlier);
    }
}
