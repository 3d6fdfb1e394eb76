//! Keys of requests that changed nothing: stored in the record itself, and bounded (S20). A caller repeats such a request as often as it
//! likes, each time with another key, and fills no store with that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::store::KeyEntry;

/// So many are kept of one holder: a copy of a request that is still on its way is one of the last few.
const EACH: usize = 8;
/// So many are kept of a node: its record is one request to etcd.
const MOST: usize = 64;

/// The keys of a node's requests that changed nothing, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdleKeys(Vec<IdleKey>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct IdleKey {
    key: String,
    #[serde(flatten)]
    entry: KeyEntry,
}

impl IdleKey {
    /// Whose it is: no other owner's key has that name.
    fn owner(&self) -> &str {
        self.key.split_once('\n').map_or("", |(owner, _)| owner)
    }
}

impl IdleKeys {
    /// To what a key is bound.
    pub fn get(&self, key: &str) -> Option<&KeyEntry> {
        self.0.iter().find(|idle| idle.key == key).map(|idle| &idle.entry)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Binds one more. The oldest of its holder is given up for it; where all holders together have too many, the oldest of the holder that has
    /// most.
    pub(crate) fn bind(&mut self, key: String, entry: KeyEntry) {
        let new = IdleKey { key, entry };
        self.0.retain(|idle| idle.key != new.key);
        let mut counts = BTreeMap::<&str, usize>::new();
        for idle in &self.0 {
            *counts.entry(idle.owner()).or_default() += 1;
        }
        let own = counts.get(new.owner()).copied().unwrap_or_default();
        let gives_up = match self.0.len() >= MOST {
            _ if own >= EACH => Some(new.owner()),
            true => counts.into_iter().max_by_key(|(_, count)| *count).map(|(owner, _)| owner),
            false => None,
        };
        let oldest = gives_up.and_then(|owner| self.0.iter().position(|idle| idle.owner() == owner));
        if let Some(oldest) = oldest {
            self.0.remove(oldest);
        }
        self.0.push(new);
    }
}
