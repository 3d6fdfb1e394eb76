//! Three gateways over one etcd and one node behind its BMC.

use std::process::Stdio;
use std::time::Duration;

use picket_proto::v1::ListGatewaysResponse;
use picket_tests::peers::{EtcdCluster, IpmiSim};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, PeerError, Result, Said, Webhook, program};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

/// The longest that is waited for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The scene. Gateways are called `g0`, `g1` and `g2`.
pub struct Trio {
    /// First, so that they end first.
    pub gateways: Vec<Gateway>,
    pub etcd: EtcdCluster,
    pub bmc: IpmiSim,
    pub webhook: Webhook,
}

impl Trio {
    /// With these variables for whichever gateway comes first, which leads; waits until all three serve.
    pub async fn start(variables: &[(&str, &str)]) -> Result<Self> {
        let etcd = EtcdCluster::start(3).await?;
        let bmc = IpmiSim::builder().holds().start().await?;
        let webhook = Webhook::with_witness(bmc.truth()).await?;
        let mut gateways = Vec::new();
        for n in 0..3 {
            let fleet = Fleet::new()
                .with(&format!("[gateway]\nname = \"g{n}\""))
                .with(&format!(
                    "[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\n[election]\nlease = \"3s\"",
                    etcd.endpoints()
                ))
                .with("[rules]\ndwell = \"500ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"")
                .node("n1", &Bmc::at(bmc.address()).with("idle_limit = \"30s\""), &["detach"])
                .webhook("detach", &webhook.url(), "settle = \"0s\"");
            gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        let mut trio = Self { gateways, etcd, bmc, webhook };
        trio.gateways[0].begin(variables).await?;
        trio.gateways[0].checked().await?;
        trio.gateways[1].begin(&[]).await?;
        trio.gateways[2].begin(&[]).await?;
        assert_eq!(trio.leader().await?, 0);
        Ok(trio)
    }

    /// What a gateway says of all of them; `None`: it does not answer.
    pub async fn seen_by(&self, n: usize) -> Option<ListGatewaysResponse> {
        self.gateways[n].gateways().await
    }

    /// Who leads, as it says itself; waits until somebody does.
    pub async fn leader(&self) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for n in 0..self.gateways.len() {
                let Some(seen) = self.seen_by(n).await else { continue };
                let own = format!("g{n}");
                if seen.trouble.is_empty() && seen.gateways.iter().any(|one| one.leads && one.name == own) {
                    return Ok(n);
                }
            }
            if Instant::now() >= deadline {
                let seen = self.logs();
                return Err(PeerError::TimedOut {
                    what: "somebody leads".to_owned(),
                    within: PATIENCE,
                    seen,
                });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// `picket` to all of them.
    pub fn command(&self, arguments: &[&str]) -> Result<Child> {
        let endpoints: Vec<String> = self.gateways.iter().map(Gateway::endpoint).collect();
        let mut command = tokio::process::Command::new(program("picket")?);
        command.arg("--endpoint").arg(endpoints.join(",")).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().map_err(PeerError::io("run picket"))
    }

    /// Its end.
    pub async fn said(&self, running: Child) -> Result<Said> {
        let output = tokio::time::timeout(PATIENCE * 2, running.wait_with_output()).await;
        let Ok(output) = output else {
            let what = "picket comes to its end".to_owned();
            return Err(PeerError::TimedOut { what, within: PATIENCE * 2, seen: self.logs() });
        };
        let output = output.map_err(PeerError::io("wait for picket"))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Said {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        })
    }

    /// Fences the node, by the caller's key.
    pub fn fence(&self, key: &str) -> Result<Child> {
        self.command(&["fence", "n1", "--yes", "--reason", "a test", "--key", key])
    }

    /// How often the BMC was told so.
    pub fn told(&self, what: &str) -> usize {
        self.bmc.commands().iter().filter(|command| command.what == what).count()
    }

    /// The law, as the observer saw it: nothing was released while the node was on, and what is fenced is dark.
    pub fn never(&self, said: &Said) {
        let releases = self.webhook.releases();
        assert!(!releases.is_empty(), "{said:?}\n{}", self.logs());
        assert!(releases.iter().all(|one| one.on == Some(false)), "released while it was on: {releases:?}");
        assert_eq!(self.told("on"), 0, "nobody unfenced it");
        assert!(!self.bmc.is_on().expect("it says"), "{said:?}");
        assert!(!self.logs().contains("panicked"), "{}", self.logs());
    }

    pub fn logs(&self) -> String {
        let logs = self.gateways.iter().enumerate().map(|(n, one)| format!("--- g{n}\n{}", one.log()));
        logs.collect::<Vec<_>>().join("\n")
    }
}
