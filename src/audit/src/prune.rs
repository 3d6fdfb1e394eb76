//! Files that are old enough go, after an entry that says so.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::chain::{Chain, own};
use crate::files::{AuditFile, list};
use crate::open::sync_directory;
use crate::time::from_rfc3339;

/// Removes the files of which every entry is older than `keep`; how many.
pub(crate) fn prune(chain: &mut Chain, directory: &Path, keep: Duration, now: u64) -> io::Result<usize> {
    let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
    let old = old(chain, directory, now.saturating_sub(keep)).map_err(io::Error::other)?;
    let Some((last, next)) = old.last() else { return Ok(0) };
    let first_kept = next.first_entry()?.map(|entry| (entry.seq, entry.prev));
    let Some((seq, prev)) = first_kept else { return Ok(0) };
    // An entry before it happens: whoever verifies finds files gone of which no entry speaks.
    let details = json!({ "files": old.len(), "last": last.name(), "seq": seq - 1, "hash": prev });
    chain.append(&[own("removed", details, now)], now)?;
    for (file, _) in &old {
        std::fs::remove_file(&file.path)?;
    }
    sync_directory(directory)?;
    Ok(old.len())
}

/// Each with the file after it, whose first entry tells when the last of the one before was written at the latest.
fn old(
    chain: &Chain,
    directory: &Path,
    before: u64,
) -> Result<Vec<(AuditFile, AuditFile)>, crate::ReadError> {
    let files = list(directory)?;
    let mut old = Vec::new();
    for pair in files.windows(2) {
        let [file, next] = pair else { break };
        let began = next.first_entry().map_err(crate::ReadError::io(&next.path))?;
        let began = began.and_then(|entry| from_rfc3339(&entry.at));
        if chain.current() == Some(file) || began.is_none_or(|began| began >= before) {
            break;
        }
        old.push((file.clone(), next.clone()));
    }
    Ok(old)
}
