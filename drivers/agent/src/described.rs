//! What agents say of themselves, asked once for each program as it stands on the disk.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use picket_reach::process;
use picket_reach::program::Program;
use tokio::time::Instant;

use crate::metadata::{self, Metadata};

/// How long an agent may take to say what it is: as long as a call of it, as it may be on a machine that starts.
const PATIENCE: Duration = Duration::from_secs(60);

/// By what a program that was replaced is told from the one before: a package puts a new file in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Of the file that is there now, wherever a link leads.
    ///
    /// # Errors
    /// There is none.
    pub fn of(path: &Path) -> Result<Self, String> {
        let file = std::fs::metadata(path)
            .map_err(|error| format!("{} cannot be found: {error}", path.display()))?;
        let modified = (file.mtime(), file.mtime_nsec());
        Ok(Self { device: file.dev(), inode: file.ino(), length: file.len(), modified })
    }
}

/// What was said.
#[derive(Debug, Default)]
pub struct Described(Mutex<BTreeMap<PathBuf, (Stamp, Metadata)>>);

impl Described {
    /// What the program there says of itself. Waits for it where it is not known as it stands now.
    ///
    /// # Errors
    /// It is not there, or says nothing of use.
    pub fn describe(&self, path: &Path, program: &Program) -> Result<Metadata, String> {
        let stamp = Stamp::of(path)?;
        let mut described = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, metadata)) = described.get(path)
            && *known == stamp
        {
            return Ok(metadata.clone());
        }
        let metadata = ask(program)
            .map_err(|why| format!("{} does not say what it takes (-o metadata): {why}", path.display()))?;
        described.insert(path.to_owned(), (stamp, metadata.clone()));
        Ok(metadata)
    }
}

/// Runs `<agent> -o metadata`, and asks it for its version, from a thread of its own that lives as long as the run: making a driver does not wait for a runtime,
/// and may itself stand in one.
fn ask(program: &Program) -> Result<Metadata, String> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let said = |args: &[&str]| {
            let command = program.with(args).command();
            runtime.block_on(async {
                process::run(command, b"", Instant::now() + PATIENCE, || Ok(()))
                    .await
                    .map_err(|error| error.to_string())
            })
        };
        let ran = said(&["-o", "metadata"])?;
        let metadata = match ran.status {
            None => return Err(format!("it did not end within {} s", PATIENCE.as_secs())),
            Some(_) if ran.stdout.cut => return Err("it says more than a fence agent does".to_owned()),
            Some(_) => Metadata::read(&String::from_utf8_lossy(&ran.stdout.bytes)).map_err(|why| {
                let said = picket_reach::excerpt(&ran.stderr.bytes);
                if said.is_empty() { why } else { format!("{why} ({said})") }
            })?,
        };
        // One that does not tell its version is none that was read.
        let version = said(&["--version"])?;
        Ok(Metadata {
            version: metadata::version(&String::from_utf8_lossy(&version.stdout.bytes)),
            ..metadata
        })
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|_| Err("asking it failed".to_owned())))
}
