//! Contestant: `fence_redfish` of ClusterLabs, a process for each deed, as who fences by it does it.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use picket_tests::PeerError;
use picket_tests::peers::{ADMIN, PASSWORD};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::Wrong;
use crate::race::contest::{Contestant, Deed};
use crate::race::cost;

/// Its name.
pub const AGENT: &str = "fence_redfish";

/// The agent for these BMCs, all of them at once.
pub struct FenceRedfish {
    bmcs: Vec<SocketAddr>,
}

impl FenceRedfish {
    /// It must be there.
    pub fn new(bmcs: &[SocketAddr]) -> Result<Self, Wrong> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|place| place.join(AGENT).is_file());
        if !is_there {
            let what = AGENT.to_owned();
            return Err(PeerError::Missing { what, package: "fence-agents" }.into());
        }
        Ok(Self { bmcs: bmcs.to_vec() })
    }
}

/// One run of it. Its options go by its standard input, as Pacemaker gives them: a password is in no list of processes.
async fn run(bmc: SocketAddr, deed: Deed) -> Result<(), Wrong> {
    let (action, wanted) = match deed {
        Deed::Status => ("status", "Status: ON"),
        Deed::Off => ("off", "Success"),
    };
    let options = format!(
        "ip={}\nipport={}\nusername={ADMIN}\npassword={PASSWORD}\nssl_insecure=1\nsystems_uri=/redfish/v1/Systems/1\n\
         action={action}\n",
        bmc.ip(),
        bmc.port()
    );
    let mut command = Command::new(AGENT);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(options.as_bytes()).await?;
    }
    let ended = child.wait_with_output().await?;
    let said = String::from_utf8_lossy(&ended.stdout);
    if ended.status.success() && said.contains(wanted) {
        return Ok(());
    }
    Err(format!("{AGENT} {action}: {}: {said}{}", ended.status, String::from_utf8_lossy(&ended.stderr))
        .into())
}

#[async_trait]
impl Contestant for FenceRedfish {
    fn name(&self) -> &'static str {
        AGENT
    }

    async fn run(&mut self, deed: Deed) -> Result<(), Wrong> {
        let mut runs = JoinSet::new();
        for bmc in &self.bmcs {
            runs.spawn(run(*bmc, deed));
        }
        while let Some(ended) = runs.join_next().await {
            ended??;
        }
        Ok(())
    }

    fn cpu(&self) -> Duration {
        cost::ended_children_cpu()
    }
}
