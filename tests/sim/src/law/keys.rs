//! S20: a key means one fence for ever, and whoever was told that nothing happened finds that nothing did.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::ids::{FenceId, NodeId};
use picket_core::record::{Bringing, Phase};

use super::{Invariant, Past};
use crate::trace::{Event, Told, What};

type Key = (NodeId, String);

#[derive(Debug, Default)]
pub(super) struct Keys {
    bound: BTreeMap<Key, FenceId>,
    /// What was bound and ended before anything was sent: an answer that was under way meanwhile may name it still.
    freed: BTreeSet<(Key, FenceId)>,
    /// Who asked with a key, and was told that nothing was changed.
    nothing: BTreeMap<Key, String>,
    /// How many ask with a key at the moment.
    asking: BTreeMap<Key, u32>,
    /// Keys of which somebody left without an answer, or whose request waits: they may be bound at any time.
    vague: BTreeSet<Key>,
}

impl Invariant for Keys {
    fn name(&self) -> &'static str {
        "keys"
    }

    fn see(&mut self, _past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            // What ended before anything was sent does not bind: asked again, it is decided again.
            What::Stored { record, was, .. }
                if was.phase == Phase::Fencing && record.bringing == Bringing::Abort =>
            {
                let ended = was.fence.as_ref().map(|fence| fence.id);
                let freed = self.bound.iter().filter(|(_, fence)| Some(**fence) == ended);
                self.freed.extend(freed.map(|(key, fence)| (key.clone(), *fence)));
                self.bound.retain(|_, fence| Some(*fence) != ended);
            }
            What::Bound { node, key, fence } => {
                let key = (node.clone(), key.clone());
                if let Some(told) = self.nothing.get(&key) {
                    return Err(format!("{key:?} is bound to {fence}; who asked was told {told:?}"));
                }
                let bound = *self.bound.entry(key.clone()).or_insert(*fence);
                if bound != *fence {
                    return Err(format!("{key:?} was bound to {bound} and is bound to {fence}"));
                }
            }
            What::Asks { node, key } => {
                let key = (node.clone(), key.clone());
                self.nothing.remove(&key);
                *self.asking.entry(key).or_default() += 1;
            }
            What::Answered { node, key, told } => {
                let key = (node.clone(), key.clone());
                let others = self.asking.entry(key.clone()).or_insert(1);
                *others = others.saturating_sub(1);
                if *told == Told::Unknown {
                    self.vague.insert(key.clone());
                }
                let alone = *others == 0 && !self.vague.contains(&key);
                match (told, self.bound.get(&key)) {
                    (Told::Fence(fence), _) if self.freed.contains(&(key.clone(), *fence)) => {}
                    (Told::Fence(fence), Some(bound)) if fence != bound => {
                        return Err(format!("{key:?} is bound to {bound} and was answered with {fence}"));
                    }
                    (Told::Fence(fence), None) => {
                        return Err(format!("{key:?} is bound to nothing and was answered with {fence}"));
                    }
                    // What ended before anything was sent leaves the key to the same request, which is decided again; to one with
                    // other parameters it is taken all the same.
                    (Told::Taken, None) if self.freed.iter().any(|(freed, _)| *freed == key) => {}
                    (Told::Taken, None) => return Err(format!("{key:?} is free and was said to be taken")),
                    (Told::Nothing(why), None) if alone => {
                        self.nothing.insert(key, why.clone());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}
