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

    /// Its first entry, if there is one that can be read.
    pub(crate) fn first_entry(&self) -> io::Result<Option<Entry>> {
        let mut line = Vec::new();
        BufReader::new(fs::File::open(&self.path)?).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        Ok(line.strip_suffix(b"\n").and_then(|line| decode(line).ok()))
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

/// Reads one line after the other, each without its newline, with whether it had one. One that is too long comes in pieces.
pub(crate) fn lines(path: &Path, mut each: impl FnMut(&[u8], bool) -> io::Result<bool>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 16, fs::File::open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let ended = line.last() == Some(&b'\n');
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if !each(text, ended)? {
            return Ok(());
        }
    }
}
