//! What agents say of themselves, asked once for each program as it stands on the disk.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use picket_reach::process;
use picket_reach::program::Program;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::metadata::{self, Metadata};

/// How long an agent may take to say what it is: as long as a call of it, as it may be on a machine that starts.
const PATIENCE: Duration = Duration::from_secs(60);
/// For so long one that said nothing of use is not asked again: all devices of it would ask at once.
const KEPT: Duration = Duration::from_secs(10);

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

/// What one asking came to.
#[derive(Clone, Debug)]
struct MetadataAnswer {
    metadata: Result<Metadata, String>,
    at: std::time::Instant,
}

/// One asking, under way or over.
#[derive(Clone, Debug)]
struct CacheEntry {
    /// What stood there before it began.
    stamp: Stamp,
    said: watch::Receiver<Option<MetadataAnswer>>,
}

impl CacheEntry {
    /// Whether nobody asks the program, which is this now, again.
    fn stands(&self, now: Stamp) -> bool {
        match &*self.said.borrow() {
            // Another one is asked once this one has ended: one at a time. Whoever asked is gone where nothing can come any more.
            None => self.said.has_changed().is_ok(),
            Some(said) => self.stamp == now && (said.metadata.is_ok() || said.at.elapsed() < KEPT),
        }
    }
}

/// What was said. Each program is asked by one at a time, in a thread of its own, and nobody waits for another program's.
#[derive(Debug, Default)]
pub struct MetadataCache(Mutex<BTreeMap<PathBuf, CacheEntry>>);

impl MetadataCache {
    /// What the program there says of itself. Waits for it where it is not known as it stands now.
    ///
    /// # Errors
    /// It is not there, or says nothing of use.
    pub fn describe(&self, path: &Path, program: &Program) -> Result<Metadata, String> {
        let waits = || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(self.known(path, program)).map(|(_, metadata)| metadata)
        };
        // Making a driver does not wait for a runtime, and may itself stand in one.
        thread::scope(|scope| {
            scope.spawn(waits).join().unwrap_or_else(|_| Err("asking it failed".to_owned()))
        })
    }

    /// The same for whoever can wait without a thread, with what of a file said it. What is replaced meanwhile is asked again.
    ///
    /// # Errors
    /// It is not there, or says nothing of use.
    pub async fn known(&self, path: &Path, program: &Program) -> Result<(Stamp, Metadata), String> {
        let nothing =
            |why: String| format!("{} does not say what it takes (-o metadata): {why}", path.display());
        loop {
            let now = Stamp::of(path)?;
            let mut asked = self.asked(path, now, program);
            let said = asked.said.wait_for(Option::is_some).await.map(|said| said.clone());
            let Ok(Some(MetadataAnswer { metadata, .. })) = said else {
                return Err(nothing("asking it failed".to_owned()));
            };
            if asked.stamp == now {
                return metadata.map(|metadata| (now, metadata)).map_err(nothing);
            }
        }
    }

    /// The asking that stands, else a new one.
    fn asked(&self, path: &Path, now: Stamp, program: &Program) -> CacheEntry {
        let mut all = self.0.lock();
        if let Some(asked) = all.get(path).filter(|asked| asked.stands(now)) {
            return asked.clone();
        }
        let (tell, said) = watch::channel(None);
        let (program, name) = (program.clone(), path.file_name().unwrap_or_default().to_string_lossy());
        let asks = move || {
            let metadata = ask(&program);
            // Also where nobody waits any more: it is known then.
            tell.send_replace(Some(MetadataAnswer { metadata, at: std::time::Instant::now() }));
        };
        // A gateway that ends does not wait for an agent that hangs.
        if let Err(error) = thread::Builder::new().name(name.into_owned()).spawn(asks) {
            tracing::warn!(%error, agent = %path.display(), "no thread to ask an agent what it takes");
        }
        let asked = CacheEntry { stamp: now, said };
        all.insert(path.to_owned(), asked.clone());
        asked
    }
}

/// Runs `<agent> -o metadata`, and asks it for its version.
fn ask(program: &Program) -> Result<Metadata, String> {
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
    Ok(Metadata { version: metadata::version(&String::from_utf8_lossy(&version.stdout.bytes)), ..metadata })
}
