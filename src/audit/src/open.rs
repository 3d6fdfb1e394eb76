//! Opening the directory: its lock, and where the chain ended.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, FlockOperation, accessat, flock};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::entry::{Entry, Head, sha256};
use crate::error::OpenError;
use crate::files::{AuditFile, list};

/// More broken lines in a row than a crash, and crashes after it, may leave.
const TORN: usize = 64;

/// Where a chain goes on.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) head: Head,
    /// The file that is written on, and its length.
    pub(crate) last: Option<(AuditFile, File, u64)>,
    /// It ends in the middle of a line.
    pub(crate) unended: bool,
    /// Lines at its end that are no entries: a write was cut off there.
    pub(crate) torn: Vec<Value>,
}

/// The directory, made if it is not there, and locked until the file is dropped.
pub(crate) fn lock(directory: &Path) -> Result<File, OpenError> {
    if !directory.exists() {
        DirBuilder::new()
            .mode(0o700)
            .create(directory)
            .map_err(OpenError::io("make the audit's directory", directory))?;
    }
    closed(directory, 0o022, "700")?;
    ours(directory)?;
    let path = directory.join(".lock");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(OpenError::io("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(OpenError::Locked { directory: directory.to_owned() }),
        Err(error) => Err(OpenError::io("lock", &path)(error.into())),
    }
}

/// Whether the directory could be opened, or made, as far as that is to be seen without touching anything.
pub(crate) fn check(directory: &Path) -> Result<(), OpenError> {
    let may = |place: &Path, access: Access, doing: &'static str| {
        accessat(CWD, place, access, AtFlags::EACCESS)
            .map_err(|error| OpenError::io(doing, place)(error.into()))
    };
    let (inside, both) = (Access::WRITE_OK | Access::EXEC_OK, Access::READ_OK | Access::WRITE_OK);
    if !directory.exists() {
        let parent = directory.parent().unwrap_or(Path::new("/"));
        return may(parent, inside, "make the audit's directory in");
    }
    if !directory.is_dir() {
        return Err(OpenError::io("use as the audit's directory", directory)(Errno::NOTDIR.into()));
    }
    closed(directory, 0o022, "700")?;
    ours(directory)?;
    may(directory, inside | Access::READ_OK, "write to the audit's directory")?;
    let path = directory.join(".lock");
    if path.exists() {
        may(&path, both, "open")?;
    }
    let files = list(directory)
        .map_err(|error| OpenError::io("read", directory)(io::Error::other(error.to_string())))?;
    files.last().map_or(Ok(()), |newest| {
        closed(&newest.path, 0o077, "600")?;
        may(&newest.path, both, "open")
    })
}

fn closed(path: &Path, others: u32, right: &'static str) -> Result<(), OpenError> {
    let mode = fs::metadata(path).map_err(OpenError::io("look at", path))?.permissions().mode() & 0o777;
    if mode & others == 0 {
        return Ok(());
    }
    Err(OpenError::Exposed { path: path.to_owned(), mode, right })
}

/// Refuses a directory of another user's, who could put another chain into it.
fn ours(directory: &Path) -> Result<(), OpenError> {
    picket_permissions::check_state_directory(directory)
        .map_err(|fault| OpenError::Foreign { directory: directory.to_owned(), fault })
}

/// Where the chain in this directory ended.
pub(crate) fn tail(directory: &Path) -> Result<Tail, OpenError> {
    let files = list(directory)
        .map_err(|error| OpenError::io("read", directory)(io::Error::other(error.to_string())))?;
    let mut tail = Tail { head: Head::none(), last: None, unended: false, torn: Vec::new() };
    for file in files.into_iter().rev() {
        closed(&file.path, 0o077, "600")?;
        let mut handle = open(&file.path).map_err(OpenError::io("open", &file.path))?;
        let length = handle.metadata().map_err(OpenError::io("look at", &file.path))?.len();
        let newest = tail.last.is_none();
        let end = read_end(&mut handle, length).map_err(OpenError::io("read", &file.path))?;
        if newest {
            tail.unended = end.unended;
            tail.torn = end.torn;
            tail.head.seq = file.first.saturating_sub(1);
            tail.last = Some((file, handle, length));
        }
        if let Some(head) = end.head {
            tail.head = head;
            break;
        }
    }
    Ok(tail)
}

/// Opened so that whatever is written goes to its end.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

struct End {
    head: Option<Head>,
    unended: bool,
    torn: Vec<Value>,
}

/// The last entry of a file, and the lines after it that are none. The file is read from its end, as far as is needed.
fn read_end(file: &mut File, length: u64) -> io::Result<End> {
    let mut wanted = 1 << 18;
    loop {
        let from = length.saturating_sub(wanted);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(length - from).read_to_end(&mut bytes)?;
        let end = last_entry(&bytes, from == 0);
        if end.head.is_some() || from == 0 {
            return Ok(end);
        }
        wanted *= 8;
    }
}

fn last_entry(bytes: &[u8], whole: bool) -> End {
    let unended = bytes.last().is_some_and(|byte| *byte != b'\n');
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut torn = Vec::new();
    let lines = text.split(|byte| *byte == b'\n').collect::<Vec<_>>();
    for (index, line) in lines.iter().enumerate().rev() {
        // The first line of a piece may begin in the middle.
        if index == 0 && !whole && lines.len() > 1 {
            break;
        }
        // A line that can be read and whose hash does not fit was not cut off: the chain goes on after what it says, and
        // whoever verifies finds it.
        if let Ok(entry) = serde_json::from_slice::<Entry>(line) {
            torn.reverse();
            return End { head: Some(Head { seq: entry.seq, hash: entry.hash }), unended, torn };
        }
        if !line.is_empty() || lines.len() > 1 {
            torn.push(torn_line(line));
        }
    }
    torn.reverse();
    if torn.len() > TORN {
        torn.clear();
    }
    End { head: None, unended, torn }
}

/// How an entry names a line that was cut off.
pub(crate) fn torn_line(line: &[u8]) -> Value {
    json!({ "bytes": line.len(), "sha256": sha256(line) })
}

/// Makes what was done to the directory last.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
