//! Reading entries back: a fence's exchanges with its devices, and everything as it stands.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use crate::entry::{Entry, decode};
use crate::error::ReadError;
use crate::files::{AuditFile, lines, list};
use crate::time::from_rfc3339;

/// One thing that was said to a device, and what it answered, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was asked, in milliseconds since 1970-01-01 UTC.
    pub at: u64,
    /// The device.
    pub device: String,
    /// What was asked.
    pub asked: String,
    /// What it answered, or that it did not.
    pub answered: String,
    /// From asking to the answer, or to giving up.
    pub took: Duration,
}

/// Between which moments entries are wanted, in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Not older than this.
    pub from: u64,
    /// Not younger than this.
    pub to: u64,
}

/// The exchanges of a fence with its devices, oldest first, at most `limit`: the first ones.
///
/// # Errors
/// A file cannot be read. What is no entry is passed over: [`verify`](crate::verify()) tells of it.
pub fn exchanges(
    place: &Path,
    fence: &str,
    window: Window,
    limit: usize,
) -> Result<Vec<Exchange>, ReadError> {
    let mut found = Vec::new();
    // Entries of one fence are told apart by their bytes first: a file may have hundreds of thousands of others.
    let mark = format!("\"fence\":\"{fence}\"");
    for file in within(list(place)?, window)? {
        let read = lines(&file.path, |line, _| {
            if contains(line, mark.as_bytes()) {
                let entry = decode(line).ok().filter(|entry| entry.what == "exchange");
                found.extend(entry.filter(|entry| entry.fence.as_deref() == Some(fence)).map(exchange));
            }
            Ok(found.len() < limit)
        });
        read.map_err(ReadError::io(&file.path))?;
    }
    Ok(found)
}

fn contains(line: &[u8], mark: &[u8]) -> bool {
    line.windows(mark.len()).any(|window| window == mark)
}

fn exchange(entry: Entry) -> Exchange {
    let text = |key: &str| entry.details[key].as_str().unwrap_or_default().to_owned();
    let took = Duration::from_millis(entry.details["took_ms"].as_u64().unwrap_or_default());
    Exchange {
        at: from_rfc3339(&entry.at).unwrap_or_default(),
        device: text("device"),
        asked: text("asked"),
        answered: text("answered"),
        took,
    }
}

/// The files that may have entries of these moments.
fn within(files: Vec<AuditFile>, window: Window) -> Result<Vec<AuditFile>, ReadError> {
    let mut began = Vec::new();
    for file in &files {
        let first = file.first_entry().map_err(ReadError::io(&file.path))?;
        began.push(first.and_then(|entry| from_rfc3339(&entry.at)));
    }
    let fits = |index: usize| {
        let over = began.get(index + 1).copied().flatten().is_some_and(|next| next < window.from);
        let later = began[index].is_some_and(|begun| begun > window.to);
        !over && !later
    };
    Ok(files.into_iter().enumerate().filter(|(index, _)| fits(*index)).map(|(_, file)| file).collect())
}

/// Writes every line as it stands, oldest first: all of them, or those from a moment on, or of one fence.
///
/// # Errors
/// A file cannot be read, or `to` not written.
pub fn export(
    place: &Path,
    since: Option<u64>,
    fence: Option<&str>,
    to: &mut dyn Write,
) -> Result<(), ReadError> {
    let files = list(place)?;
    if files.is_empty() {
        return Err(ReadError::Nothing(place.to_owned()));
    }
    let wanted = |line: &[u8]| {
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else {
            return since.is_none() && fence.is_none();
        };
        let young = since.is_none_or(|since| from_rfc3339(&entry.at).is_none_or(|at| at >= since));
        young && fence.is_none_or(|fence| entry.fence.as_deref() == Some(fence))
    };
    for file in files {
        let read = lines(&file.path, |line, _| {
            if (since.is_none() && fence.is_none()) || wanted(line) {
                to.write_all(line)?;
                to.write_all(b"\n")?;
            }
            Ok::<bool, io::Error>(true)
        });
        read.map_err(ReadError::io(&file.path))?;
    }
    Ok(())
}
