//! A disk that fails when a test asks for it, and a record of what it was told.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;
use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};

/// What the disk was told.
#[derive(Clone, Debug)]
pub(super) enum DiskCall {
    Write { offset: u64, data: Vec<u8> },
    SetLen(u64),
    Sync,
}

/// When the disk fails.
#[derive(Debug)]
pub(super) struct FailurePlan {
    /// The disk is full: nothing is written beyond so many bytes.
    pub(super) room: AtomicU64,
    /// How many more changes and flushes succeed before one fails; negative: all.
    pub(super) until_fault: AtomicI64,
    /// Whether everything after that fault fails as well.
    pub(super) stays: AtomicBool,
    events: Mutex<Option<Vec<DiskCall>>>,
}

impl Default for FailurePlan {
    fn default() -> Self {
        let (room, until_fault) = (AtomicU64::new(u64::MAX), AtomicI64::new(-1));
        Self { room, until_fault, stays: AtomicBool::new(false), events: Mutex::new(None) }
    }
}

impl FailurePlan {
    /// Records from now on, beginning with a file of these bytes.
    pub(super) fn record(&self, bytes: &[u8]) {
        let whole = DiskCall::Write { offset: 0, data: bytes.to_vec() };
        *self.events.lock() = Some(vec![whole, DiskCall::Sync]);
    }

    /// What was recorded so far.
    pub(super) fn recorded(&self) -> Vec<DiskCall> {
        self.events.lock().clone().unwrap_or_default()
    }

    fn before(&self, event: impl FnOnce() -> DiskCall, end: u64) -> io::Result<()> {
        if end > self.room.load(SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let left = self.until_fault.load(SeqCst);
        if left == 0 {
            self.until_fault.store(if self.stays.load(SeqCst) { 0 } else { -1 }, SeqCst);
            return Err(io::Error::other("the disk failed on purpose"));
        }
        self.until_fault.store(if left > 0 { left - 1 } else { left }, SeqCst);
        if let Some(events) = &mut *self.events.lock() {
            events.push(event());
        }
        Ok(())
    }
}

/// redb's own file, under a plan.
#[derive(Debug)]
pub(super) struct FaultyDisk {
    file: FileBackend,
    plan: Arc<FailurePlan>,
}

impl FaultyDisk {
    pub(super) fn new(file: File, plan: Arc<FailurePlan>) -> Result<Self, DatabaseError> {
        Ok(Self { file: FileBackend::new(file)?, plan })
    }
}

impl StorageBackend for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.plan.before(|| DiskCall::SetLen(len), len)?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.plan.before(|| DiskCall::Sync, 0)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.plan.before(|| DiskCall::Write { offset, data: data.to_vec() }, offset + data.len() as u64)?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
