//! Notes of the fleet.

use etcd_client::{Compare, CompareOp, KeyValue, TxnOp};
use picket_core::ids::Version;
use picket_core::store::{Guard, Note, StoreError};
use picket_store::format;

use super::version_of;
use super::write::{guarded, put as put_op};
use crate::connection::Fault;
use crate::house::House;
use crate::keys::name_in;
use crate::page;

fn read(name: &str, entry: &KeyValue) -> Result<Note, StoreError> {
    let note = format::decode_note(name, entry.value())?;
    Ok(Note { version: version_of(entry), ..note })
}

pub(super) async fn note(house: &House, name: &str) -> Result<Option<Note>, StoreError> {
    let found = page::one(&house.connection, house.keys.note(name)).await.map_err(Fault::of_a_read)?;
    found.map(|entry| read(name, &entry)).transpose()
}

pub(super) async fn notes(house: &House, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
    let room = house.keys.notes();
    let found = page::all(&house.connection, house.keys.note(prefix)).await.map_err(Fault::of_a_read)?;
    let read = found.entries.iter().map(|entry| {
        let name = name_in(&room, entry.key())
            .ok_or_else(|| StoreError::Damaged("a note in etcd has a name that is no text".to_owned()))?;
        Ok((name.to_owned(), read(name, entry)?))
    });
    read.collect()
}

pub(super) async fn put(
    house: &House,
    guard: Guard,
    name: &str,
    expected: Version,
    text: Option<String>,
) -> Result<Version, StoreError> {
    let held = house.held_for(guard)?;
    format::check_note_name(name)?;
    let key = house.keys.note(name);
    let (change, version) = match text {
        None => (TxnOp::delete(key.clone(), None), Version(0)),
        Some(text) => {
            let note = Note { version: expected.next(), text };
            (put_op(key.clone(), format::encode_note(name, &note)?), note.version)
        }
    };
    let number = i64::try_from(expected.0).unwrap_or(i64::MAX);
    let same = Compare::version(key.clone(), CompareOp::Equal, number);
    match guarded(house, &held, vec![same], vec![change], vec![TxnOp::get(key, None)]).await? {
        Ok(()) => Ok(version),
        Err(read) => {
            let found = read.into_iter().next().flatten().map_or(Version(0), |entry| version_of(&entry));
            Err(StoreError::NoteChanged { name: name.to_owned(), expected, found })
        }
    }
}
