//! The open chain: appends, rotates, and counts what it could not write.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::entry::{FORMAT, GATEWAY, Head, Told, encode};
use crate::error::OpenError;
use crate::files::AuditFile;
use crate::open::{lock, open, sync_directory, tail};

/// The file that is written on.
#[derive(Debug)]
struct Current {
    file: AuditFile,
    handle: File,
    /// Up to where it was written whole.
    length: u64,
}

/// Entries that were told and are in no file.
#[derive(Debug, Default)]
struct Gap {
    lost: u64,
    since: u64,
    why: String,
}

/// An audit's files, open for writing by this process alone.
#[derive(Debug)]
pub(crate) struct Chain {
    directory: PathBuf,
    /// A file of so many bytes is the last of its kind.
    rotate: u64,
    fsync: bool,
    head: Head,
    current: Option<Current>,
    /// The file before the current one.
    before: Option<String>,
    unended: bool,
    torn: Vec<Value>,
    gap: Gap,
    _lock: File,
    #[cfg(test)]
    pub(crate) room: Option<u64>,
}

impl Chain {
    /// Opens the directory, and goes on where its chain ended.
    pub(crate) fn open(directory: &Path, rotate: u64, fsync: bool) -> Result<Self, OpenError> {
        let lock = lock(directory)?;
        let tail = tail(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            rotate,
            fsync,
            head: tail.head,
            current: tail.last.map(|(file, handle, length)| Current { file, handle, length }),
            before: None,
            unended: tail.unended,
            torn: tail.torn,
            gap: Gap::default(),
            _lock: lock,
            #[cfg(test)]
            room: None,
        })
    }

    /// The newest entry that was written.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Whether something is to be written although nobody tells anything: a gap, or that a line was cut off.
    pub(crate) fn owes(&self) -> bool {
        self.gap.lost > 0 || !self.torn.is_empty()
    }

    /// Lines at the end that were cut off, which the next entry tells of.
    pub(crate) fn torn(&self) -> usize {
        self.torn.len()
    }

    /// The file that is written on, if there is one.
    pub(crate) fn current(&self) -> Option<&AuditFile> {
        self.current.as_ref().map(|current| &current.file)
    }

    /// Counts entries that will never be written.
    pub(crate) fn lose(&mut self, lost: u64, now: u64, why: &str) {
        if self.gap.lost == 0 {
            self.gap.since = now;
        }
        self.gap.lost += lost;
        self.gap.why = why.to_owned();
    }

    /// Writes these entries, in one go and after them all to the disk. On an error none of them is in the chain, and they
    /// are counted as lost.
    pub(crate) fn append(&mut self, batch: &[Told], now: u64) -> io::Result<()> {
        let done = self.try_append(batch, now);
        if let Err(error) = &done {
            self.lose(batch.len() as u64, now, &error.to_string());
        }
        done
    }

    fn try_append(&mut self, batch: &[Told], now: u64) -> io::Result<()> {
        // What was cut off stands at the end of its file, and is told right after it.
        let full = self.current.as_ref().is_some_and(|current| current.length >= self.rotate);
        if full && self.torn.is_empty() && !self.unended {
            self.before = self.current.take().map(|current| current.file.name());
        }
        let mut first = Vec::new();
        if self.current.is_none() {
            let file = AuditFile::new(&self.directory, self.head.seq + 1);
            let handle = open(&file.path)?;
            if self.fsync {
                sync_directory(&self.directory)?;
            }
            let length = handle.metadata()?.len();
            self.current = Some(Current { file, handle, length });
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        if current.length == 0 {
            let details = json!({ "form": FORMAT, "after": self.head.hash, "before": self.before });
            first.push(own("file", details, now));
        }
        if !self.torn.is_empty() {
            first.push(own("torn", json!({ "lines": self.torn }), now));
        }
        if self.gap.lost > 0 {
            let details = json!({
                "lost": self.gap.lost, "since": crate::time::rfc3339(self.gap.since), "because": self.gap.why,
            });
            first.push(own("gap", details, now));
        }
        if first.is_empty() && batch.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if self.unended {
            bytes.push(b'\n');
        }
        let mut head = self.head.clone();
        for told in first.iter().chain(batch) {
            let (line, next) = encode(told, &head)?;
            bytes.extend_from_slice(&line);
            head = next;
        }
        #[cfg(test)]
        let written = crate::chain::tests::write(&mut self.room, &mut current.handle, &bytes);
        #[cfg(not(test))]
        let written = current.handle.write_all(&bytes);
        let written = match written {
            Ok(()) if self.fsync => current.handle.sync_data(),
            other => other,
        };
        if let Err(error) = written {
            // What was written of it in part is no entry yet: it goes, or the next process takes it for cut off.
            if current.handle.set_len(current.length).is_err() {
                // The file is opened anew, and what stands at its end is seen then.
                self.reopen();
            }
            return Err(error);
        }
        current.length += bytes.len() as u64;
        self.head = head;
        self.unended = false;
        self.torn.clear();
        self.gap = Gap::default();
        Ok(())
    }

    fn reopen(&mut self) {
        if let Ok(tail) = tail(&self.directory) {
            self.head = tail.head;
            self.current = tail.last.map(|(file, handle, length)| Current { file, handle, length });
            self.unended = tail.unended;
            self.torn = tail.torn;
        }
    }
}

/// An entry of the audit about itself.
pub(crate) fn own(what: &str, details: Value, at: u64) -> Told {
    Told { at, who: GATEWAY.to_owned(), what: what.to_owned(), details, ..Told::default() }
}

#[cfg(test)]
mod tests;
