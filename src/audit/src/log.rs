//! The handle: whoever has something to tell tells it, and waits for nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::chain::Chain;
use crate::denials::Denials;
use crate::entry::{Head, Told};
use crate::error::{OpenError, ReadError};
use crate::read::{Bounds, Found, exchanges};
use crate::state::State;
use crate::writer::{Message, Writer};

/// Entries that may wait to be written.
const WAITING: usize = 8_192;
/// How long whoever reads waits for what was told before.
const FLUSH: Duration = Duration::from_secs(2);

/// The wall clock, in milliseconds since 1970-01-01 UTC.
pub type Now = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How an audit is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its directory; made if it is not there, for this user alone.
    pub directory: PathBuf,
    /// A file of so many bytes is followed by the next.
    pub rotate: u64,
    /// A file of which every entry is older goes.
    pub keep: Duration,
    /// The oldest files go, whatever their age, while all of them together have more bytes.
    pub most: u64,
    /// Whether entries are forced to the disk before they count as written.
    pub fsync: bool,
}

pub(crate) struct Shared {
    sender: SyncSender<Message>,
    pub(crate) directory: PathBuf,
    pub(crate) now: Now,
    /// Entries for which there was no place.
    pub(crate) overflow: AtomicU64,
    denials: Mutex<Denials>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) head: Option<Head>,
    pub(crate) state: State,
}

impl Shared {
    pub(crate) fn denials(&self) -> MutexGuard<'_, Denials> {
        self.denials.lock()
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Keeps entries elsewhere than in files: a simulation, which has no threads and a time of its own.
pub trait Keeper: Send + Sync + std::fmt::Debug {
    /// Takes an entry. Returns at once.
    fn tell(&self, told: Told);

    /// The newest entry that it keeps. `None`: nothing was told yet.
    fn head(&self) -> Option<Head>;
}

/// Where entries go.
#[derive(Clone, Debug)]
enum Kept {
    Files(Arc<Shared>),
    Elsewhere(Arc<dyn Keeper>),
}

/// An audit, or none. Cheap to clone; all clones tell the same one.
#[derive(Clone, Debug, Default)]
pub struct Audit(Option<Kept>);

impl Audit {
    /// Nothing is kept.
    pub fn none() -> Self {
        Self(None)
    }

    /// Everything that is told goes to `keeper`, at once and uncounted. No files: there is nothing to be read back, and its
    /// state is always good.
    pub fn elsewhere(keeper: Arc<dyn Keeper>) -> Self {
        Self(Some(Kept::Elsewhere(keeper)))
    }

    fn files(&self) -> Option<&Arc<Shared>> {
        match &self.0 {
            Some(Kept::Files(shared)) => Some(shared),
            Some(Kept::Elsewhere(_)) | None => None,
        }
    }

    /// Opens the audit of a directory, and goes on where it ended. A full disk is no error: it is told, counted, and
    /// tried again.
    ///
    /// # Errors
    /// Another process writes it, others may change it, or the system refuses: nothing can be audited there.
    pub fn open(options: Options, now: Now) -> Result<(Self, Writer), OpenError> {
        let chain = match Chain::open(&options.directory, options.rotate, options.fsync) {
            Ok(chain) => Some(chain),
            Err(error) if error.is_full() => {
                tracing::error!(%error, "the audit cannot be opened yet: what is told is counted, and no fence stops");
                None
            }
            Err(error) => return Err(error),
        };
        let (sender, inbox) = sync_channel(WAITING);
        let seen = Seen { head: chain.as_ref().map(|chain| chain.head().clone()), state: State::default() };
        let shared = Arc::new(Shared {
            sender: sender.clone(),
            directory: options.directory.clone(),
            now,
            overflow: AtomicU64::new(0),
            denials: Mutex::default(),
            seen: Mutex::new(seen),
        });
        let writer = Writer::start(chain, options, shared.clone(), inbox, sender)?;
        Ok((Self(Some(Kept::Files(shared))), writer))
    }

    /// Looks whether a start would find what it needs in `directory`, and makes and locks nothing: another gateway may write
    /// there now. What the files say is not looked at.
    pub fn check(directory: &Path) -> Result<(), OpenError> {
        crate::open::check(directory)
    }

    /// Whether anything is kept.
    pub fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Tells an entry. Returns at once, whatever the disk does: what has no place is counted.
    pub fn tell(&self, told: Told) {
        let shared = match &self.0 {
            Some(Kept::Files(shared)) => shared,
            Some(Kept::Elsewhere(keeper)) => return keeper.tell(told),
            None => return,
        };
        match shared.sender.try_send(Message::Told(Box::new(told))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                shared.overflow.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Tells what somebody may make happen over and over: the first time at once, then as a count a minute, so that nothing
    /// else is crowded out. The same is what differs at most in its moment and in the details' `key`.
    pub fn tell_counted(&self, told: Told) {
        let Some(shared) = self.files() else { return self.tell(told) };
        let first = shared.denials().note(told, Instant::now());
        if let Some(first) = first {
            self.tell(first);
        }
    }

    /// The newest entry that is surely written. `None`: nothing is kept, or nothing was written yet.
    pub fn head(&self) -> Option<Head> {
        let shared = match self.0.as_ref()? {
            Kept::Files(shared) => shared,
            Kept::Elsewhere(keeper) => return keeper.head(),
        };
        shared.seen().head.clone().filter(|head| head.seq > 0)
    }

    /// How it is.
    pub fn state(&self) -> State {
        let Some(shared) = self.files() else { return State::default() };
        let mut state = shared.seen().state.clone();
        state.lost += shared.overflow.load(Ordering::Relaxed);
        state
    }

    /// Waits until what was told before this is written, or for two seconds. Blocks: not for a runtime's threads.
    pub fn flush(&self) {
        let Some(shared) = self.files() else { return };
        let (done, written) = sync_channel(1);
        if shared.sender.try_send(Message::Flush(done)).is_ok() {
            let _ = written.recv_timeout(FLUSH);
        }
    }

    /// A fence's exchanges with its devices, also those that were told just now, for as long as somebody wants them.
    /// Blocks: not for a runtime's threads.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn exchanges(
        &self,
        fence: &str,
        bounds: &Bounds,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Found, ReadError> {
        let Some(directory) = self.directory() else { return Ok(Found::default()) };
        self.flush();
        exchanges(directory, fence, bounds, is_wanted)
    }

    /// Where it is kept.
    pub fn directory(&self) -> Option<&Path> {
        self.files().map(|shared| shared.directory.as_path())
    }
}

#[cfg(test)]
mod tests;
