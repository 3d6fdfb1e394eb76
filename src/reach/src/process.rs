//! One run of a program: bounded in time and output, and nothing of it is left behind.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::time::{Duration, Instant, timeout, timeout_at};

use crate::keeper;
use crate::text::KEPT;

/// How long the end of a program that was killed is waited for, and the last of its output.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why there is no end of a run to tell. The words go on from the program's name.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It was not started, so it did nothing.
    #[error("{0}")]
    NotStarted(String),
    /// It was not started, as its time was over by then: whoever started it stood still.
    #[error("was not started: its time was over")]
    TooLate,
    /// It was still running at the end of its time, and its end was not seen soon after it was to be killed.
    #[error("was killed at the end of its time, and lives")]
    Lives,
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

/// How long after the end of its time a run may still live: a keeper gives a gateway that lives the time to end the run itself,
/// looks at its clock once a second, and kills.
pub const OVERTIME: Duration = Duration::from_secs(2);
/// Errors of a process that has no room left for another descriptor, watch or page.
const EXHAUSTED: [i32; 4] = [libc::ENOMEM, libc::ENOSPC, libc::EMFILE, libc::ENFILE];
/// Of that, what the keeper waits for the gateway.
const GRACE: Duration = Duration::from_millis(500);

/// Runs it, with `input` on its standard input, until it ends or `end` has come. `may_begin` is asked as the last thing before it is
/// started: an error says why it is not. A keeper outside of the gateway ends it, with all its descendants: when the program ends, when
/// `end` has come, when this future is dropped, and when the gateway dies; where the gateway stands still, [`OVERTIME`] after `end`.
///
/// # Errors
/// It was not started, or its end was not seen.
pub async fn run(
    mut command: Command,
    input: &[u8],
    end: Instant,
    may_begin: impl FnOnce() -> Result<(), String>,
) -> Result<Ran, RunError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let not_started = |error: std::io::Error| RunError::NotStarted(format!("was not started: {error}"));
    // This clock first: a stop between the two leaves less time, and not more.
    let now = keeper::since_boot();
    let left = end.saturating_duration_since(Instant::now());
    let lifeline = keeper::put_under(&mut command, now + left + GRACE).map_err(not_started)?;
    // Its settings were read long ago: since then its permissions may have changed, or another file may stand there.
    let program = Path::new(command.as_std().get_program());
    if program.is_absolute() {
        picket_permissions::check_if_there(program)
            .map_err(|fault| RunError::NotStarted(format!("was not started: {fault}")))?;
    }
    may_begin().map_err(RunError::NotStarted)?;
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::TimedOut => RunError::TooLate,
        // The program may have begun before what watches it could be set up; the keeper ends it.
        _ if error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code)) => {
            RunError::Lost(format!("may have been started: {error}"))
        }
        _ => not_started(error),
    })?;

    let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ended = {
        let talk = async { tokio::join!(feed(stdin, input), stdout.read(out), stderr.read(err)) };
        let run = async { tokio::join!(talk, child.wait()).1 };
        tokio::pin!(run);
        match timeout_at(end, &mut run).await {
            Ok(ended) => Some(ended),
            Err(_) => {
                drop(lifeline);
                timeout(LAST_WORDS, run).await.map_err(|_| RunError::Lives)?.ok();
                None
            }
        }
    };
    let lost = |error| RunError::Lost(format!("cannot be waited for: {error}"));
    Ok(Ran { status: ended.transpose().map_err(lost)?, stdout, stderr })
}

/// A program need not read what it is told.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin
        && let Err(error) = stdin.write_all(input).await
    {
        tracing::debug!(%error, "the program did not read all of its input");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;
    use crate::program::Program;

    /// Its settings are read once, and it is run again and again.
    #[tokio::test]
    async fn a_program_that_others_may_change_by_now_is_run_no_more() {
        let home = tempfile::tempdir().expect("a directory");
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).expect("made");
        let (program, ran) = (bin.join("probe"), home.path().join("ran"));
        std::fs::write(&program, format!("#!/bin/sh\necho x >> {}\n", ran.display())).expect("written");
        let mode = |path: &PathBuf, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        mode(&bin, 0o755);
        mode(&program, 0o755);
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&program, &link).expect("made");
        let programs = [&program, &link].map(|path| Program::at(path.clone(), &[]).expect("good settings"));
        let runs = || std::fs::read_to_string(&ran).map_or(0, |text| text.lines().count());
        let end = || Instant::now() + Duration::from_secs(600);
        for one in &programs {
            run(one.command(), b"", end(), || Ok(())).await.expect("it ran");
        }
        assert_eq!(runs(), 2);
        for (path, open, right) in [(&program, 0o777, 0o755), (&bin, 0o777, 0o755)] {
            mode(path, open);
            for one in &programs {
                let refused = run(one.command(), b"", end(), || Ok(())).await.expect_err("not started");
                let words = refused.to_string();
                assert!(matches!(refused, RunError::NotStarted(_)) && words.contains("mode 777"), "{words}");
            }
            mode(path, right);
        }
        assert_eq!(runs(), 2, "it did nothing");
    }
}
