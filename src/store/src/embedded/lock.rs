//! The lock file beside the store: who holds it, and that it was made.
//!
//! redb locks the store itself as well, which also stops a process that reaches the file under another name. This one
//! can say who holds it, is held while the file is made or opened again, and remembers that there was a store.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use picket_core::ids::Incarnation;
use rustix::fs::{FlockOperation, flock};

/// Held until it is dropped; the file stays.
#[derive(Debug)]
pub(super) struct LockFile {
    file: File,
}

/// Why the lock was not had.
pub(super) enum LockError {
    Held(Option<u32>),
    Io(io::Error),
}

/// Where the lock of the store at `path` is.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl LockFile {
    pub(super) fn take(path: &Path) -> Result<Self, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(LockError::Io)?;
        let lock = Self { file };
        match flock(&lock.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let made = lock.made().map_err(LockError::Io)?;
                lock.write(made.as_deref()).map_err(LockError::Io)?;
                Ok(lock)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                Err(LockError::Held(lock.line("pid").ok().flatten().and_then(|pid| pid.parse().ok())))
            }
            Err(error) => Err(LockError::Io(error.into())),
        }
    }

    /// The life of the store that was made here, if one was.
    pub(super) fn made(&self) -> io::Result<Option<String>> {
        self.line("store")
    }

    /// The same of the lock file at `path`, whoever holds it.
    pub(super) fn made_at(path: &Path) -> io::Result<Option<String>> {
        Self { file: File::open(path)? }.made()
    }

    /// Remembers that the store is there.
    pub(super) fn remember(&self, incarnation: Incarnation) -> io::Result<()> {
        self.write(Some(&incarnation.to_string()))?;
        self.file.sync_all()
    }

    fn line(&self, word: &str) -> io::Result<Option<String>> {
        let mut text = [0; 256];
        let length = self.file.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        Ok(text
            .lines()
            .find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))
            .map(|rest| rest.trim().to_owned()))
    }

    fn write(&self, store: Option<&str>) -> io::Result<()> {
        let mut text = format!("pid {}\n", std::process::id());
        if let Some(store) = store {
            text += &format!("store {store}\n");
        }
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }
}
