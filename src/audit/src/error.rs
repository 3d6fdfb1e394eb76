//! What can go wrong with the files.

use std::io;
use std::path::PathBuf;

/// Why the audit cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// One process at a time.
    #[error("another picketd writes the audit {directory}: stop it, or give this one an audit of its own")]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// Others than the gateway may change it.
    #[error("{path} is open to others (mode {mode:03o}): run chmod {right} {path}")]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// What would be right.
        right: &'static str,
    },
    /// It is another user's.
    #[error("the audit's directory {directory}: {fault}")]
    Foreign {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with it.
        fault: picket_permissions::Fault,
    },
    /// The operating system said no.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, doing, source }
    }

    /// Whether room on the disk would mend it.
    pub(crate) fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io { source, .. } if full.contains(&source.kind()))
    }
}

/// Why the audit's files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error("there is no audit in {0}: no file audit-*.jsonl stands there")]
    Nothing(PathBuf),
    /// The operating system said no.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl ReadError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
