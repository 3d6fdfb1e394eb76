//! All that a store keeps, taken at one moment, and put into a new one.
//!
//! # Invariants
//!
//! - What is taken was read in one snapshot and decoded. What cannot be read is an error, never left out.
//! - A store is filled wholly, in the transaction that makes it, or it is not there.

use std::ops::ControlFlow;

use picket_core::ids::{NodeId, Revision, Term};
use picket_core::store::{BoundEntry, Content, FenceQuery, StoreError, Stored};

use crate::format::{self, keys};
use crate::map::{Order, OrderedRead, OrderedWrite};
use crate::semantics::{self, MOVED, REVISION, SEALED, TERM, meta, put_meta};

/// Everything, in the order in which it is stored; fences oldest first.
pub(crate) fn dump(map: &dyn OrderedRead) -> Result<Content, StoreError> {
    let mut keys_bound = Vec::new();
    map.scan(&[keys::KEY], &keys::after(keys::KEY), Order::Ascending, &mut |key, bytes| {
        let text = String::from_utf8_lossy(&key[1..]);
        let parts = text.split_once('\0').and_then(|(node, name)| Some((NodeId::new(node).ok()?, name)));
        let Some((node, name)) = parts else {
            return Err(StoreError::Damaged(format!("an idempotency key {text:?} belongs to no node")));
        };
        let entry = format::decode_key(name, bytes)?;
        keys_bound.push(BoundEntry { node, key: name.to_owned(), entry });
        Ok(ControlFlow::Continue(()))
    })?;
    let mut fences = semantics::fences(map, &FenceQuery { limit: usize::MAX, ..FenceQuery::default() })?;
    fences.reverse();
    Ok(Content {
        incarnation: meta(map, semantics::INCARNATION)?,
        term: meta::<Term>(map, TERM)?,
        records: semantics::load_all(map)?,
        fences,
        keys: keys_bound,
        notes: crate::notes::notes(map, "")?,
    })
}

/// Makes an empty map a store that keeps all of this. Revisions begin anew, in the order of the records' last changes.
pub(crate) fn fill(map: &mut dyn OrderedWrite, content: &Content) -> Result<(), StoreError> {
    semantics::create(map, content.incarnation)?;
    put_meta(map, TERM, &content.term)?;
    let mut records: Vec<&Stored> = content.records.iter().collect();
    records.sort_by_key(|stored| stored.revision);
    let mut revision = Revision(0);
    for stored in records {
        revision = revision.next();
        let node = &stored.record.node;
        let stored = Stored { revision, ..stored.clone() };
        map.put(keys::record(node), format::encode_record(&stored)?)?;
        map.put(keys::change(revision), node.as_str().as_bytes().to_vec())?;
    }
    put_meta(map, REVISION, &revision)?;
    for fence in &content.fences {
        map.put(keys::fence(fence.id), format::encode_fence(fence)?)?;
        map.put(keys::fence_of_node(&fence.node, fence.id), Vec::new())?;
    }
    for bound in &content.keys {
        map.put(keys::key(&bound.node, &bound.key), format::encode_key(&bound.key, &bound.entry)?)?;
    }
    for (name, note) in &content.notes {
        map.put(keys::note(name), format::encode_note(name, note)?)?;
    }
    Ok(())
}

/// Where everything went; `None`: it is here.
pub(crate) fn moved(map: &dyn OrderedRead) -> Result<Option<String>, StoreError> {
    map.get(&keys::meta(MOVED))?.map(|bytes| format::decode_meta(MOVED, &bytes)).transpose()
}

/// From now on the store is refused, also by versions that do not know the mark: its format is none that they read.
pub(crate) fn seal(map: &mut dyn OrderedWrite, to: &str) -> Result<(), StoreError> {
    put_meta(map, MOVED, &to)?;
    put_meta(map, semantics::FORMAT_KEY, &SEALED)
}

/// Takes the mark away.
pub(crate) fn unseal(map: &mut dyn OrderedWrite) -> Result<(), StoreError> {
    map.delete(&keys::meta(MOVED))?;
    put_meta(map, semantics::FORMAT_KEY, &format::FORMAT)
}
