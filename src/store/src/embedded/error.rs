//! What can go wrong with the file.

use std::path::{Path, PathBuf};

use picket_core::store::StoreError;

use super::lock::lock_path;

/// What to do about a damaged file. The lock file remembers that there was a store: while it is there, none is begun.
fn advice(path: &Path) -> String {
    format!(
        "restore the file from a backup; or, if there is none, move it away, and {lock} with it: picketd then begins \
         with an empty store, which knows nothing of nodes that are kept off and of commands that may still be under \
         way, so see with your own eyes first which nodes are off, and wait ten minutes",
        lock = lock_path(path).display()
    )
}

/// Why the store could not be opened. Nothing may be fenced from it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// One process at a time.
    #[error("another picketd{} holds the store {path}: stop it, or give this one a store of its own", holder(.pid))]
    Locked {
        /// The store.
        path: PathBuf,
        /// Who holds it, if it said so.
        pid: Option<u32>,
    },
    /// What is stored cannot be read.
    #[error("the store {path} is damaged: {what}. What to do: {}", advice(path))]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What cannot be read.
        what: String,
    },
    /// There was a store, and it is gone.
    #[error(
        "the store {path} is gone, and {lock} says that it was made: is a disk not mounted? Restore it from a backup; \
         or, to begin with an empty store that knows nothing of nodes that are kept off, remove {lock} as well"
    )]
    Gone {
        /// The store.
        path: PathBuf,
        /// The lock file, which remembers it.
        lock: PathBuf,
    },
    /// Everything was moved to another store.
    #[error(
        "the store {path} was moved to {to}, and is not used any more: two stores that both believe they know the fleet \
         would each let go what the other keeps off. Use the new one; or, if that was never used, take the mark away: \
         picketd unseal"
    )]
    Moved {
        /// The store.
        path: PathBuf,
        /// Where everything went, as whoever sealed it said.
        to: String,
    },
    /// There is no such mark.
    #[error("the store {path} was not moved: there is no mark to take away")]
    NotSealed {
        /// The store.
        path: PathBuf,
    },
    /// A backup is restored where there is no store, and nowhere else.
    #[error(
        "there is a store at {path} already, and a backup is restored into a new one only: move it away, and {lock} with \
         it, if it is surely of no use any more"
    )]
    Exists {
        /// The store.
        path: PathBuf,
        /// The lock file, which remembers it.
        lock: PathBuf,
    },
    /// The directory is not there.
    #[error(
        "the store's directory {directory} is not there (No such file or directory): make it, for the user who runs \
         picketd alone: install -d -m 700 -o {} -g {} {directory}",
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw()
    )]
    NoDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// A later version wrote it.
    #[error(
        "the store {path} has format {found}, and this version reads formats up to {known}: run the picketd that wrote \
         it, or a later one"
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that is read here.
        known: u64,
    },
    /// Others than the gateway may change it: whoever writes the store may forge it.
    #[error("{path} is open to everybody (mode {mode:03o}): run chmod {right} {path}")]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// What would be right.
        right: &'static str,
    },
    /// The directory is another user's, who could put another store into it.
    #[error("the store's directory {directory}: {fault}")]
    Foreign {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with it.
        fault: picket_permissions::Fault,
    },
    /// Another machine may have the file as well, and the lock would not keep a second gateway away from it.
    #[error(
        "{path} is on {name}, which other machines may have as well: the store's lock would not keep their picketd away, \
         and two gateways that lead at once fence and power on against each other. Put the store on a local disk; or, for \
         several gateways, keep it in etcd: [store] kind = \"etcd\""
    )]
    Shared {
        /// The file or directory.
        path: PathBuf,
        /// The file system.
        name: &'static str,
    },
    /// The operating system said no.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

impl OpenError {
    /// As an answer to a caller of the store, when the file had to be opened again.
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            OpenError::Damaged { .. }
            | OpenError::Gone { .. }
            | OpenError::Newer { .. }
            | OpenError::Moved { .. } => StoreError::Damaged(self.to_string()),
            OpenError::Locked { .. }
            | OpenError::Exists { .. }
            | OpenError::NotSealed { .. }
            | OpenError::NoDirectory { .. }
            | OpenError::Exposed { .. }
            | OpenError::Foreign { .. }
            | OpenError::Shared { .. }
            | OpenError::Io { .. } => StoreError::Unavailable(self.to_string()),
        }
    }
}

/// What redb says, before it is known whether a change happened: damage, or the disk's own words.
#[derive(Clone, Debug)]
pub(super) enum RedbError {
    /// The bytes make no sense.
    Damaged(String),
    /// The disk refused.
    Io(String),
}

impl RedbError {
    pub(super) fn of(error: impl Into<redb::Error>) -> Self {
        match error.into() {
            // A file that ends too early, or that never was redb's.
            redb::Error::Io(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData
                ) =>
            {
                RedbError::Damaged(error.to_string())
            }
            redb::Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                RedbError::Io(format!("the disk is full: make room on it ({error})"))
            }
            redb::Error::Io(error) => RedbError::Io(error.to_string()),
            redb::Error::PreviousIo => RedbError::Io("an earlier write failed".to_owned()),
            redb::Error::Corrupted(what) => RedbError::Damaged(what),
            other => RedbError::Damaged(other.to_string()),
        }
    }
}

impl From<RedbError> for StoreError {
    fn from(broken: RedbError) -> Self {
        match broken {
            RedbError::Damaged(what) => StoreError::Damaged(what),
            RedbError::Io(what) => StoreError::Unavailable(what),
        }
    }
}

/// The same answer, naming the file it is about and, where that is damaged, what to do.
pub(super) fn named(path: &Path, error: StoreError) -> StoreError {
    let advice = advice(path);
    let path = path.display();
    match error {
        StoreError::Damaged(what) => StoreError::Damaged(format!("{path}: {what}. What to do: {advice}")),
        StoreError::Unavailable(what) => StoreError::Unavailable(format!("{path}: {what}")),
        StoreError::Unknown(what) => StoreError::Unknown(format!("{path}: {what}")),
        other => other,
    }
}
