//! Opening, verifying and making the file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use picket_core::ids::Incarnation;
use picket_core::store::{Content, StoreError};
use redb::{Database, DatabaseError, ReadableDatabase, TableError};
use rustix::fs::{Access, Advice, AtFlags, CWD, accessat, fadvise};

use super::disk::Faults;
use super::error::{OpenError, RedbError};
use super::filesystem;
use super::lock::{LockError, LockFile, lock_path};
use super::table::{RedbMap, TABLE};
use crate::content;
use crate::format::FORMAT;
use crate::map::OrderedWrite;
use crate::semantics::{self, SEALED};

/// What redb may keep in memory. A record takes about 4 kB, so that those of a thousand nodes fit.
const CACHE: usize = 16 << 20;

fn io_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io { path: path.to_owned(), doing, source }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a directory in which somebody else could put another file in the store's place, and one that other machines have too.
pub(super) fn check_directory(path: &Path) -> Result<(), OpenError> {
    let directory = directory(path);
    let found = fs::metadata(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::NoDirectory { directory: directory.to_owned() },
        _ => io_error(directory, "find the store's directory")(error),
    })?;
    let mode = found.mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(OpenError::Exposed { path: directory.to_owned(), mode, right: "o-w" });
    }
    picket_permissions::check_state_directory(directory)
        .map_err(|fault| OpenError::Foreign { directory: directory.to_owned(), fault })?;
    filesystem::check(directory)?;
    // A link may lead to another file system than the directory's.
    match path.try_exists() {
        Ok(true) => filesystem::check(path),
        _ => Ok(()),
    }
}

/// Whether the store could be opened, or made, as far as that is to be seen without touching anything.
pub(super) fn check(path: &Path) -> Result<(), OpenError> {
    let may = |place: &Path, access: Access, doing: &'static str| {
        accessat(CWD, place, access, AtFlags::EACCESS).map_err(|error| io_error(place, doing)(error.into()))
    };
    check_directory(path)?;
    may(directory(path), Access::WRITE_OK | Access::EXEC_OK, "write to the store's directory")?;
    let lock = lock_path(path);
    let there = |place: &Path| place.try_exists().map_err(io_error(place, "look for"));
    let remembers = if there(&lock)? {
        may(&lock, Access::READ_OK | Access::WRITE_OK, "lock")?;
        LockFile::made_at(&lock).map_err(io_error(&lock, "read"))?.is_some()
    } else {
        false
    };
    if there(path)? {
        check_file(path, &fs::metadata(path).map_err(io_error(path, "look at"))?)?;
        return may(path, Access::READ_OK | Access::WRITE_OK, "open");
    }
    if remembers { Err(OpenError::Gone { path: path.to_owned(), lock }) } else { Ok(()) }
}

/// Refuses what cannot be a store, and what others may write.
fn check_file(path: &Path, about: &fs::Metadata) -> Result<(), OpenError> {
    let mode = about.mode() & 0o7777;
    if !about.is_file() {
        return Err(io_error(path, "open")(io::Error::other("it is no regular file")));
    }
    if mode & 0o006 != 0 {
        return Err(OpenError::Exposed { path: path.to_owned(), mode, right: "600" });
    }
    if about.len() == 0 {
        return Err(OpenError::Damaged { path: path.to_owned(), what: "it is empty".to_owned() });
    }
    Ok(())
}

pub(super) fn take_lock(path: &Path) -> Result<LockFile, OpenError> {
    let lock = lock_path(path);
    LockFile::take(&lock).map_err(|refused| match refused {
        LockError::Held(pid) => OpenError::Locked { path: path.to_owned(), pid },
        LockError::Io(source) => OpenError::Io { path: lock, doing: "lock", source },
    })
}

/// Makes an empty store where there is none.
pub(super) fn create_if_absent(
    path: &Path,
    lock: &LockFile,
    fresh: Incarnation,
    faults: &Faults,
) -> Result<(), OpenError> {
    if path.try_exists().map_err(io_error(path, "look for"))? {
        return Ok(());
    }
    let lock_file = lock_path(path);
    if lock.made().map_err(io_error(&lock_file, "read"))?.is_some() {
        return Err(OpenError::Gone { path: path.to_owned(), lock: lock_file });
    }
    make(path, faults, |map| semantics::create(map, fresh))
}

