//! Three gateways over one etcd and one node behind its BMC.

use std::net::SocketAddr;
use std::time::Duration;

use picket_proto::v1::ListGatewaysResponse;
use picket_tests::peers::{EtcdCluster, IpmiSim, fresh_address};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Gateways, Result, Said, Webhook, one_of_several};
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
    pub gateways: Gateways,
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
        let mut trio = Self { gateways: Gateways::default(), etcd, bmc, webhook, metrics };
        let gateway = |n| Gateway::of(Daemon::Hooked, &trio.fleet(n, lease, rules));
        let gateways = (0..3).map(gateway).collect::<Result<_>>()?;
        trio.gateways = Gateways::start(gateways, variables, &[]).await?;
        Ok(trio)
    }

    /// The settings of one.
    pub fn fleet(&self, n: usize, lease: &str, rules: &str) -> Fleet {
        Fleet::new()
            .with(&one_of_several(n, &self.etcd, lease))
            .with(&format!("[metrics]\nlisten = \"{}\"", self.metrics[n]))
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

    /// Fences the node, by the caller's key.
    pub fn fence(&self, key: &str) -> Result<Child> {
        self.gateways.asking(&["fence", "n1", "--yes", "--reason", "a test", "--key", key])
    }

    /// What came of a fence, asked again with its key for as long as nobody leads: where the leader's member of etcd is gone, or that was their own
    /// leader, a leadership may end under the asking.
    pub async fn fenced(&self, key: &str) -> Result<Said> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.gateways.leader().await?;
            let said = self.gateways.end(self.fence(key)?).await?;
            if said.code != 5 || Instant::now() >= deadline {
                return Ok(said);
            }
        }
    }

    /// The end of a fence that was asked for by that key; asked for again where nobody led for longer than whoever asks waits.
    pub async fn ended(&self, asked: Child, key: &str) -> Result<Said> {
        let said = self.gateways.end(asked).await?;
        if said.code == 5 { self.fenced(key).await } else { Ok(said) }
    }

    /// How often the BMC was told so.
    pub fn told(&self, what: &str) -> usize {
        self.bmc.commands().iter().filter(|command| command.what == what).count()
    }

    /// The law, as the observer saw it: nothing was released while the node was on, and what is fenced is dark.
    pub fn never(&self, said: &Said) {
        let releases = self.webhook.releases();
        assert!(!releases.is_empty(), "{said:?}\n{}", self.gateways.logs());
        assert!(releases.iter().all(|one| one.on == Some(false)), "released while it was on: {releases:?}");
        assert_eq!(self.told("on"), 0, "nobody unfenced it");
        assert!(!self.bmc.is_on().expect("it says"), "{said:?}");
        assert!(!self.gateways.logs().contains("panicked"), "{}", self.gateways.logs());
    }
}
