//! The file as redb sees it: redb's own, and in tests one that can fail on purpose.

use std::fs::File;

use redb::{DatabaseError, StorageBackend};

/// What may go wrong with the disk. Nothing, outside of tests.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    #[cfg(test)]
    pub(super) plan: std::sync::Arc<super::faulty::FailurePlan>,
}

impl Faults {
    #[cfg(not(test))]
    pub(super) fn disk(&self, file: File) -> Result<impl StorageBackend, DatabaseError> {
        redb::backends::FileBackend::new(file)
    }

    #[cfg(test)]
    pub(super) fn disk(&self, file: File) -> Result<impl StorageBackend, DatabaseError> {
        super::faulty::FaultyDisk::new(file, std::sync::Arc::clone(&self.plan))
    }
}
