//! Three gateways over one etcd and one node behind its BMC.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use picket_proto::v1::ListGatewaysResponse;
use picket_tests::peers::{EtcdCluster, IpmiSim, fresh_address};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, PeerError, Result, Said, Webhook, program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::{Instant, sleep};

/// The longest that is waited for anything.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// The rules, quick.
pub const RULES: &str = "[rules]\ndwell = \"500ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"";

/// The scene. Gateways are called `g0`, `g1` and `g2`.
pub struct Trio {
    /// First, so that they end first.
    pub gateways: Vec<Gateway>,
    pub etcd: EtcdCluster,
    pub bmc: IpmiSim,
    pub webhook: Webhook,
    /// Where each tells its metrics.
    metrics: Vec<SocketAddr>,
}

impl Trio {
    /// With these variables for whichever gateway comes first, which leads; waits until all three serve.
    pub async fn start(variables: &[(&str, &str)]) -> Result<Self> {
        Self::with_lease("3s", variables).await
    }

    /// The same, with this lease.
    pub async fn with_lease(lease: &str, variables: &[(&str, &str)]) -> Result<Self> {
        Self::with_rules(lease, RULES, variables).await
    }

    /// The same, with further settings instead of [`RULES`].
    pub async fn with_rules(lease: &str, rules: &str, variables: &[(&str, &str)]) -> Result<Self> {
        let etcd = EtcdCluster::start(3).await?;
        let bmc = IpmiSim::builder().holds().start().await?;
        let webhook = Webhook::with_witness(bmc.truth()).await?;
        let metrics = vec![fresh_address(), fresh_address(), fresh_address()];
        let mut trio = Self { gateways: Vec::new(), etcd, bmc, webhook, metrics };
        for n in 0..3 {
            let fleet = trio.fleet(n, lease, rules);
            trio.gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        trio.gateways[0].begin(variables).await?;
        trio.gateways[0].checked().await?;
        trio.gateways[1].begin(&[]).await?;
        trio.gateways[2].begin(&[]).await?;
        assert_eq!(trio.leader().await?, 0);
        Ok(trio)
    }

    /// The settings of one.
    pub fn fleet(&self, n: usize, lease: &str, rules: &str) -> Fleet {
        let endpoints = self.etcd.endpoints();
        Fleet::new()
            .with(&format!("[gateway]\nname = \"g{n}\"\n[metrics]\nlisten = \"{}\"", self.metrics[n]))
            .with(&format!(
                "[store]\nkind = \"etcd\"\nendpoints = {endpoints:?}\nallow_anonymous = true\n[election]\nlease = {lease:?}"
            ))
            .with(rules)
            .node("n1", &Bmc::simulated(self.bmc.address()), &["detach"])
            .webhook("detach", &self.webhook.url(), "settle = \"0s\"")
    }

    /// The metrics of one, as text.
    pub async fn metrics(&self, n: usize) -> String {
        let mut stream = TcpStream::connect(self.metrics[n]).await.expect("it tells metrics");
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        answer
    }

    /// One sample of them, by its name with its labels; `None`: it is not told.
    pub async fn metric(&self, n: usize, sample: &str) -> Option<f64> {
        let text = self.metrics(n).await;
        let value = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
        Some(value.trim().parse().expect("a number"))
    }

    /// Waits until a sample is as it should be.
    pub async fn measures(&self, n: usize, sample: &str, is: impl Fn(f64) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.metric(n, sample).await;
            if seen.is_some_and(&is) {
                return;
            }
            assert!(Instant::now() < deadline, "{sample} is {seen:?}\n{}", self.metrics(n).await);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Freezes two members of etcd, or lets them go on.
    pub fn quorum(&mut self, there: bool) {
        for n in [1, 2] {
            let process = self.etcd.member(n).process();
            if there { process.thaw() } else { process.freeze() }
        }
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
        Ok(Said::of(output))
    }

    /// Fences the node, by the caller's key.
    pub fn fence(&self, key: &str) -> Result<Child> {
        self.command(&["fence", "n1", "--yes", "--reason", "a test", "--key", key])
    }

    /// What came of a fence, asked again with its key for as long as nobody leads: where the leader's member of etcd is gone, or that was their own
    /// leader, a leadership may end under the asking.
    pub async fn fenced(&self, key: &str) -> Result<Said> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.leader().await?;
            let said = self.said(self.fence(key)?).await?;
            if said.code != 5 || Instant::now() >= deadline {
                return Ok(said);
            }
        }
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
