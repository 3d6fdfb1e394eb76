//! The open file: reads, commits, and what happens after an I/O error.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock};
use picket_core::ids::Incarnation;
use picket_core::store::{Content, StoreError};
use redb::{Database, ReadableDatabase};

use super::disk::Faults;
use super::error::{OpenError, RedbError, named};
use super::lock::LockFile;
use super::open::{self, SealMark, caught};
use super::queue::Job;
use super::table::{ChangeMap, ReadMap, TABLE};
use crate::map::OrderedRead;
use crate::semantics;

/// The file, held by this process.
pub(super) struct DbFile {
    path: PathBuf,
    incarnation: Incarnation,
    faults: Faults,
    slot: RwLock<Slot>,
    lock: Mutex<Option<LockFile>>,
}

/// Makes the store at `path` with all of this in it, and remembers it.
pub(super) fn restore(path: &Path, content: &Content) -> Result<(), OpenError> {
    open::check_directory(path)?;
    let lock = open::take_lock(path)?;
    open::restore(path, &lock, content, &Faults::default())?;
    remember(path, &lock, content.incarnation)
}

/// Takes the mark of a sealed store away.
pub(super) fn unseal(path: &Path) -> Result<SealMark, OpenError> {
    open::check_directory(path)?;
    let _lock = open::take_lock(path)?;
    let unsealed = open::unseal(path, &Faults::default())?;
    unsealed.ok_or_else(|| OpenError::NotSealed { path: path.to_owned() })
}

fn remember(path: &Path, lock: &LockFile, incarnation: Incarnation) -> Result<(), OpenError> {
    lock.remember(incarnation).map_err(|source| OpenError::Io {
        path: super::lock::lock_path(path),
        doing: "write",
        source,
    })
}

enum Slot {
    Open(Database),
    /// Something failed: what redb holds in memory is not believed any more, and the file is read anew.
    Doubted,
    /// What is stored cannot be read. It stays so.
    Damaged(StoreError),
    Closed,
}

impl DbFile {
    pub(super) fn open(path: &Path, fresh: Incarnation, faults: Faults) -> Result<Self, OpenError> {
        open::check_directory(path)?;
        let lock = open::take_lock(path)?;
        open::create_if_absent(path, &lock, fresh, &faults)?;
        let (database, incarnation) = open::open(path, &faults, false)?;
        open::tell_if_replaced(path, &lock, incarnation)?;
        remember(path, &lock, incarnation)?;
        let slot = RwLock::new(Slot::Open(database));
        Ok(Self { path: path.to_owned(), incarnation, faults, slot, lock: Mutex::new(Some(lock)) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Closes the file and frees its lock, after what is under way.
    pub(super) fn close(&self) {
        self.put(Slot::Closed);
        drop(self.lock.lock().take());
    }

    /// Puts `slot` in the place of what was there, which is closed whatever it says. A closed store stays closed.
    fn put(&self, slot: Slot) {
        let mut held = self.slot.write();
        if matches!(&*held, Slot::Closed) {
            return;
        }
        let old = std::mem::replace(&mut *held, slot);
        let _ = caught(|| {
            drop(old);
            Ok(())
        });
    }

    /// After `broken`: nothing more is read or written until the file was read anew.
    fn doubt(&self, broken: &RedbError) {
        self.put(match broken {
            RedbError::Io(_) => Slot::Doubted,
            RedbError::Damaged(_) => Slot::Damaged(named(&self.path, broken.clone().into())),
        });
    }

    /// Reads the file anew where something had failed.
    fn mend(&self) -> Result<(), StoreError> {
        if !matches!(&*self.slot.read(), Slot::Doubted) {
            return Ok(());
        }
        let mut slot = self.slot.write();
        if !matches!(&*slot, Slot::Doubted) {
            return Ok(());
        }
        match open::open(&self.path, &self.faults, true) {
            Ok((_, other)) if other != self.incarnation => {
                let what = format!("it was replaced by another store ({other}) while it was open");
                let error = named(&self.path, StoreError::Damaged(what));
                *slot = Slot::Damaged(error.clone());
                Err(error)
            }
            Ok((database, _)) => {
                *slot = Slot::Open(database);
                Ok(())
            }
            Err(error) => {
                let error = error.into_store_error();
                if matches!(error, StoreError::Damaged(_)) {
                    *slot = Slot::Damaged(error.clone());
                }
                Err(error)
            }
        }
    }

    /// Runs `work` with the database.
    fn with<T>(&self, work: impl FnOnce(&Database) -> T) -> Result<T, StoreError> {
        self.mend()?;
        match &*self.slot.read() {
            Slot::Open(database) => Ok(work(database)),
            Slot::Doubted => {
                Err(StoreError::Unavailable(format!("{}: an earlier call failed", self.path.display())))
            }
            Slot::Damaged(error) => Err(error.clone()),
            Slot::Closed => Err(StoreError::Unavailable(format!("{} was closed", self.path.display()))),
        }
    }

    /// One consistent read.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&dyn OrderedRead) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let said = self.with(|database| {
            caught(|| {
                let transaction = database.begin_read().map_err(RedbError::of)?;
                let map = ReadMap::new(transaction.open_table(TABLE).map_err(RedbError::of)?);
                let answer = work(&map);
                map.broken().map_or(Ok(answer), Err)
            })
        })?;
        said.unwrap_or_else(|broken| {
            self.doubt(&broken);
            Err(broken.into())
        })
        .map_err(|error| named(&self.path, error))
    }

    /// Applies the jobs in one transaction. `Ok`: it is durable, or nothing was changed; each job has its own answer.
    /// An error is the answer of all of them.
    pub(super) fn commit(&self, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
        // Set once the commit itself began: until then surely nothing has happened.
        let begun = Cell::new(None);
        let done = self.with(|database| caught(|| apply(database, jobs, &begun)))?;
        let Err(broken) = done else { return Ok(()) };
        self.doubt(&broken);
        let error = match (begun.get(), broken) {
            (None, broken) => broken.into(),
            (Some(commit), RedbError::Io(why) | RedbError::Damaged(why)) => self.settle(commit, &why),
        };
        Err(named(&self.path, error))
    }

    /// Whether the commit that failed is on the disk. It is there wholly or not at all.
    fn settle(&self, commit: u64, why: &str) -> StoreError {
        match self.read(semantics::commits) {
            Ok(stored) if stored < commit => StoreError::Unavailable(why.to_owned()),
            Ok(_) => StoreError::Unknown(format!("{why}; read again, the write is there")),
            Err(error) => StoreError::Unknown(format!("{why}; reading it again: {error}")),
        }
    }
}

fn apply(database: &Database, jobs: &mut [Box<dyn Job>], begun: &Cell<Option<u64>>) -> Result<(), RedbError> {
    let mut transaction = database.begin_write().map_err(RedbError::of)?;
    transaction.set_two_phase_commit(true);
    let mut map = ChangeMap::new(transaction.open_table(TABLE).map_err(RedbError::of)?);
    for job in jobs {
        job.apply(&mut map);
        if let Some(broken) = map.broken() {
            return Err(broken);
        }
    }
    if !map.changed() {
        return Ok(());
    }
    let commit = semantics::count_commit(&mut map);
    if let Some(broken) = map.broken() {
        return Err(broken);
    }
    let commit = commit.map_err(|error| RedbError::Damaged(error.to_string()))?;
    drop(map);
    begun.set(Some(commit));
    transaction.commit().map_err(RedbError::of)
}
