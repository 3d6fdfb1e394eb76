//! Pacemaker's fencer, by itself: it runs fence agents as it does in a cluster.
//!
//! It has a network and a `/usr/sbin` of its own, in which our agent lies beside the machine's programs: that is where it looks
//! for agents, nothing of the machine is changed, and two of them run side by side.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{HANGS, Process};
use crate::error::{PeerError, Result};
use crate::gateway::Said;
use crate::programs::program;

const FENCER: &str = "/usr/lib/pacemaker/pacemaker-fenced";

/// `pacemaker-fenced --stand-alone`, which knows `fence_picket`.
#[derive(Debug)]
pub struct Fencer {
    process: Process,
    directory: TempDir,
}

impl Fencer {
    /// Starts one.
    pub async fn start() -> Result<Self> {
        if !Path::new(FENCER).is_file() {
            return Err(PeerError::Missing { what: FENCER.to_owned(), package: "pacemaker" });
        }
        super::tools::must_have("stonith_admin", "pacemaker-cli-utils")?;
        let directory = tempfile::Builder::new()
            .prefix("picket-fencer-")
            .tempdir()
            .map_err(PeerError::io("create a fencer's directory"))?;
        let agents = directory.path().join("agents");
        std::fs::create_dir(&agents).map_err(PeerError::io("create a directory of agents"))?;
        std::fs::copy(program("fence_picket")?, agents.join("fence_picket"))
            .map_err(PeerError::io("copy fence_picket"))?;
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let script = "ip link set lo up && mount -t overlay overlay -o \"lowerdir=$1:/usr/sbin\" /usr/sbin && exec \"$2\" --stand-alone -VV";
        command.args(["--mount", "--net", "sh", "-c", script, "sh"]).arg(&agents).arg(FENCER);
        command.env("PCMK_logfile", directory.path().join("pacemaker.log"));
        let process = Process::start(command, &directory.path().join("log"), "util-linux")?;
        let fencer = Self { process, directory };
        let deadline = Instant::now() + HANGS;
        while fencer.admin(&["--list-registered"]).await?.code != 0 {
            if Instant::now() >= deadline {
                let (what, seen) = ("pacemaker-fenced answers".to_owned(), fencer.log());
                return Err(PeerError::TimedOut { what, within: HANGS, seen });
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(fencer)
    }

    /// Runs `stonith_admin` beside it, to its end.
    pub async fn admin(&self, arguments: &[&str]) -> Result<Said> {
        let mut command = tokio::process::Command::new("nsenter");
        command.args(["--target", &self.process.id().to_string(), "--mount", "--net", "stonith_admin"]);
        let output = command.args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
        let ended = tokio::time::timeout(HANGS, output).await.map_err(|_elapsed| PeerError::TimedOut {
            what: format!("stonith_admin {}", arguments.join(" ")),
            within: HANGS,
            seen: self.log(),
        })?;
        let output = ended.map_err(PeerError::io("run stonith_admin"))?;
        Ok(Said::of(output))
    }

    /// What it and its agents said.
    pub fn log(&self) -> String {
        let log = std::fs::read_to_string(self.directory.path().join("pacemaker.log")).unwrap_or_default();
        self.process.log() + &log
    }
}
