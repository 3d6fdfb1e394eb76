//! Nothing of a program lives on, however it was started and however its run ends.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures::future::join_all;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Child;
use tokio::time::Instant;

use super::*;
use crate::process::{self, Ran, RunError};

/// Ways to start something that outlives a program whose process group alone is killed.
const STARTS: [&str; 4] = [
    "sleep 1000 &",
    // A process group of its own.
    "timeout 1000 sleep 1000 &",
    // A session of its own.
    "setsid sleep 1000 &",
    // Forked twice, in a session of its own, deaf to what can be ignored.
    "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000 & sleep 1000' &) &",
];

/// A pipe with a name that a program and all that it starts hold open: it ends with the last of them.
struct Alive {
    _directory: TempDir,
    path: PathBuf,
}

impl Alive {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let path = directory.path().join("alive");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .expect("a pipe");
        Self { _directory: directory, path }
    }

    /// A shell that holds the pipe, says that it does, and does this.
    fn shell(&self, what: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("exec 9>\"$0\"; echo here >&9; {what}")).arg(&self.path);
        command
    }

    /// The pipe, as soon as a shell holds it.
    async fn held(&self) -> BufReader<tokio::net::unix::pipe::Receiver> {
        let pipe = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&self.path).expect("a pipe");
        BufReader::new(pipe)
    }
}

/// Waits until the shell has begun.
async fn begun(pipe: &mut BufReader<tokio::net::unix::pipe::Receiver>) {
    let mut line = String::new();
    // Nobody has opened it yet: that, too, reads as an end.
    while pipe.read_line(&mut line).await.expect("a pipe") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(line, "here\n");
}

/// How long a program is given that never ends: more where a busy machine had not begun it by then.
const TIMES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(20), Duration::from_secs(100)];

/// Whether one that has ended had begun.
async fn has_begun(pipe: &mut BufReader<tokio::net::unix::pipe::Receiver>) -> bool {
    let mut line = String::new();
    pipe.read_line(&mut line).await.expect("a pipe");
    line == "here\n"
}

/// Waits until nobody holds it any more.
async fn all_dead(mut pipe: BufReader<tokio::net::unix::pipe::Receiver>) {
    let mut rest = Vec::new();
    pipe.read_to_end(&mut rest).await.expect("a pipe");
}

async fn run(command: Command, end: Instant) -> Result<Ran, RunError> {
    process::run(command, b"", end, || Ok(())).await
}

fn late() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

/// A program under a keeper that nobody watches, as where the gateway stands still.
fn left_alone(mut command: Command, life: Duration) -> (Child, Lifeline) {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let lifeline = put_under(&mut command, since_boot() + life).expect("a pipe");
    (command.spawn().expect("there is a shell"), lifeline)
}

#[tokio::test]
async fn what_a_program_started_ends_with_it() {
    for start in STARTS {
        let alive = Alive::new();
        let mut pipe = alive.held().await;
        let (ran, ()) = tokio::join!(run(alive.shell(&format!("{start} exit 3")), late()), begun(&mut pipe));
        assert_eq!(ran.expect("it ran").status.expect("it ended").code(), Some(3), "{start}");
        all_dead(pipe).await;
    }
}

#[tokio::test]
async fn at_the_end_of_its_time_all_of_it_dies() {
    join_all(STARTS.map(async |start| {
        for time in TIMES {
            let alive = Alive::new();
            let mut pipe = alive.held().await;
            let what = format!("{start} wait; sleep 1000");
            let ran = run(alive.shell(&what), Instant::now() + time).await;
            assert!(ran.expect("it ran").status.is_none(), "{start}");
            if has_begun(&mut pipe).await {
                return all_dead(pipe).await;
            }
        }
        panic!("{start}: it never begins");
    }))
    .await;
}

#[tokio::test]
async fn when_its_task_ends_all_of_it_dies() {
    for start in STARTS {
        let alive = Alive::new();
        let mut pipe = alive.held().await;
        let task = tokio::spawn(run(alive.shell(&format!("{start} wait; sleep 1000")), late()));
        begun(&mut pipe).await;
        task.abort();
        all_dead(pipe).await;
    }
}

