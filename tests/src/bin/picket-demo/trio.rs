//! What the story of several gateways happens on: two machines behind BMCs, three members of etcd, three gateways.

use std::time::Duration;

use picket_proto::v1::ListGatewaysRequest;
use picket_tests::peers::EtcdCluster;
use picket_tests::{Bmc, Fleet, Gateway, PeerError, Result, Webhook};
use tokio::time::{Instant, sleep};

use crate::stage::Host;

/// The longest that somebody is waited for to lead: a lease, and time to spare for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Everything, running. Gateways are called `g1`, `g2` and `g3`.
#[derive(Debug)]
pub struct Trio {
    /// The gateways. First, so that they end first.
    pub gateways: Vec<Gateway>,
    /// The store, and where is elected; it lives as long as they do.
    _etcd: EtcdCluster,
    /// Who lets volumes go; with each request it looks whether n1 is on.
    pub webhook: Webhook,
    /// The machines.
    pub hosts: [Host; 2],
}

/// A gateway's name.
pub fn name(index: usize) -> String {
    format!("g{}", index + 1)
}

impl Trio {
    /// Three gateways over these machines, ready.
    pub async fn build(hosts: [Host; 2]) -> Result<Self> {
        let etcd = EtcdCluster::durable(3).await?;
        let webhook = Webhook::with_witness(hosts[0].machine.truth()).await?;
        let mut gateways = Vec::new();
        for index in 0..3 {
            let own = format!(
                "[gateway]\nname = {:?}\n\n[store]\nkind = \"etcd\"\nendpoints = {:?}\nallow_anonymous = true\n",
                name(index),
                etcd.endpoints()
            );
            let fleet = hosts.iter().fold(Fleet::new().with(&own), |fleet, host| {
                // So soon this BMC ends silent sessions. What the dead leader may have sent is waited out before the on.
                let bmc = Bmc::simulated(host.bmc.address());
                fleet.node(host.name, &bmc, &["detach"])
            });
            gateways.push(Gateway::new(&fleet.webhook("detach", &webhook.url(), ""))?);
        }
        let mut trio = Self { gateways, _etcd: etcd, webhook, hosts };
        for gateway in &mut trio.gateways {
            gateway.begin(&[]).await?;
        }
        let leader = trio.leader().await?;
        trio.gateways[leader].checked().await?;
        Ok(trio)
    }

    /// All of them, as the command line wants it.
    pub fn endpoints(&self) -> String {
        self.gateways.iter().map(Gateway::endpoint).collect::<Vec<_>>().join(",")
    }

    /// Who leads, as it says itself; waits until somebody does.
    pub async fn leader(&self) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for (index, gateway) in self.gateways.iter().enumerate() {
                if leads(gateway, &name(index)).await == Some(true) {
                    return Ok(index);
                }
            }
            if Instant::now() >= deadline {
                let seen = self.gateways.iter().map(Gateway::log).collect();
                let what = "a gateway leads".to_owned();
                return Err(PeerError::TimedOut { what, within: PATIENCE, seen });
            }
            sleep(LOOK).await;
        }
    }
}

/// Whether it says that it leads; `None`: it says nothing.
async fn leads(gateway: &Gateway, name: &str) -> Option<bool> {
    let ask = async {
        let answer = gateway.client().await.ok()?.list_gateways(ListGatewaysRequest {}).await.ok()?;
        let seen = answer.into_inner();
        Some(seen.trouble.is_empty() && seen.gateways.iter().any(|one| one.leads && one.name == name))
    };
    tokio::time::timeout(Duration::from_secs(2), ask).await.ok()?
}
