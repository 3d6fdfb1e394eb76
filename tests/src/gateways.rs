//! Several gateways over one etcd, asked as one.

use std::ops::{Deref, DerefMut};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Child;
use tokio::time::{Instant, sleep};

use crate::error::{PeerError, Result};
use crate::gateway::{Gateway, Said};
use crate::peers::EtcdCluster;
use crate::programs::program;

/// No wait here is longer: a token's life, the clocks, and a fence in a busy cloud.
const HANGS: Duration = Duration::from_secs(400);
/// What a gateway says that stood still, once it knows that another one leads.
const SUCCEEDED: &str = "does not lead; standing again";

/// `g0`, `g1` and so on, as [`one_of_several`] has called them.
#[derive(Debug, Default)]
pub struct Gateways(Vec<Gateway>);

/// The settings that make a gateway one of several: its name, the etcd that they share, and their lease.
pub fn one_of_several(n: usize, etcd: &EtcdCluster, lease: &str) -> String {
    format!(
        "[gateway]\nname = \"g{n}\"\n[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\n\
         [election]\nlease = {lease:?}",
        etcd.endpoints()
    )
}

impl Gateways {
    /// Starts the first one with these variables, which then leads; then the others with those.
    pub async fn start(
        gateways: Vec<Gateway>,
        first: &[(&str, &str)],
        others: &[(&str, &str)],
    ) -> Result<Self> {
        let mut all = Self(gateways);
        all[0].begin(first).await?;
        all[0].checked().await?;
        for other in &mut all[1..] {
            other.begin(others).await?;
        }
        all.leads(0).await?;
        Ok(all)
    }

    /// The same; the first one stops itself (SIGSTOP) at that point. It has one thread: with more of them it may know that it leads no
    /// more before it does what it was about to.
    pub async fn stopping_at(gateways: Vec<Gateway>, point: &str) -> Result<Self> {
        Self::start(gateways, &[("PICKET_STOP_AT", point), ("TOKIO_WORKER_THREADS", "1")], &[]).await
    }

    /// `picket` to all of them.
    pub fn asking(&self, arguments: &[&str]) -> Result<Child> {
        asking(&self.endpoints(), arguments)
    }

    /// The same, to its end.
    pub async fn said(&self, arguments: &[&str]) -> Result<Said> {
        self.end(self.asking(arguments)?).await
    }

    /// The end of what was asked.
    pub async fn end(&self, asked: Child) -> Result<Said> {
        match tokio::time::timeout(HANGS, end(asked)).await {
            Ok(said) => said,
            Err(_elapsed) => Err(self.timed_out("picket comes to its end")),
        }
    }

    /// Lets `picket` do that, to its end; while nobody leads it is asked for again.
    pub fn does(&self, arguments: &[&str]) -> impl Future<Output = Result<()>> + use<> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let (endpoints, deadline) = (self.endpoints(), Instant::now() + HANGS);
        async move {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            loop {
                let said = end(asking(&endpoints, &arguments)?).await?;
                match said.code {
                    0 => return Ok(()),
                    5 if Instant::now() < deadline => sleep(Duration::from_millis(200)).await,
                    code => {
                        return Err(PeerError::Ended {
                            program: format!("picket {}", arguments.join(" ")),
                            status: code.to_string(),
                            output: format!("{}{}", said.out, said.err),
                        });
                    }
                }
            }
        }
    }

    /// Waits until that is so.
    pub async fn until(&self, what: &str, mut seen: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + HANGS;
        while !seen().await? {
            if Instant::now() >= deadline {
                return Err(self.timed_out(what));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Whether that one says that it leads.
    pub async fn is_leading(&self, n: usize) -> bool {
        let own = format!("g{n}");
        let seen = self[n].gateways().await;
        seen.is_some_and(|seen| {
            seen.trouble.is_empty() && seen.gateways.iter().any(|one| one.leads && one.name == own)
        })
    }

    /// Who leads, as it says itself; waits until somebody does.
    pub async fn leader(&self) -> Result<usize> {
        let mut leader = 0;
        self.until("somebody leads", async || {
            for n in 0..self.len() {
                if self.is_leading(n).await {
                    leader = n;
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await?;
        Ok(leader)
    }

    /// Waits until that one says that it leads.
    pub async fn leads(&self, n: usize) -> Result<()> {
        self.until(&format!("g{n} leads"), async || Ok(self.is_leading(n).await)).await
    }

    /// Waits until the first one stands still.
    pub async fn until_stopped(&mut self) -> Result<()> {
        let deadline = Instant::now() + HANGS;
        while !self[0].process()?.is_frozen() {
            if Instant::now() >= deadline {
                return Err(self.timed_out("g0 stands still"));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Waits until the first one, which goes on, knows that it does not lead: it sends nothing more by the old leadership.
    pub async fn until_succeeded(&self) -> Result<()> {
        self.until("g0 knows that it does not lead", async || Ok(self[0].log().contains(SUCCEEDED))).await
    }

    /// What all of them logged.
    pub fn logs(&self) -> String {
        let logs = self.iter().enumerate().map(|(n, one)| format!("--- g{n}\n{}", one.log()));
        logs.collect::<Vec<_>>().join("\n")
    }

    fn endpoints(&self) -> String {
        self.iter().map(Gateway::endpoint).collect::<Vec<_>>().join(",")
    }

    fn timed_out(&self, what: &str) -> PeerError {
        PeerError::TimedOut { what: what.to_owned(), within: HANGS, seen: self.logs() }
    }
}

impl Deref for Gateways {
    type Target = Vec<Gateway>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Gateways {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

fn asking(endpoints: &str, arguments: &[&str]) -> Result<Child> {
    let mut command = tokio::process::Command::new(program("picket")?);
    command.arg("--endpoint").arg(endpoints).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().map_err(PeerError::io("run picket"))
}

async fn end(asked: Child) -> Result<Said> {
    let output = asked.wait_with_output().await.map_err(PeerError::io("wait for picket"))?;
    Ok(Said::of(output))
}