/// Makes the store with all of this in it, where there is none and was none.
pub(super) fn restore(
    path: &Path,
    lock: &LockFile,
    content: &Content,
    faults: &Faults,
) -> Result<(), OpenError> {
    let lock_file = lock_path(path);
    let made = lock.made().map_err(io_error(&lock_file, "read"))?.is_some();
    if made || path.try_exists().map_err(io_error(path, "look for"))? {
        return Err(OpenError::Exists { path: path.to_owned(), lock: lock_file });
    }
    make(path, faults, |map| content::fill(map, content))
}

/// Under another name first, so that a crash never leaves half of one.
fn make(
    path: &Path,
    faults: &Faults,
    begin: impl FnOnce(&mut dyn OrderedWrite) -> Result<(), StoreError>,
) -> Result<(), OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(&new, "remove")(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&new);
    let file = file.map_err(io_error(&new, "make"))?;
    let database = redb_open(&new, file, faults).map_err(|error| named_as_made(error, &new))?.0;
    let made = caught(|| fill(&database, begin)).and_then(|()| {
        caught(|| {
            drop(database);
            Ok(())
        })
    });
    made.map_err(|broken| open_error(&new, broken, "make"))?;
    File::open(&new).and_then(|file| file.sync_all()).map_err(io_error(&new, "flush"))?;
    fs::rename(&new, path).map_err(io_error(path, "rename the new store to"))?;
    let directory = directory(path);
    File::open(directory).and_then(|file| file.sync_all()).map_err(io_error(directory, "flush"))
}

/// A file that is only being made is not damaged, whatever its bytes say.
fn named_as_made(error: OpenError, new: &Path) -> OpenError {
    match error {
        OpenError::Damaged { what, .. } => io_error(new, "make")(io::Error::other(what)),
        other => other,
    }
}

fn fill(
    database: &Database,
    begin: impl FnOnce(&mut dyn OrderedWrite) -> Result<(), StoreError>,
) -> Result<(), RedbError> {
    let mut transaction = database.begin_write().map_err(RedbError::of)?;
    transaction.set_two_phase_commit(true);
    {
        let mut map = RedbMap::new(transaction.open_table(TABLE).map_err(RedbError::of)?);
        begin(&mut map).map_err(|error| RedbError::Io(error.to_string()))?;
    }
    transaction.commit().map_err(RedbError::of)
}

/// Tells where the store that was here last was another one. It is told once: from here on this one is remembered.
pub(super) fn tell_if_replaced(path: &Path, lock: &LockFile, found: Incarnation) -> Result<(), OpenError> {
    let last = lock.made().map_err(io_error(&lock_path(path), "read"))?;
    if let Some(last) = last.filter(|last| *last != found.to_string()) {
        tracing::error!(
            store = %path.display(),
            found = %found,
            last,
            "the store was replaced by another one (an older copy?): what the one before has issued and fenced since \
             is not known here; check by hand which nodes are off, and what was let go of them"
        );
    }
    Ok(())
}

/// Opens the file that is there, and reads all of it. `from_disk`: what the kernel remembers of it is not believed.
pub(super) fn open(
    path: &Path,
    faults: &Faults,
    from_disk: bool,
) -> Result<(Database, Incarnation), OpenError> {
    let damaged = |what: String| OpenError::Damaged { path: path.to_owned(), what };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(io_error(path, "open"))?;
    let about = file.metadata().map_err(io_error(path, "look at"))?;
    check_file(path, &about)?;
    if from_disk {
        // After a failed flush the kernel keeps pages that the disk never took, and calls them clean.
        fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|error| io_error(path, "read anew")(error.into()))?;
    }
    let (mut database, verified) = redb_open(path, file, faults)?;
    let verified = verified
        || caught(|| database.check_integrity().map_err(RedbError::of))
            .map(|_| true)
            .map_err(|broken| open_error(path, broken, "verify"))?;
    debug_assert!(verified, "redb verifies every page when it repairs, and when it is asked to");
    let incarnation = caught(|| verify(&database)).map_err(|broken| open_error(path, broken, "verify"))?;
    match incarnation {
        Verified::Store(incarnation) => Ok((database, incarnation)),
        Verified::Damaged(what) => Err(damaged(what)),
        Verified::Moved(to) => Err(OpenError::Moved { path: path.to_owned(), to }),
        Verified::Newer(found) => Err(OpenError::Newer { path: path.to_owned(), found, known: FORMAT }),
    }
}

