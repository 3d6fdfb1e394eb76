//! Three gateways over one etcd and one node, of which a fence is under way for as long as the run lasts.

use std::time::{Duration, Instant};

use picket_proto::v1::{FenceRequest, NodeSelector, node_selector};
use picket_tests::peers::{EtcdCluster, IpmiSim, Knob, OPERATOR, UdpFault};
use tokio::time::sleep;

use crate::Wrong;
use crate::daemon::{Daemon, PASSWORD_VARIABLE};

const PATIENCE: Duration = Duration::from_secs(60);
/// How often is looked whether something is as it must be.
const LOOK: Duration = Duration::from_millis(10);

/// The scene. Gateways are called `g0`, `g1` and `g2`.
pub struct Trio {
    /// First, so that they end first.
    pub gateways: Vec<Daemon>,
    pub etcd: EtcdCluster,
    bmc: IpmiSim,
    relay: UdpFault,
}

impl Trio {
    /// Everything runs, and the fence of a node has begun whose BMC takes the off and does nothing.
    pub async fn start(seed: u64) -> Result<Self, Wrong> {
        let etcd = EtcdCluster::durable(3).await?;
        let bmc = IpmiSim::builder().holds().start().await?;
        bmc.set(Knob::IgnoreOff)?;
        let relay = UdpFault::start(bmc.address(), seed).await?;
        let (host, port) = (relay.address().ip(), relay.address().port());
        let settings = format!(
            "[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\n\
             [rules]\nlevel_share = \"1h\"\nfence_deadline = \"1d\"\n[nodes.n1.devices.bmc]\ndriver = \"ipmi\"\n\
             host = \"{host}\"\nport = {port}\nusername = {OPERATOR:?}\npassword_env = {PASSWORD_VARIABLE:?}\n\
             cipher_suites = [17, 3]\nidle_limit = \"30s\"\n",
            etcd.endpoints()
        );
        let mut gateways = Vec::new();
        for n in 0..3 {
            let mut gateway = Daemon::new(&format!("g{n}"), &settings)?;
            gateway.start().await?;
            gateways.push(gateway);
        }
        let trio = Self { gateways, etcd, bmc, relay };
        let by = node_selector::By::Name("n1".to_owned());
        let request = FenceRequest {
            node: Some(NodeSelector { by: Some(by) }),
            reason: "a bench".to_owned(),
            ..FenceRequest::default()
        };
        let leader = trio.leader().await?;
        let mut stream = trio.gateways[leader].client().await?.fence(request).await?.into_inner();
        stream.message().await?.ok_or("the fence ended before it began")?;
        trio.off_after(0).await?;
        Ok(trio)
    }

    /// How often the BMC was told off.
    pub fn offs(&self) -> usize {
        self.bmc.commands().iter().filter(|command| command.what == "off").count()
    }

    /// Waits until the BMC was told off more often than that; when.
    pub async fn off_after(&self, offs: usize) -> Result<Instant, Wrong> {
        self.until("an off is sent", async || (self.offs() > offs).then(Instant::now)).await
    }

    /// How many sessions were opened so far.
    pub fn sessions(&self) -> usize {
        self.relay.clients().len()
    }

    /// When somebody first spoke to the BMC who had not, after so many others; waits until somebody does.
    pub async fn next_word(&self, sessions: usize) -> Result<Instant, Wrong> {
        let next = async || self.relay.clients().get(sessions).map(|(_, at)| *at);
        self.until("the next leader speaks to the BMC", next).await
    }

    /// Who leads, as it says itself; waits until somebody does.
    pub async fn leader(&self) -> Result<usize, Wrong> {
        let leads = async || {
            for (n, gateway) in self.gateways.iter().enumerate() {
                let Some(seen) = gateway.sees().await else { continue };
                if seen.trouble.is_empty()
                    && seen.gateways.iter().any(|one| one.leads && one.name == gateway.name)
                {
                    return Some(n);
                }
            }
            None
        };
        self.until("a gateway leads", leads).await
    }

    /// Waits until each of them sees the same leader, and the two others stand by.
    pub async fn stand_by(&self) -> Result<(), Wrong> {
        let stand = async || {
            for gateway in &self.gateways {
                let seen = gateway.sees().await?;
                let stands = seen.gateways.iter().filter(|one| one.aside.is_empty()).count();
                if seen.term == 0 || !seen.trouble.is_empty() || stands < self.gateways.len() {
                    return None;
                }
            }
            Some(())
        };
        self.until("all gateways stand by", stand).await
    }

    async fn until<T>(&self, what: &str, mut seen: impl AsyncFnMut() -> Option<T>) -> Result<T, Wrong> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = seen().await {
                return Ok(found);
            }
            if Instant::now() > deadline {
                let logs = self.gateways.iter().map(|one| format!("--- {}\n{}", one.name, one.log()));
                let logs = logs.collect::<Vec<_>>().join("\n");
                return Err(format!("not within {PATIENCE:?}: {what}\n{logs}").into());
            }
            sleep(LOOK).await;
        }
    }
}
