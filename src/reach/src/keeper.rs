//! What kills a process group when the gateway is gone.
//!
//! The kernel kills the program that we started when we die ([`crate::death`]), but not what that program started. A shell that leads
//! the group waits for a line on a pipe whose only other end is ours: when we end, in whatever way, the pipe ends, and the
//! shell kills its group, itself with it. So it does at the end of the run's time, where we are stopped and kill nobody.
//!
//! *Invariant:* it is there before the program is started, and the program is born in its group: there is no moment in which we
//! may die and something of the group lives on. What begins a session of its own leaves the group; a terminal that dies takes it along.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Pid;
use tokio::process::{Child, ChildStdin, Command};

/// The leader of a process group.
pub(crate) struct Keeper {
    child: Child,
    group: Pid,
    /// Nothing is ever written to it.
    _pipe: Option<ChildStdin>,
}

impl Keeper {
    /// A group of its own, with nobody else in it yet, which is killed after `life` (and a second at most) also where we are
    /// stopped rather than dead.
    pub(crate) fn start(life: Duration) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "(sleep \"$1\"; kill -KILL 0) & read -r _; kill -KILL 0", "keeper"])
            .arg((life.as_secs() + 1).to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = group.ok_or_else(|| io::Error::other("its keeper ended before it"))?;
        Ok(Self { _pipe: child.stdin.take(), child, group })
    }

    /// The group, whose number is the keeper's own as long as this is there.
    pub(crate) fn group(&self) -> Pid {
        self.group
    }

    /// Waits for its end, once the group was killed.
    pub(crate) async fn end(mut self) {
        if let Err(error) = self.child.wait().await {
            tracing::debug!(%error, "a keeper cannot be waited for");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Whether all of a keeper's group dies once `end` was done to it.
    async fn dies(life: Duration, end: impl FnOnce(&mut Keeper)) {
        let mut keeper = Keeper::start(life).expect("there is a shell");
        let mut command = Command::new("/bin/sh");
        // What dies with it holds the other end of this pipe: it ends when the last of them is gone.
        command.args(["-c", "sleep 1000 & sleep 1000"]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child =
            command.process_group(keeper.group().as_raw_nonzero().get()).spawn().expect("there is a shell");
        let mut out = child.stdout.take().expect("it has one");
        end(&mut keeper);
        let mut said = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut out, &mut said).await.expect("a pipe");
        assert_eq!(said, b"");
        assert_eq!(child.wait().await.expect("it ended").signal(), Some(9));
        assert_eq!(keeper.child.wait().await.expect("it ended").signal(), Some(9));
    }

    #[tokio::test]
    async fn when_the_pipe_ends_the_whole_group_dies() {
        dies(Duration::from_secs(600), |keeper| drop(keeper._pipe.take())).await;
    }

    #[tokio::test]
    async fn when_its_time_is_over_the_whole_group_dies() {
        dies(Duration::ZERO, |_| {}).await;
    }
}
