//! A child process that dies with its value.

use std::fs::{DirEntry, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::reaper;
use crate::error::{PeerError, Result};

/// A running program in a process group of its own. Dropped, the whole group is killed.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// Its end was taken note of: from then on its number may be another process's.
    gone: AtomicBool,
}

impl Process {
    /// Starts `command` with its output in `log`, which is emptied before. `package` is where Debian has the program.
    pub fn start(mut command: Command, log: &Path, package: &'static str) -> Result<Self> {
        let name = format!("{command:?}");
        let program = command.get_program().to_string_lossy().into_owned();
        let output = File::create(log).map_err(PeerError::io(format!("create {}", log.display())))?;
        let errors = output.try_clone().map_err(PeerError::io("duplicate a log's handle"))?;
        let child =
            command.stdin(Stdio::piped()).stdout(output).stderr(errors).process_group(0).spawn().map_err(
                |source| match source.kind() {
                    ErrorKind::NotFound => PeerError::Missing { what: program.clone(), package },
                    _ => PeerError::Io { what: format!("start {program}"), source },
                },
            )?;
        reaper::group(child.id());
        Ok(Self { name, child, log: log.to_owned(), gone: AtomicBool::new(false) })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let ended = self.child.try_wait().ok().flatten();
        self.gone.fetch_or(ended.is_some(), Ordering::SeqCst);
        ended
    }

    /// An error if it has ended, with what it said.
    pub fn still_runs(&mut self) -> Result<()> {
        match self.ended() {
            None => Ok(()),
            Some(status) => Err(PeerError::Ended {
                program: self.name.clone(),
                status: status.to_string(),
                output: self.log(),
            }),
        }
    }

    /// Sends a signal to the process itself, not to its group; none where it has ended.
    pub fn signal(&self, signal: Signal) {
        if self.gone.load(Ordering::SeqCst) {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // An error says that it has ended already, which is no news to whoever asks `ended`.
            let _ = kill_process(pid, signal);
        }
    }

    /// Stops it where it stands (SIGSTOP): it answers nobody, and knows nothing of it. It stands when this returns: the signal
    /// alone is on its way, and a thread that runs on another processor may still send an answer.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let from = Instant::now();
        while self.threads().is_some_and(|states| !states.iter().all(|state| "TZX".contains(*state))) {
            assert!(from.elapsed() < super::HANGS, "{} does not stand still", self.name);
            std::thread::yield_now();
        }
    }

    /// Whether it stands frozen, whoever froze it.
    pub fn is_frozen(&self) -> bool {
        self.threads().is_some_and(|states| states.iter().all(|state| *state == 'T'))
    }

    /// The state of each of its threads, as proc_pid_stat(5) says; `None` where there is no such process any more.
    fn threads(&self) -> Option<Vec<char>> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).ok()?;
        let state = |task: DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
            // It follows the name, which is in parentheses and may hold anything.
            stat.rsplit_once(") ")?.1.chars().next()
        };
        Some(tasks.flatten().filter_map(state).collect())
    }

    /// Lets a frozen one go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills it alone (SIGKILL), without its group, and waits for its end: a machine that it started lives on.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.gone.store(true, Ordering::SeqCst);
    }

    /// Waits until it ends by itself, at most `within`.
    pub async fn wait(&mut self, within: Duration) -> Result<ExitStatus> {
        let deadline = tokio::time::Instant::now() + within;
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if tokio::time::Instant::now() >= deadline {
                let what = format!("{} ends", self.name);
                return Err(PeerError::TimedOut { what, within, seen: self.log() });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asks it to end (SIGTERM) and waits at most `within`.
    pub async fn terminate(&mut self, within: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        self.wait(within).await
    }

    /// Lets it outlive this run; its process id.
    pub fn leave_running(self) -> u32 {
        let id = self.child.id();
        reaper::group_ended(id);
        std::mem::forget(self);
        id
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A number is given away anew only when its group is empty: then who has it now is somebody else.
        let reused =
            self.gone.load(Ordering::SeqCst) && Path::new("/proc").join(self.id().to_string()).exists();
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()).filter(|_| !reused) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
        reaper::group_ended(self.child.id());
    }
}
