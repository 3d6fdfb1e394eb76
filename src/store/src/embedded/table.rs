//! The ordered map in redb: one table of bytes.

use std::cell::RefCell;

use picket_core::store::StoreError;
use redb::{ReadOnlyTable, ReadableTable, Table, TableDefinition};

use super::error::RedbError;
use crate::map::{Order, OrderedRead, OrderedWrite, Visit};

/// The one table.
pub(super) const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("picket");

/// A table, and what redb said when it first failed. After a failure nothing of it may be committed.
pub(super) struct RedbMap<T> {
    table: T,
    broken: RefCell<Option<RedbError>>,
    changed: bool,
}

/// To be read.
pub(super) type ReadMap = RedbMap<ReadOnlyTable<&'static [u8], &'static [u8]>>;
/// To be changed, within one transaction.
pub(super) type ChangeMap<'t> = RedbMap<Table<'t, &'static [u8], &'static [u8]>>;

impl<T> RedbMap<T> {
    pub(super) fn new(table: T) -> Self {
        Self { table, broken: RefCell::new(None), changed: false }
    }

    /// Whether anything was put or deleted.
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// What redb said when it first failed.
    pub(super) fn broken(&self) -> Option<RedbError> {
        self.broken.borrow().clone()
    }

    /// Keeps what redb said first.
    fn fail(&self, error: impl Into<redb::Error>) -> StoreError {
        self.broken.borrow_mut().get_or_insert_with(|| RedbError::of(error)).clone().into()
    }
}

impl<T: ReadableTable<&'static [u8], &'static [u8]>> OrderedRead for RedbMap<T> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.table.get(key).map_err(|error| self.fail(error))?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    fn scan(&self, from: &[u8], to: &[u8], order: Order, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        let mut range = self.table.range(from..to).map_err(|error| self.fail(error))?;
        while let Some(entry) = match order {
            Order::Ascending => range.next(),
            Order::Descending => range.next_back(),
        } {
            let (key, value) = entry.map_err(|error| self.fail(error))?;
            if visit(key.value(), value.value())?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl OrderedWrite for ChangeMap<'_> {
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        self.changed = true;
        let done = self.table.insert(key.as_slice(), value.as_slice()).map(|_| ());
        done.map_err(|error| self.fail(error))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.changed = true;
        let done = self.table.remove(key).map(|_| ());
        done.map_err(|error| self.fail(error))
    }
}