#[tokio::test]
async fn where_the_gateway_stands_still_all_of_it_dies_at_the_end_of_its_time() {
    join_all(STARTS.map(async |start| {
        for time in TIMES {
            let alive = Alive::new();
            let mut pipe = alive.held().await;
            let what = format!("{start} wait; sleep 1000");
            let (mut keeper, lifeline) = left_alone(alive.shell(&what), time);
            assert_eq!(keeper.wait().await.expect("it ended").signal(), Some(9), "{start}");
            if has_begun(&mut pipe).await {
                all_dead(pipe).await;
                return drop(lifeline);
            }
        }
        panic!("{start}: it never begins");
    }))
    .await;
}

#[tokio::test]
async fn when_the_lifeline_breaks_all_of_it_dies() {
    for start in STARTS {
        let alive = Alive::new();
        let mut pipe = alive.held().await;
        let (mut keeper, lifeline) =
            left_alone(alive.shell(&format!("{start} wait; sleep 1000")), Duration::from_secs(600));
        begun(&mut pipe).await;
        drop(lifeline);
        all_dead(pipe).await;
        assert_eq!(keeper.wait().await.expect("it ended").signal(), Some(9), "{start}");
    }
}

#[tokio::test]
async fn a_keeper_that_is_killed_takes_the_program_along_and_no_signal_else_ends_it() {
    let alive = Alive::new();
    let mut pipe = alive.held().await;
    let (mut keeper, _lifeline) = left_alone(alive.shell("exec sleep 1000"), Duration::from_secs(600));
    begun(&mut pipe).await;
    let id = Pid::from_raw(keeper.id().expect("it lives").cast_signed()).expect("a number");
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::USR1] {
        kill_process(id, signal).expect("it lives");
    }
    assert!(keeper.try_wait().expect("a child").is_none());
    kill_process(id, Signal::KILL).expect("it lives");
    all_dead(pipe).await;
    assert_eq!(keeper.wait().await.expect("it ended").signal(), Some(9));
}

#[tokio::test]
async fn nothing_is_begun_once_its_time_is_over() {
    let alive = Alive::new();
    let mark = alive.path.with_extension("mark");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ": > \"$0\""]).arg(&mark);
    let _lifeline = put_under(&mut command, since_boot()).expect("a pipe");
    let error = command.spawn().expect_err("its time is over");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    assert!(!Path::new(&mark).exists());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let ran = run(Command::new("/nowhere/program"), late()).await;
    let Err(RunError::NotStarted(why)) = ran else { panic!("{ran:?}") };
    assert!(why.starts_with("was not started: No such file"), "{why}");
}

#[tokio::test]
async fn its_end_is_told_as_it_was() {
    for (what, code, signal) in
        [("exit 0", Some(0), None), ("exit 75", Some(75), None), ("kill -SEGV $$", None, Some(11))]
    {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("cat; {what}")]);
        let ran = process::run(command, b"what it is told", late(), || Ok(())).await.expect("it ran");
        let status = ran.status.expect("it ended");
        assert_eq!((status.code(), status.signal()), (code, signal), "{what}");
        assert_eq!(ran.stdout.bytes, b"what it is told");
    }
}

#[tokio::test]
async fn the_keeper_holds_nothing_of_the_gateway_s_open() {
    let (mut read, write) =
        tokio::net::unix::pipe::pipe().map(|(write, read)| (read, write)).expect("a pipe");
    let alive = Alive::new();
    let mut pipe = alive.held().await;
    let (_keeper, lifeline) = left_alone(alive.shell("sleep 1000"), Duration::from_secs(600));
    begun(&mut pipe).await;
    drop(write);
    let mut rest = Vec::new();
    read.read_to_end(&mut rest).await.expect("a pipe");
    drop(lifeline);
    all_dead(pipe).await;
}
