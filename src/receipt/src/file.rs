//! The key file: PKCS#8 as PEM, readable by the gateway's user alone, made where there is none.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use picket_permissions::What;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use zeroize::Zeroizing;

use crate::key::{SEED, SigningKey};

/// The largest file that is read as a key.
const LARGEST: u64 = 16 * 1_024;

/// Why the key file is of no use. What is in it is never told.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// It cannot be read or made.
    #[error("the receipts' key file {path} cannot be {verb}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What was tried.
        verb: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// Group or others may get at it.
    #[error(
        "the receipts' key file {path} has mode {mode:03o}: its group or others may get at it, and who has it can sign \
         receipts; run chmod 600 {path}, or, if it may have been read, move it away: a new key is made at the next start"
    )]
    Open {
        /// Which.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is another user's.
    #[error(
        "the receipts' key file {path} belongs to user {owner}, and this gateway runs as {user}: run chown {user} {path}"
    )]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Who runs.
        user: u32,
    },
    /// Somebody else may put another file in its place: its directory is not the gateway's alone, or a link on the way is not.
    #[error("the directory of the receipts' key, {}: {fault}", place.display())]
    Reached {
        /// Where.
        place: PathBuf,
        /// Why.
        #[source]
        fault: picket_permissions::Fault,
    },
    /// It is no key.
    #[error(
        "the receipts' key file {path} {what}: put back the key, or move it away: a new one is made at the next start"
    )]
    NoKey {
        /// Which.
        path: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
}

impl KeyFault {
    /// Whether it stays as it is until a person mends it.
    pub fn is_for_a_person(&self) -> bool {
        !matches!(self, KeyFault::Io { .. })
    }
}

fn io(path: &Path, verb: &'static str) -> impl Fn(io::Error) -> KeyFault {
    move |source| KeyFault::Io { path: path.to_owned(), verb, source }
}

/// A file as it stands on the disk; another one, or other contents, has another mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Mark {
    /// That of the file at `path`; `None`: there is none to be had.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self { inode: found.ino(), size: found.size(), changed: (found.ctime(), found.ctime_nsec()) })
    }
}

/// Refuses a directory in which somebody else could take the key away, for another one to be made, or put another one in its place. As for
/// the audit, what stands above that directory does not count: a volume of a pod has mode 777.
fn reached(path: &Path) -> Result<(), KeyFault> {
    let place = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let checked = match path.is_symlink() {
        // What it leads to may be anywhere.
        true => picket_permissions::check(path),
        false => picket_permissions::check_state_directory(place),
    };
    match checked {
        Err(fault) if !matches!(fault.what, What::Unread(_)) => {
            Err(KeyFault::Reached { place: place.to_owned(), fault })
        }
        _ => Ok(()),
    }
}

/// Reads the key; `None`: there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<SigningKey>, KeyFault> {
    reached(path)?;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(path, "read")(error)),
    };
    // Of the file that is open, so that nobody exchanges it in between.
    let found = file.metadata().map_err(io(path, "read"))?;
    let (mode, owner, user) = (found.mode() & 0o777, found.uid(), rustix::process::geteuid().as_raw());
    let path = path.to_owned();
    if !found.is_file() || found.len() > LARGEST {
        return Err(KeyFault::NoKey { path, what: "is no file with a key" });
    }
    if mode & 0o077 != 0 {
        return Err(KeyFault::Open { path, mode });
    }
    if owner != user {
        return Err(KeyFault::Foreign { path, owner, user });
    }
    let mut text = Zeroizing::new(Vec::with_capacity(4_096));
    (&file).take(LARGEST).read_to_end(&mut text).map_err(io(&path, "read"))?;
    match SigningKey::from_pem(&text) {
        Ok(key) => Ok(Some(key)),
        Err(what) => Err(KeyFault::NoKey { path, what }),
    }
}

/// Whether the key could be made: the nearest directory that is there takes what is missing below it.
pub(crate) fn could_be_made(path: &Path) -> Result<(), KeyFault> {
    let there = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("/"));
    accessat(CWD, there, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(io::Error::from)
        .and_then(|()| if there.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) })
        .map_err(io(path, "made"))
}

/// Makes a key of this seed, whole or not at all: a file that is there already stays.
pub(crate) fn make(path: &Path, seed: &[u8; SEED]) -> Result<(), KeyFault> {
    let failed = io(path, "made");
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(&failed)?;
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    // Left by one that was killed in the middle of this.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(&failed)?;
    let written = file
        .write_all(SigningKey::pem(seed).as_bytes())
        .and_then(|()| file.sync_all())
        // A link fails where a file is there already; a renaming would take its place.
        .and_then(|()| fs::hard_link(&unfinished, path));
    let removed = fs::remove_file(&unfinished);
    written.and(removed).and_then(|()| File::open(directory)?.sync_all()).map_err(failed)
}
