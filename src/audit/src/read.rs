//! Reading entries back: a fence's exchanges with its devices, and everything as it stands.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use memchr::memmem;

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

/// How much is read for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Between which moments.
    pub window: Window,
    /// At most so many exchanges.
    pub exchanges: usize,
    /// At most so many bytes of the files.
    pub bytes: u64,
}

/// What was found of a fence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its exchanges with its devices, oldest first.
    pub exchanges: Vec<Exchange>,
    /// Whether there may be more: the bounds were reached, or nobody wants the rest.
    pub is_cut: bool,
}

/// The exchanges of a fence with its devices, within bounds: the first ones, and for as long as somebody wants them.
///
/// # Errors
/// A file cannot be read. What is no entry is passed over: [`verify`](crate::verify()) tells of it.
pub fn exchanges(
    place: &Path,
    fence: &str,
    bounds: &Bounds,
    is_wanted: impl Fn() -> bool,
) -> Result<Found, ReadError> {
    let mut found = Found::default();
    // Entries of one fence are told apart by their bytes first: a file may have hundreds of thousands of others.
    let mark = format!("\"fence\":\"{fence}\"");
    let mark = memmem::Finder::new(&mark);
    let mut left = bounds.bytes;
    for file in within(list(place)?, bounds.window)? {
        let read = lines(&file.path, |line, _| {
            let length = u64::try_from(line.len()).unwrap_or(u64::MAX).saturating_add(1);
            if length > left || !is_wanted() {
                found.is_cut = true;
                return Ok(false);
            }
            left -= length;
            if mark.find(line).is_none() {
                return Ok(true);
            }
            let entry = decode(line).ok().filter(|entry| entry.what == "exchange");
            if let Some(entry) = entry.filter(|entry| entry.fence.as_deref() == Some(fence)) {
                found.is_cut = found.exchanges.len() >= bounds.exchanges;
                if found.is_cut {
                    return Ok(false);
                }
                found.exchanges.push(exchange(entry));
            }
            Ok(true)
        });
        read.map_err(ReadError::io(&file.path))?;
        if found.is_cut {
            break;
        }
    }
    Ok(found)
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

#[cfg(test)]
mod tests;
