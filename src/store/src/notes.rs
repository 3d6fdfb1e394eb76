//! Notes of the fleet: small values that belong to no node, compared and changed like records.

use std::ops::ControlFlow;

use picket_core::ids::Version;
use picket_core::store::{Guard, Note, StoreError};

use crate::format::{self, keys};
use crate::map::{Order, OrderedRead, OrderedWrite};
use crate::semantics::compare_guard;

pub(crate) fn note(map: &dyn OrderedRead, name: &str) -> Result<Option<Note>, StoreError> {
    map.get(&keys::note(name))?.map(|bytes| format::decode_note(name, &bytes)).transpose()
}

pub(crate) fn notes(map: &dyn OrderedRead, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
    let mut found = Vec::new();
    map.scan(&keys::note(prefix), &keys::after(keys::NOTE), Order::Ascending, &mut |key, bytes| {
        let name = keys::text_of(key);
        if !name.starts_with(prefix) {
            return Ok(ControlFlow::Break(()));
        }
        let note = format::decode_note(&name, bytes)?;
        found.push((name, note));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

pub(crate) fn put(
    map: &mut dyn OrderedWrite,
    guard: Guard,
    name: &str,
    expected: Version,
    text: Option<String>,
) -> Result<Version, StoreError> {
    compare_guard(map, guard)?;
    format::check_note_name(name)?;
    let found = note(map, name)?.map_or(Version(0), |note| note.version);
    if found != expected {
        return Err(StoreError::NoteChanged { name: name.to_owned(), expected, found });
    }
    let Some(text) = text else {
        map.delete(&keys::note(name))?;
        return Ok(Version(0));
    };
    let note = Note { version: expected.next(), text };
    map.put(keys::note(name), format::encode_note(name, &note)?)?;
    Ok(note.version)
}
