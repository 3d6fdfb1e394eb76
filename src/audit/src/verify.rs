//! Recomputing the chain, and comparing it with what the store's fence records say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde_json::Value;

use crate::entry::{Entry, Head, NoEntry, decode};
use crate::error::ReadError;
use crate::files::{AuditFile, Ends, lines, list};
use crate::open::torn_line;
use crate::time::from_rfc3339;

/// The head of the chain as a fence record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Which fence.
    pub fence: String,
    /// The number of the entry.
    pub seq: u64,
    /// Its hash.
    pub hash: String,
    /// When the entry stood there at the earliest, in milliseconds since 1970-01-01 UTC: the fence's end, or its
    /// beginning where it has not ended.
    pub at: u64,
}

/// The first entry that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file's name.
    pub file: String,
    /// The line in it, from 1.
    pub line: u64,
    /// What does not fit, in words.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.file, self.line, self.what)
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that were read.
    pub files: usize,
    /// Entries that fit.
    pub entries: u64,
    /// The numbers of the first and the last of them.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// Fence records whose entry was found as they say.
    pub anchors: usize,
    /// Fence records whose entry is older than what is kept.
    pub older: usize,
    /// Entries that were never written, as the chain itself tells.
    pub lost: u64,
    /// How often a gateway began where the one before had not ended in order: what that did last may be missing.
    pub killed: u64,
    /// What a reader should know and is no fault: lines that were cut off in a crash, files that were removed.
    pub notes: Vec<String>,
    /// The first entry that does not fit. `None`: all do.
    pub fault: Option<Fault>,
}

/// Verifies all files of a directory, or one file, against the heads that fence records have of it.
///
/// # Errors
/// Files cannot be read, or there are none.
pub fn verify(place: &Path, anchors: &[Anchor]) -> Result<Report, ReadError> {
    let files = list(place)?;
    if files.is_empty() {
        return Err(ReadError::Nothing(place.to_owned()));
    }
    let mut walk = Walk::new(anchors);
    let last = files.len() - 1;
    for (index, file) in files.iter().enumerate() {
        walk.file(file, index == last).map_err(ReadError::io(&file.path))?;
        if walk.report.fault.is_some() {
            return Ok(walk.report);
        }
    }
    // A file by itself is judged by itself: what was before and after it is not asked for.
    Ok(walk.end(&files[last], place.is_dir()))
}

/// What an entry `removed` says.
struct Removed {
    /// Up to which entry, and the hash of that.
    seq: u64,
    hash: String,
    /// Everything that was younger than this was kept; in milliseconds since 1970.
    kept_from: u64,
    /// They went because there were too many, and not for their age.
    for_size: bool,
}

/// No audit is kept for less: what says so was not written by a gateway.
const LEAST_KEEP: u64 = 86_400_000;

impl Removed {
    fn of(entry: &Entry) -> Self {
        let keep = entry.details["keep_ms"].as_u64().unwrap_or(LEAST_KEEP).max(LEAST_KEEP);
        Self {
            seq: entry.details["seq"].as_u64().unwrap_or_default(),
            hash: entry.details["hash"].as_str().unwrap_or_default().to_owned(),
            kept_from: from_rfc3339(&entry.at).unwrap_or_default().saturating_sub(keep),
            for_size: entry.details["because"].as_str() == Some("size"),
        }
    }
}

struct Walk<'a> {
    report: Report,
    head: Option<Head>,
    /// What the entry before the first kept one was.
    beginning: Option<Head>,
    torn: Vec<Value>,
    anchors: &'a [Anchor],
    wanted: BTreeSet<u64>,
    found: BTreeMap<u64, (String, Fault)>,
    /// What the chain says of files that were removed last.
    removed: Option<Removed>,
    line: u64,
    /// A gateway began, and has not ended.
    runs: bool,
}

impl<'a> Walk<'a> {
    fn new(anchors: &'a [Anchor]) -> Self {
        Self {
            report: Report::default(),
            head: None,
            beginning: None,
            torn: Vec::new(),
            anchors,
            wanted: anchors.iter().map(|anchor| anchor.seq).collect(),
            found: BTreeMap::new(),
            removed: None,
            line: 0,
            runs: false,
        }
    }

    fn file(&mut self, file: &AuditFile, last: bool) -> std::io::Result<()> {
        self.report.files += 1;
        self.line = 0;
        let name = file.name();
        lines(&file.path, |line, ends| {
            self.line += 1;
            if ends == Ends::CutOff && last && decode(line).is_err() {
                self.report.notes.push(format!(
                    "{name}, line {}: the last line is not whole yet, or was cut off",
                    self.line
                ));
                return Ok(false);
            }
            if let Err(what) = self.entry(&name, line) {
                self.report.fault = Some(Fault { file: name.clone(), line: self.line, what });
                return Ok(false);
            }
            Ok(true)
        })?;
        Ok(())
    }

