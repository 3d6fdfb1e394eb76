//! The files of an audit, by their names.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::entry::{Entry, decode};
use crate::error::ReadError;

/// No entry is longer; what is, is none.
pub(crate) const LONGEST_LINE: u64 = 1 << 20;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AuditFile {
    /// The number of its first entry, as its name says.
    pub(crate) first: u64,
    pub(crate) path: PathBuf,
}

impl AuditFile {
    pub(crate) fn new(directory: &Path, first: u64) -> Self {
        Self { first, path: directory.join(format!("audit-{first:020}.jsonl")) }
    }

    /// Its name without the directory.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Its first entry, if there is one that can be read. A crash may have cut off the lines before it.
    pub(crate) fn first_entry(&self) -> io::Result<Option<Entry>> {
        let mut first = None;
        lines(&self.path, |line, _| {
            first = decode(line).ok();
            Ok(first.is_none())
        })?;
        Ok(first)
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(fs::metadata(&self.path)?.len())
    }
}

/// All files of a directory in their order; a single file, where it is one.
pub(crate) fn list(place: &Path) -> Result<Vec<AuditFile>, ReadError> {
    if place.is_file() {
        return Ok(vec![AuditFile { first: number(place).unwrap_or(0), path: place.to_owned() }]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(place).map_err(ReadError::io(place))? {
        let path = entry.map_err(ReadError::io(place))?.path();
        files.extend(number(&path).map(|first| AuditFile { first, path }));
    }
    files.sort();
    Ok(files)
}

fn number(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    let all = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| all)
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// With a newline.
    Whole,
    /// It is longer than any entry, and goes on.
    GoesOn,
    /// With the file.
    CutOff,
}

/// Reads one line after the other, each without its newline, with how it ends. One that is too long comes in pieces.
pub(crate) fn lines(path: &Path, mut each: impl FnMut(&[u8], Ends) -> io::Result<bool>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 16, fs::File::open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let (text, ends) = match line.strip_suffix(b"\n") {
            Some(text) => (text, Ends::Whole),
            None if reader.fill_buf()?.is_empty() => (line.as_slice(), Ends::CutOff),
            None => (line.as_slice(), Ends::GoesOn),
        };
        if !each(text, ends)? {
            return Ok(());
        }
    }
}
