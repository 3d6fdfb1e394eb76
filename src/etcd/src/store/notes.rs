//! Notes of the fleet.

use picket_core::ids::Version;
use picket_core::store::{Guard, Note, StoreError};
use picket_etcd_api::{Compare, KeyValue, RequestOp};
use picket_store::format;

use super::version_of;
use super::write::guarded;
use crate::connection::Fault;
use crate::keys::name_in;
use crate::page;
use crate::shared::Shared;

fn read(name: &str, entry: &KeyValue) -> Result<Note, StoreError> {
    let note = format::decode_note(name, &entry.value)?;
    Ok(Note { version: version_of(entry), ..note })
}

pub(super) async fn note(shared: &Shared, name: &str) -> Result<Option<Note>, StoreError> {
    let found = page::one(&shared.connection, shared.keys.note(name)).await.map_err(Fault::of_a_read)?;
    found.map(|entry| read(name, &entry)).transpose()
}

pub(super) async fn notes(shared: &Shared, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
    let room = shared.keys.notes();
    let found = page::all(&shared.connection, shared.keys.note(prefix)).await.map_err(Fault::of_a_read)?;
    let read = found.entries.iter().map(|entry| {
        let name = name_in(&room, &entry.key)
            .ok_or_else(|| StoreError::Damaged("a note in etcd has a name that is no text".to_owned()))?;
        Ok((name.to_owned(), read(name, entry)?))
    });
    read.collect()
}

pub(super) async fn put(
    shared: &Shared,
    guard: Guard,
    name: &str,
    expected: Version,
    text: Option<String>,
) -> Result<Version, StoreError> {
    let held = shared.held_for(guard)?;
    format::check_note_name(name)?;
    let key = shared.keys.note(name);
    let (bytes, version) = match text {
        None => (None, Version(0)),
        Some(text) => {
            let note = Note { version: expected.next(), text };
            (Some(format::encode_note(name, &note)?), note.version)
        }
    };
    let change = match &bytes {
        None => RequestOp::delete(key.clone()),
        Some(bytes) => RequestOp::put(key.clone(), bytes.clone()),
    };
    let number = i64::try_from(expected.0).unwrap_or(i64::MAX);
    let same = Compare::version(key.clone(), number);
    let ask = || {
        guarded(shared, &held, vec![same.clone()], vec![change.clone()], vec![RequestOp::get(key.clone())])
    };
    let (answer, lost) = match ask().await {
        // Sent again it happens once at most, since it compares the version.
        Err(StoreError::Unknown(why)) => match ask().await {
            Err(StoreError::Unavailable(_)) => return Err(StoreError::Unknown(why)),
            answer => (answer?, true),
        },
        answer => (answer?, false),
    };
    let Err(read) = answer else { return Ok(version) };
    let found = read.into_iter().next().flatten();
    let version_found = found.as_ref().map_or(Version(0), version_of);
    if lost && version_found == version && found.map(|entry| entry.value) == bytes {
        return Ok(version);
    }
    Err(StoreError::NoteChanged { name: name.to_owned(), expected, found: version_found })
}
