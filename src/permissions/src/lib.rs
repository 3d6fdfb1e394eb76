//! Who besides root and the program's own user may change a file, or read a secret in it.
//!
//! **Purpose.** Settings, programs, keys and certificates say which node is switched off. A user who may
//! change one of them, or a directory above it, is an administrator of Picket. [`check`] finds such a user
//! before the file is believed.
//! **Non-goals.** No mode is mended: an administrator decides whether the file has been changed already.
//! What a file says is read by others. No other crate judges modes but for files that it makes (`audit`,
//! `store`, `receipt`).
//!
//! # Invariants
//!
//! - The file, every directory above it, every symbolic link on the way and all that the links lead to
//!   count. Shown by `a_file_and_every_directory_above_it_may_be_changed_by_nobody_else`,
//!   `a_link_counts_by_its_own_directory_and_by_what_it_leads_to`.
//! - The owner is root (whoever owns `/`) or the user as which the program runs. Shown by
//!   `a_stranger_s_file_directory_or_link_is_not_taken`.
//! - Neither the group nor others may write. Shown by `a_group_of_others_may_change_nothing`.
//! - A directory with the sticky bit (`/tmp`, a projected volume of a pod) is the first exception. The
//!   kernel lets only the owners of an entry and of the directory rename or remove it, and each entry on
//!   the way has a right owner. It keeps what is there, and nothing that is to be made. Shown by
//!   `a_sticky_directory_keeps_what_is_ours_in_it`, `a_sticky_directory_keeps_no_place_for_a_socket`.
//! - A group in which the accounts of this machine put root and that user alone is the second exception.
//!   Distributions give each user such a group, and a umask that lets it write. With an access control list
//!   there is no exception. Shown by `a_group_is_private_where_root_and_the_user_alone_are_in_it`,
//!   `an_access_control_list_takes_the_exception_of_a_private_group`.
//! - A secret is besides a file that others may not read (S18). Shown by `a_secret_is_read_by_nobody_else`.
//! - A mode that a read-only mount makes harmless counts as it stands. systemd mounts all of `/etc`
//!   read-only for a service, and other users still write there.
//! - A program is looked at again right before each run. Shown by
//!   `a_program_that_others_may_change_by_now_is_run_no_more`.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

mod account;
mod group;
mod walk;

pub use account::account;

#[cfg(test)]
mod tests;

/// The most symbolic links on the way to a file, as in the kernel (path_resolution(7)).
const LINKS: usize = 40;

/// What is wrong with a file, and what mends it. Nothing was read from the file, and no power was switched.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.words())]
pub struct Fault {
    /// The file that was asked for.
    pub file: PathBuf,
    /// The file, directory or link at fault.
    pub path: PathBuf,
    /// What is wrong with that.
    pub what: What,
}

/// What is wrong with a file, a directory or a link.
#[derive(Debug)]
pub enum What {
    /// It cannot be looked at.
    Unread(io::Error),
    /// Another user owns it, and may change it whatever its mode is.
    Owner {
        /// The owner.
        owner: u32,
        /// The user as which this program runs.
        user: u32,
        /// The user who should own it.
        right: u32,
        /// It is a symbolic link.
        is_link: bool,
    },
    /// Its group may write to it.
    Group {
        /// The group.
        gid: u32,
        /// The mode.
        mode: u32,
    },
    /// Everybody may write to it.
    Everybody {
        /// The mode.
        mode: u32,
        /// The argument of `chmod` that mends it.
        right: &'static str,
    },
    /// Everybody may read it, and it is a secret.
    Readable {
        /// The mode.
        mode: u32,
    },
}

impl Fault {
    fn words(&self) -> String {
        let shown = self.path.display();
        // The file itself is named by what stands before these words. A directory above it is not, and is named here.
        let (it, leads) = match self.path == self.file {
            true => ("it".to_owned(), ""),
            false => (shown.to_string(), ", which leads to it"),
        };
        match &self.what {
            What::Unread(error) => format!("{} cannot be read: {error}", self.file.display()),
            // No chown for root: the file is most often the gateway's, which could not start any more.
            What::Owner { owner, user: 0, .. } => format!(
                "user {owner} owns {it}{leads}, and this runs as root, who believes files of root's alone: run this as that \
                 user, by sudo -u '#{owner}'; where root is to run the gateway, the owner must be root"
            ),
            What::Owner { owner, user, right, is_link } => {
                let (link, right) = (if *is_link { "-h " } else { "" }, name(*right));
                format!(
                    "user {owner} owns {it}{leads}, and root and user {user}, as whom this runs, alone may change it: run \
                     chown {link}{right} {shown}"
                )
            }
            What::Group { gid, mode } => {
                format!("group {gid} may change {it} (mode {mode:03o}){leads}: run chmod g-w {shown}")
            }
            What::Everybody { mode, right } => {
                format!("everybody may change {it} (mode {mode:03o}){leads}: run chmod {right} {shown}")
            }
            What::Readable { mode } => {
                format!("everybody may read {it} (mode {mode:03o}){leads}: run chmod 600 {shown}")
            }
        }
    }
}