enum Verified {
    Store(Incarnation),
    Damaged(String),
    Moved(String),
    Newer(u64),
}

/// What the mark of a sealed store said, before it was taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealMark {
    /// Where everything had been moved to, as whoever sealed it said.
    pub to: String,
}

/// Takes the mark of a sealed store away; `None`: it has none.
pub(super) fn unseal(path: &Path, faults: &Faults) -> Result<Option<SealMark>, OpenError> {
    let sealed = match open(path, faults, false) {
        Ok(_) => return Ok(None),
        Err(OpenError::Moved { to, .. }) => SealMark { to },
        Err(error) => return Err(error),
    };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(io_error(path, "open"))?;
    let (database, _) = redb_open(path, file, faults)?;
    caught(|| fill(&database, content::unseal)).map_err(|broken| open_error(path, broken, "unseal"))?;
    Ok(Some(sealed))
}

fn verify(database: &Database) -> Result<Verified, RedbError> {
    let transaction = database.begin_read().map_err(RedbError::of)?;
    let table = match transaction.open_table(TABLE) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => {
            return Ok(Verified::Damaged("it is a redb file, but no store of picketd's".to_owned()));
        }
        Err(error) => return Err(RedbError::of(error)),
    };
    let map = RedbMap::new(table);
    let said = semantics::stored_format(&map).and_then(|format| match format {
        None => Err(StoreError::Damaged("it names no format".to_owned())),
        Some(SEALED) => content::moved(&map).map(|to| Verified::Moved(to.unwrap_or_default())),
        Some(format) if format > FORMAT => Ok(Verified::Newer(format)),
        Some(_) => semantics::verify(&map).map(Verified::Store),
    });
    match (map.broken(), said) {
        (Some(broken), _) => Err(broken),
        (None, Ok(said)) => Ok(said),
        (None, Err(StoreError::Damaged(what))) => Ok(Verified::Damaged(what)),
        (None, Err(other)) => Ok(Verified::Damaged(other.to_string())),
    }
}

/// redb's database, and whether redb had to repair it and therefore has verified it.
fn redb_open(path: &Path, file: File, faults: &Faults) -> Result<(Database, bool), OpenError> {
    let repaired = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&repaired);
    let opened = caught(|| {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE).set_repair_callback(move |_| seen.store(true, Ordering::SeqCst));
        match faults.disk(file).and_then(|disk| builder.create_with_backend(disk)) {
            Ok(database) => Ok(Some(database)),
            Err(DatabaseError::DatabaseAlreadyOpen) => Ok(None),
            Err(error) => Err(RedbError::of(error)),
        }
    });
    match opened {
        Ok(Some(database)) => Ok((database, repaired.load(Ordering::SeqCst))),
        Ok(None) => Err(OpenError::Locked { path: path.to_owned(), pid: None }),
        Err(broken) => Err(open_error(path, broken, "open")),
    }
}

fn open_error(path: &Path, broken: RedbError, doing: &'static str) -> OpenError {
    match broken {
        RedbError::Damaged(what) => OpenError::Damaged { path: path.to_owned(), what },
        RedbError::Io(what) => io_error(path, doing)(io::Error::other(what)),
    }
}

/// Runs `work`; a panic in redb over bytes that it did not expect is damage, and ends nothing but this.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, RedbError>) -> Result<T, RedbError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
        Err(RedbError::Damaged(format!("redb gave up over it: {said}")))
    })
}
