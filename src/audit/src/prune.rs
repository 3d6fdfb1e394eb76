//! Files that are old enough go, or too many, after an entry that says so.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::chain::{Chain, own};
use crate::files::{AuditFile, list};
use crate::open::sync_directory;
use crate::time::from_rfc3339;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// A file of which every entry is older goes; `None`: none goes for its age now.
    pub(crate) keep: Option<Duration>,
    /// The oldest go while all of them together have more bytes.
    pub(crate) most: u64,
}

/// Removes the files that are beyond the bounds, never the one that is written on; how many, and whether any of them went
/// for its size, before its age.
pub(crate) fn prune(
    chain: &mut Chain,
    directory: &Path,
    bounds: Bounds,
    now: u64,
) -> io::Result<(usize, bool)> {
    let files = list(directory).map_err(io::Error::other)?;
    // The one that is written on stays, and so does the last, whose end is where the next process goes on.
    let removable = files.iter().take_while(|file| chain.current() != Some(*file)).count();
    let removable = removable.min(files.len().saturating_sub(1));
    let keep = bounds.keep.map(|keep| u64::try_from(keep.as_millis()).unwrap_or(u64::MAX));
    let aged = keep.map_or(Ok(0), |keep| old(&files, now.saturating_sub(keep)))?.min(removable);
    let count = aged.max(too_many(&files, bounds.most)?).min(removable);
    let (going, kept) = files.split_at(count);
    let (Some(last), Some(next)) = (going.last(), kept.first()) else { return Ok((0, false)) };
    let for_size = count > aged;
    let Some((seq, prev)) = next.first_entry()?.map(|entry| (entry.seq, entry.prev)) else {
        return Ok((0, false));
    };
    // An entry before it happens: whoever verifies finds files gone of which no entry speaks.
    let because = if for_size { "size" } else { "age" };
    let details = json!({
        "files": count, "last": last.name(), "seq": seq - 1, "hash": prev, "because": because, "keep_ms": keep,
    });
    chain.append(&[own("removed", details, now)], now)?;
    for file in going {
        std::fs::remove_file(&file.path)?;
    }
    sync_directory(directory)?;
    Ok((count, for_size))
}

/// How many, from the oldest, have no entry that is younger. The first entry of the file after it tells when the last of
/// a file was written at the latest.
fn old(files: &[AuditFile], before: u64) -> io::Result<usize> {
    let mut count = 0;
    for next in files.iter().skip(1) {
        let began = next.first_entry()?.and_then(|entry| from_rfc3339(&entry.at));
        if began.is_none_or(|began| began >= before) {
            break;
        }
        count += 1;
    }
    Ok(count)
}

/// How many, from the oldest, must go so that the rest has at most so many bytes.
fn too_many(files: &[AuditFile], most: u64) -> io::Result<usize> {
    let lengths = files.iter().map(AuditFile::length).collect::<io::Result<Vec<u64>>>()?;
    let mut all: u64 = lengths.iter().sum();
    let mut count = 0;
    for length in lengths {
        if all <= most {
            break;
        }
        all -= length;
        count += 1;
    }
    Ok(count)
}
