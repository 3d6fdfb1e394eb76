//! A body for fuzzing what services show (feature `fuzz`).

use crate::key::Key;

/// A certificate: where its key is found, that stands in it, and the rest of it is not empty. Says whether there is one.
///
/// # Panics
/// Something does not hold.
pub fn shown(data: &[u8]) -> bool {
    let Some(key) = Key::of(data) else { return false };
    assert!(key.info.len() < data.len() && key.algorithm.len() + key.bits.len() < key.info.len());
    let stands_in = |part: &[u8]| {
        data.as_ptr_range().start <= part.as_ptr() && part.as_ptr_range().end <= data.as_ptr_range().end
    };
    assert!(stands_in(key.info) && stands_in(key.bits));
    assert!(key.rsa_bits().is_none_or(|bits| bits > 0 && bits <= 8 * key.bits.len()));
    true
}
