//! One run of a program: bounded in time and output, and nothing of it is left behind.

use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Duration, Instant, sleep_until, timeout};

use crate::death;
use crate::keeper::Keeper;
use crate::text::KEPT;

/// How long the last output of a program that ended is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why there is no end of a run to tell. The words go on from the program's name.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It was not started, so it did nothing.
    #[error("{0}")]
    NotStarted(String),
    /// It was started, and what became of it is not known.
    #[error("{0}")]
    Lost(String),
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    /// `None`: it was still running at the end of its time, and was killed.
    pub status: Option<ExitStatus>,
    /// Its standard output.
    pub stdout: Kept,
    /// Its standard error.
    pub stderr: Kept,
}

/// The beginning of an output.
#[derive(Debug, Default)]
pub struct Kept {
    /// At most [`KEPT`] bytes.
    pub bytes: Vec<u8>,
    /// There was more.
    pub cut: bool,
}

impl Kept {
    /// Reads to the end and keeps the beginning, so that the program never waits for us.
    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let room = (KEPT - self.bytes.len()).min(length);
            self.bytes.extend_from_slice(&piece[..room]);
            self.cut |= room < length;
        }
    }
}

/// The program's process group: killed when this is dropped, while its number still belongs to it.
struct Group {
    child: Child,
    /// Of the group: the child's, or its keeper's.
    id: Pid,
    // Not waited for before the group is killed, so that its number stays taken.
    keeper: Option<Keeper>,
}

impl Group {
    fn kill(&self) {
        // The child is not waited for before, so that its number cannot have gone to another process.
        if let Err(error) = kill_process_group(self.id, rustix::process::Signal::KILL) {
            tracing::debug!(%error, group = self.id.as_raw_nonzero().get(), "nothing to kill");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.child.id().is_some() || self.keeper.is_some() {
            self.kill();
        }
    }
}

/// Runs it, with `input` on its standard input, until it ends or `end` has come. Whatever it leaves in its process group is
/// killed. `may_begin` is asked as the last thing before it is started: an error says why it is not.
pub async fn run(
    command: Command,
    input: &[u8],
    end: Instant,
    may_begin: impl FnOnce() -> Result<(), String>,
) -> Result<Ran, RunError> {
    within(None, command, input, end, may_begin).await
}

/// The same, for a program that starts others: they, too, die with the gateway, as long as they stay in its process group.
pub async fn run_kept(
    command: Command,
    input: &[u8],
    end: Instant,
    may_begin: impl FnOnce() -> Result<(), String>,
) -> Result<Ran, RunError> {
    let keeper = Keeper::start(end.saturating_duration_since(Instant::now()));
    let keeper = keeper.map_err(|error| RunError::NotStarted(format!("was not started: {error}")))?;
    within(Some(keeper), command, input, end, may_begin).await
}

async fn within(
    keeper: Option<Keeper>,
    mut command: Command,
    input: &[u8],
    end: Instant,
    may_begin: impl FnOnce() -> Result<(), String>,
) -> Result<Ran, RunError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(keeper.as_ref().map_or(0, |keeper| keeper.group().as_raw_nonzero().get()))
        .kill_on_drop(true);
    death::with_us(&mut command);
    let not_started = |why: String| RunError::NotStarted(format!("was not started: {why}"));
    // Asked for before the start, so that no end is missed.
    let mut children = signal(SignalKind::child()).map_err(|error| not_started(error.to_string()))?;
    may_begin().map_err(RunError::NotStarted)?;
    let child = command.spawn().map_err(|error| not_started(error.to_string()))?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let id = id.ok_or_else(|| RunError::Lost("ended before it could be watched".to_owned()))?;
    let group = keeper.as_ref().map_or(id, Keeper::group);
    let mut group = Group { child, id: group, keeper };

    let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
    let (stdin, out, err) = (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
    let in_time = {
        let talk = async { tokio::join!(feed(stdin, input), stdout.read(out), stderr.read(err)) };
        tokio::pin!(talk);
        let mut talked = false;
        let in_time = loop {
            tokio::select! {
                biased;
                () = ended(&mut children, id) => break true,
                () = sleep_until(end) => break false,
                _ = &mut talk, if !talked => talked = true,
            }
        };
        group.kill();
        if !talked && timeout(LAST_WORDS, &mut talk).await.is_err() {
            tracing::debug!("something holds the program's output open");
        }
        in_time
    };
    let status = group.child.wait().await;
    let status = status.map_err(|error| RunError::Lost(format!("cannot be waited for: {error}")))?;
    if let Some(keeper) = group.keeper.take() {
        keeper.end().await;
    }
    Ok(Ran { status: in_time.then_some(status), stdout, stderr })
}

/// Until the child has ended. It is not waited for by that: its number stays taken.
async fn ended(children: &mut Signal, id: Pid) {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that there is no such child to wait for any more.
    while let Ok(None) = waitid(WaitId::Pid(id), look) {
        if children.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// A program need not read what it is told.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin
        && let Err(error) = stdin.write_all(input).await
    {
        tracing::debug!(%error, "the program did not read all of its input");
    }
}