    fn entry(&mut self, file: &str, line: &[u8]) -> Result<(), String> {
        let entry = match decode(line) {
            Ok(entry) => entry,
            // Only an entry that names it makes a broken line one that a crash left.
            Err(NoEntry::Unreadable(_)) if self.torn.len() < 64 => {
                self.torn.push(torn_line(line));
                return Ok(());
            }
            Err(no) => return Err(no.to_string()),
        };
        if !self.torn.is_empty() {
            let named = entry.what == "torn" && entry.details["lines"].as_array() == Some(&self.torn);
            if !named {
                self.line -= self.torn.len() as u64;
                return Err(
                    "it is no entry, and the one after it does not say that it was cut off".to_owned()
                );
            }
            let lines = self.torn.len();
            self.report
                .notes
                .push(format!("{file}, line {}: {lines} cut off before it, in a crash", self.line));
            self.torn.clear();
        }
        self.follows(&entry)?;
        self.remember(file, entry);
        Ok(())
    }

    fn follows(&mut self, entry: &Entry) -> Result<(), String> {
        let Some(head) = &self.head else {
            self.report.first = entry.seq;
            self.beginning = Some(Head { seq: entry.seq.saturating_sub(1), hash: entry.prev.clone() });
            let right = entry.seq > 0 && (entry.seq > 1 || entry.prev == Head::none().hash);
            return if right { Ok(()) } else { Err("the first entry of all names one before it".to_owned()) };
        };
        if entry.seq != head.seq + 1 {
            return Err(format!(
                "entry {} follows entry {}: entries were removed, added or put in another order",
                entry.seq, head.seq
            ));
        }
        if entry.prev != head.hash {
            return Err(format!("entry {} does not name the hash of the entry before it", entry.seq));
        }
        Ok(())
    }

    fn remember(&mut self, file: &str, entry: Entry) {
        self.report.entries += 1;
        self.report.last = entry.seq;
        if entry.what == "gap" {
            self.report.lost += entry.details["lost"].as_u64().unwrap_or_default();
        }
        match entry.what.as_str() {
            "start" => {
                self.report.killed += u64::from(self.runs);
                self.runs = true;
            }
            "stop" => self.runs = false,
            _ => {}
        }
        if entry.what == "removed" {
            self.removed = Some(Removed::of(&entry));
        }
        if self.wanted.contains(&entry.seq) {
            let place = Fault { file: file.to_owned(), line: self.line, what: String::new() };
            self.found.insert(entry.seq, (entry.hash.clone(), place));
        }
        self.head = Some(Head { seq: entry.seq, hash: entry.hash });
    }

    fn end(mut self, last: &AuditFile, whole: bool) -> Report {
        let at_end = |line: u64, what: String| Fault { file: last.name(), line, what };
        if !self.torn.is_empty() {
            let line = self.line + 1 - self.torn.len() as u64;
            self.report.fault =
                Some(at_end(line, "it is no entry, and no entry says that it was cut off".to_owned()));
            return self.report;
        }
        if let Some(fault) = self.beginning_is_missing(whole) {
            self.report.fault = Some(fault);
            return self.report;
        }
        let mut anchors: Vec<&Anchor> = self.anchors.iter().collect();
        anchors.sort_by_key(|anchor| anchor.seq);
        for anchor in anchors {
            if anchor.seq < self.report.first {
                if let Some(what) = self.went_too_early(anchor).filter(|_| whole) {
                    self.report.fault = Some(Fault { file: "the oldest file".to_owned(), line: 1, what });
                    break;
                }
                self.report.older += 1;
                continue;
            }
            if anchor.seq > self.report.last && !whole {
                break;
            }
            self.report.fault = match self.found.get(&anchor.seq) {
                Some((hash, _)) if *hash == anchor.hash => {
                    self.report.anchors += 1;
                    continue;
                }
                Some((_, place)) => Some(Fault {
                    what: format!(
                        "entry {} is not the one that the record of fence {} names: the chain was written anew",
                        anchor.seq, anchor.fence
                    ),
                    ..place.clone()
                }),
                None => Some(at_end(
                    self.line,
                    format!(
                        "the chain ends with entry {}, and the record of fence {} names entry {}: its end was cut off",
                        self.report.last, anchor.fence, anchor.seq
                    ),
                )),
            };
            break;
        }
        self.report
    }

    /// A fence names an entry that is not there any more, and is too young for that.
    fn went_too_early(&self, anchor: &Anchor) -> Option<String> {
        let removed = self.removed.as_ref().filter(|removed| !removed.for_size)?;
        (anchor.at >= removed.kept_from).then(|| {
            format!(
                "the record of fence {} names entry {}, which was removed before it was as old as the chain says",
                anchor.fence, anchor.seq
            )
        })
    }

    /// Files went of which no entry speaks.
    fn beginning_is_missing(&mut self, whole: bool) -> Option<Fault> {
        let beginning = self.beginning.clone().filter(|beginning| beginning.seq > 0 && whole)?;
        // A crash may have come between the entry and the removal of its last files.
        let told = |removed: &&Removed| {
            removed.seq > beginning.seq || (removed.seq == beginning.seq && removed.hash == beginning.hash)
        };
        if let Some(removed) = self.removed.as_ref().filter(told) {
            let why = if removed.for_size { "since there were too many bytes" } else { "at their age" };
            self.report.notes.push(format!("the entries up to {} were removed {why}", beginning.seq));
            return None;
        }
        let what = format!(
            "the first entry here is {}, and no entry says that those before it were removed",
            beginning.seq + 1
        );
        Some(Fault { file: "the oldest file".to_owned(), line: 1, what })
    }
}
