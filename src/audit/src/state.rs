//! How the audit is, for whoever asks.

/// How the audit is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Why nothing can be written at the moment. `None`: all is well.
    pub failing: Option<String>,
    /// Entries that were lost since this process began: no room on the disk, or more at once than could be written.
    pub lost: u64,
    /// Entries of this process that are in the files.
    pub written: u64,
}
