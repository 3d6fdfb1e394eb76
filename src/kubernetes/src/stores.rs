//! In whose store's name something is noted at the far side: two gateways that were given one owner by mistake fence one cluster, each by a store of
//! its own, and neither uses or removes what is the other's (K7).

use std::sync::Arc;

use parking_lot::Mutex;
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
    pub(crate) fn serves(&self, lives: &Arc<Lives>) {
        let mut known = self.0.lock();
        if known.lives.as_ref() != Some(lives) {
            *known = Known { lives: Some(lives.clone()), has_no_earlier: false };
        }
    }

    /// In whose name we note.
    pub(crate) fn now(&self) -> Option<String> {
        self.0.lock().lives.as_ref().map(|lives| lives.now.to_string())
    }

    /// Whether a mark in that name is ours, which outlives a restore: of what an earlier life left at a Machine nobody but us takes it away, and
    /// a check of a Node says nothing of it.
    pub(crate) fn had(&self, marked: Option<&str>) -> bool {
        let known = self.0.lock();
        let (Some(lives), Some(marked)) = (&known.lives, marked) else { return true };
        marked == lives.now.to_string() || lives.before.iter().any(|life| life.to_string() == marked)
    }

    /// Whether what was noted in that name is ours. What names no store was written before notes did.
    pub(crate) fn has(&self, noted: Option<&str>) -> bool {
        let known = self.0.lock();
        let (Some(lives), Some(noted)) = (&known.lives, noted) else { return true };
        let is_earlier = || lives.before.iter().any(|life| life.to_string() == noted);
        noted == lives.now.to_string() || !known.has_no_earlier && is_earlier()
    }

    /// A check found that noted at the Node. Once it is no earlier life's, whoever notes in the name of one runs still, beside the store that came out
    /// of its backup.
    pub(crate) fn sees(&self, noted: Option<&str>) {
        let mut known = self.0.lock();
        let Some(lives) = &known.lives else { return };
        let is_earlier = |noted| lives.before.iter().any(|life| life.to_string() == noted);
        known.has_no_earlier |= !noted.is_some_and(is_earlier);
    }
}

#[cfg(test)]
mod tests {
    use picket_core::ids::Incarnation;
    use picket_core::time::WallTime;

    use super::*;

    /// A Node without our note says that it was tidied, and nothing of what stands at its Machine.
    #[test]
    fn a_mark_of_an_earlier_life_is_ours_whatever_a_check_of_a_node_found() {
        let life = |number| Incarnation::mint(WallTime::default(), [number; 10]);
        let stores = Stores::default();
        stores.serves(&Arc::new(Lives { now: life(2), before: [life(1)].into() }));
        let of = |number| life(number).to_string();
        let ours = |stores: &Stores| [1, 2, 3].map(|number| stores.had(Some(&of(number))));
        assert_eq!(ours(&stores), [true, true, false]);
        stores.sees(None);
        assert_eq!(ours(&stores), [true, true, false]);
        assert!(!stores.has(Some(&of(1))), "a note that comes again is of one that runs still");
    }
}
