//! Names of the keys, all under the fleet's prefix.

use picket_core::ids::{FenceId, NodeId};

/// The fleet's prefix, and the names under it.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

/// The first key after all that begin with `prefix`, which ends in no 0xff: ours end in `/` or in text.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    fn under(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }

    /// The prefix itself, for messages.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Everything.
    pub(crate) fn all(&self) -> Vec<u8> {
        self.under("")
    }

    /// The format that the store was written in.
    pub(crate) fn format(&self) -> Vec<u8> {
        self.under("format")
    }

    /// The store's life.
    pub(crate) fn incarnation(&self) -> Vec<u8> {
        self.under("incarnation")
    }

    /// The highest term ever won.
    pub(crate) fn term(&self) -> Vec<u8> {
        self.under("term")
    }

    /// There while a restore fills the store.
    pub(crate) fn filling(&self) -> Vec<u8> {
        self.under("filling")
    }

    /// There once everything was moved to another store; says where it went, in words.
    pub(crate) fn marked(&self) -> Vec<u8> {
        self.under("marked")
    }

    /// What the election is held with: the leader, the members, and what binds who stands.
    pub(crate) fn election(&self) -> Vec<u8> {
        self.under("election/")
    }

    /// Who leads; under its lease.
    pub(crate) fn leader(&self) -> Vec<u8> {
        self.under("election/leader")
    }

    /// The digest of the fleet's settings by which was led last.
    pub(crate) fn digest(&self) -> Vec<u8> {
        self.under("election/digest")
    }

    /// The least version of a gateway that may lead.
    pub(crate) fn least_version(&self) -> Vec<u8> {
        self.under("election/least-version")
    }

    /// A gateway that takes part; under a lease of its own.
    pub(crate) fn member(&self, gateway: &str) -> Vec<u8> {
        self.under(&format!("election/member/{gateway}"))
    }

    pub(crate) fn node(&self, node: &NodeId) -> Vec<u8> {
        self.under(&format!("node/{node}"))
    }

    pub(crate) fn nodes(&self) -> Vec<u8> {
        self.under("node/")
    }

    /// Fences sort by age, since their ids do, also as text.
    pub(crate) fn fence(&self, id: FenceId) -> Vec<u8> {
        self.under(&format!("fence/{id}"))
    }

    pub(crate) fn fences(&self) -> Vec<u8> {
        self.under("fence/")
    }

    /// Says that a fence is of a node; holds nothing.
    pub(crate) fn fence_of_node(&self, node: &NodeId, id: FenceId) -> Vec<u8> {
        self.under(&format!("of/{node}/{id}"))
    }

    pub(crate) fn fences_of_node(&self, node: &NodeId) -> Vec<u8> {
        self.under(&format!("of/{node}/"))
    }

    /// An idempotency key: a node's name has no slash in it, the key may have any.
    pub(crate) fn key(&self, node: &NodeId, key: &str) -> Vec<u8> {
        self.under(&format!("key/{node}/{key}"))
    }

    pub(crate) fn all_keys(&self) -> Vec<u8> {
        self.under("key/")
    }

    pub(crate) fn note(&self, name: &str) -> Vec<u8> {
        self.under(&format!("note/{name}"))
    }

    pub(crate) fn notes(&self) -> Vec<u8> {
        self.under("note/")
    }
}

/// What stands after `room` in a key of that room.
pub(crate) fn name_in<'k>(room: &[u8], key: &'k [u8]) -> Option<&'k str> {
    std::str::from_utf8(key.strip_prefix(room)?).ok()
}

/// The fence's id at the end of a key.
pub(crate) fn fence_id_of(key: &[u8]) -> Option<FenceId> {
    std::str::from_utf8(key).ok()?.rsplit('/').next()?.parse().ok()
}

/// The node and the key that an idempotency key's key names.
pub(crate) fn node_and_key<'k>(room: &[u8], key: &'k [u8]) -> Option<(&'k str, &'k str)> {
    name_in(room, key)?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_run_into_each_other() {
        let keys = Keys::new("/picket/");
        let (one, two) = (NodeId::new("r1").expect("a name"), NodeId::new("r11").expect("a name"));
        assert!(!keys.fences_of_node(&two).starts_with(&keys.fences_of_node(&one)));
        let key = keys.key(&one, "a/b");
        assert_eq!(node_and_key(&keys.all_keys(), &key), Some(("r1", "a/b")));
        assert_eq!(name_in(&keys.nodes(), &keys.node(&one)), Some("r1"));
        assert_eq!(end_of(b"/a/"), b"/a0");
    }

    #[test]
    fn fences_sort_by_age_as_their_ids_do() {
        let wall = picket_core::time::WallTime::from_millis;
        let ids = [1_700_000_000_000, 1_700_000_000_001, 1_800_000_000_000]
            .map(|at| FenceId::mint(wall(at), [9; 10]));
        let keys = Keys::new("/p/");
        let named: Vec<_> = ids.iter().map(|id| keys.fence(*id)).collect();
        assert!(named.is_sorted() && ids.is_sorted());
        assert_eq!(fence_id_of(&named[2]), Some(ids[2]));
    }
}
