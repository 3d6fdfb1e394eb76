//! The one that writes: a thread of its own, so that a slow disk holds up nobody.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::chain::Chain;
use crate::entry::{Head, Told};
use crate::error::OpenError;
use crate::log::{Options, Shared};
use crate::prune::{Bounds, prune};

/// Entries that are written in one go.
const BATCH: usize = 512;
/// How soon what could not be written is tried again, and counts are looked at.
const SOON: Duration = Duration::from_secs(1);
/// How long it waits when there is nothing to do.
const IDLE: Duration = Duration::from_secs(600);
/// How often old files are looked for.
const PRUNING: Duration = Duration::from_secs(3_600);
/// How long the end of the process waits for what is still to be written.
const ENDING: Duration = Duration::from_secs(5);

pub(crate) enum Message {
    Told(Box<Told>),
    Flush(SyncSender<()>),
    End(SyncSender<()>),
}

/// The thread that writes. Dropped, it writes what was told and ends; a disk that hangs is waited for five seconds.
#[derive(Debug)]
pub struct Writer {
    sender: SyncSender<Message>,
}

impl Writer {
    pub(crate) fn start(
        chain: Option<Chain>,
        options: Options,
        shared: Arc<Shared>,
        inbox: Receiver<Message>,
        sender: SyncSender<Message>,
    ) -> Result<Self, OpenError> {
        let directory = options.directory.clone();
        // Not at the start: a machine whose clock is far ahead when it boots has an hour to be set right.
        let prune_at = Instant::now() + PRUNING;
        let mut work = Work { chain, options, shared, prune_at, files: None, counted: 0 };
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || work.run(inbox))
            .map_err(OpenError::io("start the writer of", directory))?;
        Ok(Self { sender })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let (done, ended) = sync_channel(1);
        let until = Instant::now() + ENDING;
        let mut end = Message::End(done);
        while Instant::now() < until {
            match self.sender.try_send(end) {
                Ok(()) => {
                    let _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
                    return;
                }
                Err(std::sync::mpsc::TrySendError::Full(back)) => {
                    end = back;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(std::sync::mpsc::TrySendError::Disconnected(_)) => return,
            }
        }
    }
}

struct Work {
    chain: Option<Chain>,
    options: Options,
    shared: Arc<Shared>,
    /// When files are looked at for their age.
    prune_at: Instant,
    /// The file that was written on when their sizes were looked at last.
    files: Option<u64>,
    /// Of what overflowed, how much is counted in the chain's gap.
    counted: u64,
}

impl Work {
    fn run(&mut self, inbox: Receiver<Message>) {
        loop {
            let first = match inbox.recv_timeout(self.patience()) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let (mut batch, mut answers, mut end) = (Vec::new(), Vec::new(), None);
            for message in first.into_iter().chain(inbox.try_iter().take(BATCH - 1)) {
                match message {
                    Message::Told(told) => batch.push(*told),
                    Message::Flush(done) => answers.push(done),
                    Message::End(done) => end = Some(done),
                }
            }
            let now = (self.shared.now)();
            batch.extend(self.shared.denials().due(Instant::now(), now, end.is_some()));
            self.write(&batch, now);
            self.prune(now);
            for done in answers {
                let _ = done.send(());
            }
            if let Some(done) = end {
                self.chain = None;
                // What is told from now on is counted by whoever tells it.
                let unwritten =
                    inbox.try_iter().filter(|message| matches!(message, Message::Told(_))).count();
                drop(inbox);
                self.shared.overflow.fetch_add(unwritten as u64, Ordering::Relaxed);
                let _ = done.send(());
                return;
            }
        }
    }

    fn patience(&self) -> Duration {
        let owes = self.chain.as_ref().is_none_or(Chain::owes);
        if owes || !self.shared.denials().is_empty() { SOON } else { IDLE }
    }

    fn write(&mut self, batch: &[Told], now: u64) {
        if self.chain.is_none() {
            let Options { directory, rotate, fsync, .. } = &self.options;
            self.chain = Chain::open(directory, *rotate, *fsync).ok();
        }
        let overflow = self.shared.overflow.load(Ordering::Relaxed);
        let Some(chain) = &mut self.chain else {
            // Nothing to count in but the overflow, which the chain's first gap takes over.
            self.shared.overflow.fetch_add(batch.len() as u64, Ordering::Relaxed);
            self.shared.seen().state.failing = Some("it could not be opened yet".to_owned());
            return;
        };
        if overflow > self.counted {
            let more = overflow - self.counted;
            self.counted = overflow;
            tracing::error!(more, "the audit lost entries: more came at once than it could write");
            chain.lose(more, now, "more came at once than could be written");
        }
        if batch.is_empty() && !chain.owes() {
            return;
        }
        let torn = chain.torn();
        if torn > 0 {
            tracing::warn!(
                lines = torn,
                "the audit ended in the middle of a line: it is left there, and told of"
            );
        }
        let done = chain.append(batch, now);
        let head = chain.head().clone();
        self.note(done, head, batch.len() as u64);
    }

    /// What others see of it. Nothing is logged while they might wait for that.
    fn note(&self, done: std::io::Result<()>, head: Head, entries: u64) {
        let mut seen = self.shared.seen();
        match done {
            Ok(()) => {
                seen.head = Some(head);
                seen.state.written += entries;
                let (failed, lost) = (seen.state.failing.take(), seen.state.lost);
                drop(seen);
                if failed.is_some() {
                    tracing::info!(lost, "the audit is written again; the gap is told in it");
                }
            }
            Err(error) => {
                let why = in_words(&error);
                seen.state.lost += entries;
                let before = seen.state.failing.replace(why.clone());
                drop(seen);
                if before.as_ref() != Some(&why) {
                    let directory = self.options.directory.display();
                    tracing::error!(
                        %directory,
                        why,
                        "the audit cannot be written: what is lost is counted, and no fence stops"
                    );
                }
            }
        }
    }

    fn prune(&mut self, now: u64) {
        let Some(chain) = &mut self.chain else { return };
        let aged = Instant::now() >= self.prune_at;
        let current = chain.current().map(|file| file.first);
        if !aged && current == self.files {
            return;
        }
        self.files = current;
        if aged {
            self.prune_at = Instant::now() + PRUNING;
        }
        let bounds = Bounds { keep: aged.then_some(self.options.keep), most: self.options.most };
        match prune(chain, &self.options.directory, bounds, now) {
            Ok((0, _)) => {}
            Ok((files, for_size)) => {
                self.shared.seen().head = Some(chain.head().clone());
                if for_size {
                    let most = self.options.most;
                    tracing::warn!(
                        files,
                        most,
                        "files of the audit went before their age: they were more than [audit] most"
                    );
                } else {
                    tracing::info!(files, "files of the audit went at their age");
                }
            }
            Err(error) => tracing::warn!(%error, "old files of the audit could not be removed"),
        }
    }
}

fn in_words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::StorageFull => format!("the disk is full: make room on it ({error})"),
        _ => error.to_string(),
    }
}
