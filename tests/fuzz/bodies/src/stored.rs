//! What lies in the store: written by an earlier version, or by a failing disk.

use std::fmt::Debug;

use picket_core::ids::FenceId;
use picket_core::store::StoreError;
use picket_store::format;

/// The first byte says what the rest is: a record, a fence, an idempotency key, a note. What is read is written again to what
/// is read as the same; what is not is told as damage, and never taken for something that is not there.
pub(crate) fn stored(data: &[u8]) -> bool {
    let Some((&kind, bytes)) = data.split_first() else { return false };
    let id: FenceId = "019ab0b4-7d3a-7c11-9d10-0123456789ab".parse().expect("an id");
    match kind % 4 {
        0 => comes_back(bytes, |bytes| format::decode_record("n1", bytes), format::encode_record),
        1 => comes_back(bytes, |bytes| format::decode_fence(id, bytes), format::encode_fence),
        2 => comes_back(
            bytes,
            |bytes| format::decode_key("k1", bytes),
            |entry| format::encode_key("k1", entry),
        ),
        _ => comes_back(
            bytes,
            |bytes| format::decode_note("a/b", bytes),
            |note| format::encode_note("a/b", note),
        ),
    }
}

fn comes_back<T: Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, StoreError>,
    encode: impl Fn(&T) -> Result<Vec<u8>, StoreError>,
) -> bool {
    let value = match decode(bytes) {
        Ok(value) => value,
        Err(StoreError::Damaged(why)) => {
            assert!(!why.is_empty());
            return false;
        }
        Err(other) => panic!("bytes that cannot be read are damage: {other:?}"),
    };
    let written = encode(&value).expect("what was read can be written");
    let again = decode(&written).expect("what was written can be read");
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
    assert_eq!(encode(&again).expect("again"), written, "written twice to the same bytes");
    true
}
