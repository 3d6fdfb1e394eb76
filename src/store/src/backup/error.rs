//! Why a backup is refused.

use picket_core::store::StoreError;

/// Why a backup is refused. Nothing of it was used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something else, or nothing.
    #[error("it is no backup of picketd's: {0}")]
    Foreign(String),
    /// A later version wrote it.
    #[error(
        "it has format {found}, and this version reads formats up to {known}: run the picketd that wrote it, or a later one"
    )]
    Newer {
        /// Its format.
        found: u64,
        /// The newest that is read here.
        known: u64,
    },
    /// Its last line is missing.
    #[error(
        "it ends after line {0} without its last line: it was cut off; take it again, or use another one"
    )]
    CutOff(u64),
    /// It is not what was written.
    #[error("it was changed since it was taken ({0}); use another one")]
    Changed(String),
    /// A line does not say what it should.
    #[error("line {line}: {what}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// Something of it cannot be stored, or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system said no.
    #[error("it cannot be read in line {line}: {source}")]
    Io {
        /// Which, from 1.
        line: u64,
        /// What it said.
        source: std::io::Error,
    },
    /// It cannot be opened.
    #[error("it cannot be opened: {0}")]
    Open(#[source] std::io::Error),
}
