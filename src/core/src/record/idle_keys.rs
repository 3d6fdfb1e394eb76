//! Keys of requests that changed nothing: stored in the record itself, and bounded (S20). A caller repeats such a request as often as it
//! likes, each time with another key, and fills no store with that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::roles::counts_as;
use crate::store::KeyEntry;

/// So many are kept of one holder: a copy of a request that is still on its way is one of the last few.
const EACH: usize = 8;
/// So many are kept of one caller, for whatever holders it asks.
const EACH_CALLER: usize = 16;
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
    /// Who bound it. A version before did not store that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl IdleKey {
    /// Whose it is: no other owner's key has that name.
    fn owner(&self) -> &str {
        self.key.split_once('\n').map_or("", |(owner, _)| owner)
    }

    /// As whom its caller counts. Of a version before it is the holder.
    fn caller(&self) -> &str {
        self.by.as_deref().map_or_else(|| self.owner(), counts_as)
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

    /// Binds one more, and gives one up for it where there is no room.
    pub(crate) fn bind(&mut self, key: String, entry: KeyEntry, by: &str) {
        let new = IdleKey { key, entry, by: Some(by.to_owned()) };
        self.0.retain(|idle| idle.key != new.key);
        if let Some(given_up) = self.given_up_for(&new) {
            self.0.remove(given_up);
        }
        self.0.push(new);
    }

    /// The oldest of the same holder, where that has its share, or of the same caller. Where all callers together have too many it is one of the
    /// caller that has most, and of two that have as many one of whoever binds: nobody drives out the keys of a caller that has fewer (S20).
    fn given_up_for(&self, new: &IdleKey) -> Option<usize> {
        let mut counts = BTreeMap::<&str, usize>::new();
        for idle in &self.0 {
            *counts.entry(idle.caller()).or_default() += 1;
        }
        let oldest = |is: &dyn Fn(&IdleKey) -> bool| self.0.iter().position(is);
        let of_holder = |idle: &IdleKey| idle.owner() == new.owner();
        if self.0.iter().filter(|idle| of_holder(idle)).count() >= EACH {
            return oldest(&of_holder);
        }
        let own = counts.get(new.caller()).copied().unwrap_or_default();
        let most = counts.values().copied().max().unwrap_or_default();
        if own >= EACH_CALLER || self.0.len() >= MOST && own == most {
            return oldest(&|idle| idle.caller() == new.caller());
        }
        if self.0.len() < MOST { None } else { oldest(&|idle| counts.get(idle.caller()) == Some(&most)) }
    }
}