/// Whether root and this program's user alone may change the file or directory, or put another one in its place.
///
/// # Errors
/// The first thing on the way that somebody else may change, or that cannot be looked at.
pub fn check(path: &Path) -> Result<(), Fault> {
    Rule::ours().check(path)
}

/// The same of what may be missing: whoever reads it tells that.
///
/// # Errors
/// The first thing on the way that somebody else may change.
pub fn check_if_there(path: &Path) -> Result<(), Fault> {
    check(path).or_else(|fault| if matches!(fault.what, What::Unread(_)) { Ok(()) } else { Err(fault) })
}

/// The same of a file with a secret in it, which others may not read either.
///
/// # Errors
/// As for [`check`]; or everybody may read it.
pub fn check_secret(path: &Path) -> Result<(), Fault> {
    Rule::ours().check_secret(path)
}

/// Whether root and this program's user alone may make files in a directory of the program's own state. What stands above it
/// does not count: a volume of a pod has mode 777, and another user cannot make a directory that is ours. Nor does the
/// sticky bit: the first to make a file there owns it.
///
/// # Errors
/// Somebody else may, or the directory cannot be looked at.
pub fn check_state_directory(path: &Path) -> Result<(), Fault> {
    Rule::ours().check_state_directory(path)
}

/// What the file holds, where [`check`] has no fault.
///
/// # Errors
/// As for [`check`]; or it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    check(path)?;
    std::fs::read(path).map_err(|error| unread(path, error))
}

/// What the file holds, where [`check_secret`] has no fault.
///
/// # Errors
/// As for [`check_secret`]; or it cannot be read.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, Fault> {
    check_secret(path)?;
    std::fs::read(path).map_err(|error| unread(path, error))
}

fn unread(path: &Path, error: io::Error) -> Fault {
    Fault { file: path.to_owned(), path: path.to_owned(), what: What::Unread(error) }
}

/// A user's name for `chown`.
fn name(user: u32) -> String {
    if user == 0 { "root".to_owned() } else { user.to_string() }
}

/// The rule for one user.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// As whom the program runs.
    user: u32,
    /// Who owns `/`, and so may replace everything. In a user namespace without the machine's root this is not 0: the kernel
    /// shows the number of nobody for it, and for every other user who is not in the namespace (user_namespaces(7)).
    root: u32,
}

impl Rule {
    fn ours() -> Self {
        let root = std::fs::symlink_metadata("/").map_or(0, |about| about.uid());
        Self { user: geteuid().as_raw(), root }
    }

    fn check(self, path: &Path) -> Result<(), Fault> {
        self.visit(path, false)
    }

    fn check_secret(self, path: &Path) -> Result<(), Fault> {
        self.visit(path, true)
    }

    fn visit(self, file: &Path, is_secret: bool) -> Result<(), Fault> {
        let fault = |path: &Path, what| Fault { file: file.to_owned(), path: path.to_owned(), what };
        let steps = walk::steps(file).map_err(|error| fault(file, What::Unread(error)))?;
        for step in &steps {
            let wrong = self.wrong(&step.path, &step.about, is_secret && step.is_last);
            // A fault of the file itself is told by the name that the operator gave it, also where `.` or a relative path leads there.
            let named = if step.is_last && !step.is_behind_link { file } else { &step.path };
            wrong.map_or(Ok(()), |what| Err(fault(named, what)))?;
        }
        Ok(())
    }

    fn check_state_directory(self, path: &Path) -> Result<(), Fault> {
        let fault = |what| Fault { file: path.to_owned(), path: path.to_owned(), what };
        let about = std::fs::metadata(path).map_err(|error| fault(What::Unread(error)))?;
        let wrong = self.owner(&about, self.user).or_else(|| self.writable(path, &about, "o-w"));
        wrong.map_or(Ok(()), |what| Err(fault(what)))
    }

    fn wrong(self, path: &Path, about: &std::fs::Metadata, is_secret: bool) -> Option<What> {
        // A secret of root's could not be read by another user.
        if let Some(what) = self.owner(about, if is_secret { self.user } else { 0 }) {
            return Some(what);
        }
        // The mode of a link says nothing: the kernel shows 777 for each.
        if about.is_symlink() {
            return None;
        }
        let mode = about.mode() & 0o7777;
        if is_secret && mode & 0o004 != 0 {
            return Some(What::Readable { mode });
        }
        // In a sticky directory an entry belongs to its owner, who was or will be looked at.
        if about.is_dir() && mode & 0o1000 != 0 {
            return None;
        }
        self.writable(path, about, if is_secret { "600" } else { "o-w" })
    }

    fn owner(self, about: &std::fs::Metadata, right: u32) -> Option<What> {
        let (owner, user) = (about.uid(), self.user);
        let is_right = [0, self.root, user].contains(&owner);
        (!is_right).then_some(What::Owner { owner, user, right, is_link: about.is_symlink() })
    }

    fn writable(self, path: &Path, about: &std::fs::Metadata, right: &'static str) -> Option<What> {
        let mode = about.mode() & 0o7777;
        if mode & 0o002 != 0 {
            return Some(What::Everybody { mode, right });
        }
        let is_open = mode & 0o020 != 0 && !group::is_private(path, about.gid(), self.user);
        is_open.then_some(What::Group { gid: about.gid(), mode })
    }
}
