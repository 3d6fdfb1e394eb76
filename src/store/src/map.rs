//! The ordered map of bytes under every store.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use picket_core::store::StoreError;

/// One key with its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Which end of a range comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// What is called with each entry of a scan; `Break` ends it.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError> + 'a;

/// A map that can be read.
pub(crate) trait OrderedRead {
    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits the entries from `from` (inclusive) to `to` (exclusive).
    fn scan(&self, from: &[u8], to: &[u8], order: Order, visit: &mut Visit<'_>) -> Result<(), StoreError>;
}

/// A map that can be changed. Whoever owns it makes the changes happen together or not at all.
pub(crate) trait OrderedWrite: OrderedRead {
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError>;
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError>;
}

/// At most `limit` entries of a range.
pub(crate) fn entries(
    map: &dyn OrderedRead,
    from: &[u8],
    to: &[u8],
    order: Order,
    limit: usize,
) -> Result<Vec<Entry>, StoreError> {
    let mut found = Vec::new();
    if limit > 0 {
        map.scan(from, to, order, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
    }
    Ok(found)
}

impl OrderedRead for BTreeMap<Vec<u8>, Vec<u8>> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(BTreeMap::get(self, key).cloned())
    }

    fn scan(&self, from: &[u8], to: &[u8], order: Order, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        let mut range = self.range(from.to_vec()..to.to_vec());
        while let Some((key, value)) = match order {
            Order::Ascending => range.next(),
            Order::Descending => range.next_back(),
        } {
            if visit(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl OrderedWrite for BTreeMap<Vec<u8>, Vec<u8>> {
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        self.insert(key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.remove(key);
        Ok(())
    }
}
