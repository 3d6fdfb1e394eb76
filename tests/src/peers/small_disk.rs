//! A disk that is soon full.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{PeerError, Result};

/// A directory that is a disk of few KiB for one process: a tmpfs in a mount namespace of its own.
#[derive(Clone, Debug)]
pub struct SmallDisk {
    at: PathBuf,
    kib: u32,
}

impl SmallDisk {
    /// Such a disk, in this directory.
    pub fn new(at: PathBuf, kib: u32) -> Result<Self> {
        std::fs::create_dir_all(&at).map_err(PeerError::io(format!("create {}", at.display())))?;
        Ok(Self { at, kib })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// A command that runs `program`, with the arguments that are added to it, before this disk.
    ///
    /// Root makes the namespace itself, anybody else within a user namespace of its own. Where neither is allowed,
    /// `unshare` says so, and the program never starts.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let script = format!("mount -t tmpfs -o size={}k,mode=700 tmpfs \"$0\" && exec \"$@\"", self.kib);
        command.args(["--mount", "sh", "-c", &script]).arg(&self.at).arg(program);
        command
    }

    /// Fills it to the last byte, as another program would; `process` is the one that was started before it.
    pub fn fill(&self, process: u32) -> Result<()> {
        let path = self.filler(process);
        let mut filler = File::create(&path).map_err(PeerError::io(format!("create {}", path.display())))?;
        loop {
            match filler.write_all(&[0; 512]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(PeerError::io(format!("fill {}", path.display()))(error)),
            }
        }
    }

    /// Makes room on it.
    pub fn make_room(&self, process: u32) -> Result<()> {
        let path = self.filler(process);
        std::fs::remove_file(&path).map_err(PeerError::io(format!("remove {}", path.display())))
    }

    /// Seen through the process that has it (proc_pid_root(5)).
    fn filler(&self, process: u32) -> PathBuf {
        let below = self.at.strip_prefix("/").unwrap_or(&self.at);
        Path::new("/proc").join(process.to_string()).join("root").join(below).join("filler")
    }
}
