//! A file that gets its name once it is whole, and takes the name of another one without losing an edit of that.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

/// A file that is whole, and has no name yet: whoever is killed leaves none of it.
pub(super) struct Draft {
    pub(super) file: File,
    /// Its name until then, where the file system has none without (`O_TMPFILE`).
    pub(super) name: Option<PathBuf>,
}

impl Draft {
    /// Writes it in the folder of `path`, with its owner and mode from its first byte on.
    pub(super) fn beside(
        path: &Path,
        bytes: &[u8],
        mode: u32,
        user: Option<u32>,
        group: Option<u32>,
    ) -> io::Result<Self> {
        let mut draft = Self::empty(path)?;
        // For the owner alone until it is given away.
        if user.is_some() || group.is_some() {
            fchown(&draft.file, user, group)?;
        }
        draft.file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        draft.file.write_all(bytes)?;
        draft.file.sync_all()?;
        Ok(draft)
    }

    fn empty(path: &Path) -> io::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return Ok(Self { file: file.into(), name: None }),
            // Of older kernels the last two.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let name = beside(path, "new");
        // What an earlier try left there is nobody's.
        let _ = std::fs::remove_file(&name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name)?;
        Ok(Self { file, name: Some(name) })
    }

    /// Gives it its name, which no other file has: a link takes none away, whoever made it meanwhile.
    pub(super) fn name(&self, path: &Path) -> io::Result<()> {
        match &self.name {
            Some(name) => std::fs::hard_link(name, path),
            None => {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                Ok(linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
            }
        }
    }

    /// Gives it its name, whichever file has that.
    pub(super) fn replace(&self, path: &Path) -> io::Result<()> {
        let name = beside(path, "new");
        if self.name.is_none() {
            let _ = std::fs::remove_file(&name);
            self.name(&name)?;
        }
        std::fs::rename(&name, path).inspect_err(|_| {
            let _ = std::fs::remove_file(&name);
        })
    }

    /// Gives it the name of a file that holds `wanted`, and removes that one. `own`: what the draft holds.
    ///
    /// A look before a rename would lose an edit that is saved between the two. So the files change their names in one call, and what came out is
    /// looked at.
    ///
    /// # Errors
    /// `AlreadyExists`: the file holds something else, and has its name again. Others name the file that is left beside, if any.
    pub(super) fn replace_if(&self, path: &Path, wanted: &[u8], own: &[u8]) -> io::Result<()> {
        let out = beside(path, "old");
        let left =
            |why: &str| io::Error::other(format!("{why}: look at {}, which may hold an edit", out.display()));
        // A picket init that was killed leaves one there.
        if holds(&out, wanted) {
            std::fs::remove_file(&out)?;
        }
        self.name(&out).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => left("an earlier picket init was killed"),
            _ => error,
        })?;
        let exchange = || renameat_with(CWD, &out, CWD, path, RenameFlags::EXCHANGE);
        exchange().map_err(|error| {
            let _ = std::fs::remove_file(&out);
            match error {
                Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => io::Error::other(
                    "its file system cannot exchange two files: say --force to replace the package's sample",
                ),
                other => other.into(),
            }
        })?;
        let is_untouched = holds(&out, wanted);
        if !is_untouched {
            exchange().map_err(|error| left(&error.to_string()))?;
            // Whoever edits may have edited the new settings meanwhile.
            if !holds(&out, own) {
                return Err(left("it changed twice meanwhile"));
            }
        }
        std::fs::remove_file(&out)?;
        if is_untouched { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // It was renamed, or it is nobody's.
            let _ = std::fs::remove_file(name);
        }
    }
}

/// A name for what is to be `path`, or was.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{end}"))
}

/// A file stands there, and holds exactly that.
pub(super) fn holds(path: &Path, bytes: &[u8]) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|about| about.is_file());
    is_file && std::fs::read(path).is_ok_and(|found| found == bytes)
}
