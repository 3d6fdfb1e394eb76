//! First by its name, as it takes longest.
//!
//! S8, with a whole gateway that stands still between its permit and its packet, and another one that goes on meanwhile: what the first
//! sends when it goes on comes to nothing, as its token is over.

use std::time::SystemTime;

use picket_tests::peers::{EtcdCluster, OPENSTACK_HOSTS, OpenStack, Request, Who};
use picket_tests::{Daemon, Gateway, Gateways, PeerError, Result, one_of_several};
use serde_json::json;
use tempfile::TempDir;

use crate::openstack::driven::Plan;
use crate::openstack::late::short_lived;

const FENCE: [&str; 5] = ["fence", "n1", "--yes", "--reason", "a test"];
const UNFENCE: [&str; 4] = ["unfence", "n1", "--reason", "a test"];

/// Two gateways over one etcd, and one node, which is a server with a volume. `g0` leads, and stops at that point.
struct Pair {
    /// First, so that they end first.
    gateways: Gateways,
    _etcd: EtcdCluster,
    _home: TempDir,
    cloud: &'static OpenStack,
    server: String,
    volume: String,
}

impl Pair {
    async fn stopping_at(point: &str, name: &str) -> Result<Self> {
        let (etcd, cloud) = (EtcdCluster::start(1).await?, short_lived().await?);
        let home = tempfile::tempdir().map_err(PeerError::io("create a folder"))?;
        let (server, volume) = (cloud.server(name, OPENSTACK_HOSTS[1]).await?, cloud.volume(name).await?);
        cloud.attach(&server, &volume).await?;
        // A call that outlasts the stop of its process: what is sent after that is the cloud's to refuse, and not the call's end.
        let fleet =
            Plan::over(&Who::Tenant, &[&server]).device("call = \"300s\"").fleet(cloud, home.path())?;
        let mut gateways = Vec::new();
        for n in 0..2 {
            let fleet = fleet.clone().with(&one_of_several(n, &etcd, "3s"));
            gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        let gateways = Gateways::stopping_at(gateways, point).await?;
        Ok(Self { gateways, _etcd: etcd, _home: home, cloud, server, volume })
    }

    fn runs(&self) -> Result<bool> {
        Ok(!self.cloud.runs_on(&self.server)?.is_empty())
    }

    /// What was asked of Nova by that method, with that in its path and its body, since then.
    fn heard(&self, method: &str, body: &str, since: SystemTime) -> Result<Vec<Request>> {
        let is_it = |one: &Request| {
            one.agent.starts_with("picket/")
                && one.method == method
                && one.path.contains(&self.server)
                && one.body.to_string().contains(body)
                && one.at >= since
        };
        Ok(self.cloud.requests()?.into_iter().filter(is_it).collect())
    }

    /// Lets the first one go on: what it was about to send comes, once, and is refused, with a token that is over.
    async fn goes_on_in_vain(&mut self, method: &str, body: &str) -> Result<()> {
        let since = SystemTime::now();
        self.gateways[0].process()?.thaw();
        let comes = async || Ok(!self.heard(method, body, since)?.is_empty());
        self.gateways.until("what it was about to send comes", comes).await?;
        self.gateways.until_succeeded().await?;
        let late = self.heard(method, body, since)?;
        let told: Vec<_> = late.iter().map(|one| one.answer.as_ref().map(|answer| answer.status)).collect();
        assert_eq!(told, [Some(401)], "{late:#?}\n{}", self.gateways.logs());
        Ok(())
    }
}

/// The successor waits until what may be on its way is surely over, brings the node back, and fences it anew: then the start comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    // Before its server is looked at, before it is sent, and when its connection stands.
    let mut pair = Pair::stopping_at("permitted on#3", "a-late-start").await?;
    pair.gateways.does(&FENCE).await?;
    let unfenced = pair.gateways.said(&UNFENCE).await?;
    pair.gateways.until_stopped().await?;
    if unfenced.code != 0 {
        pair.gateways.does(&UNFENCE).await?;
    }
    assert!(pair.runs()?, "{}", pair.gateways.logs());
    assert_eq!(pair.heard("POST", "os-start", SystemTime::UNIX_EPOCH)?.len(), 1, "the successor's own alone");
    pair.gateways.does(&FENCE).await?;
    pair.goes_on_in_vain("POST", "os-start").await?;
    assert!(!pair.runs()?, "{}", pair.gateways.logs());
    let effects = pair.cloud.effects(&pair.server)?;
    assert_eq!(effects.iter().filter(|one| one.did == "power_on").count(), 1, "{effects:#?}");
    pair.gateways.does(&UNFENCE).await
}

/// The successor lets the volume go itself, and brings the node back once what may be on its way is surely over. By then it is attached
/// there again, under the same name at the same server: the very request that stands before its packet would take it away.
#[tokio::test(flavor = "multi_thread")]
async fn a_detach_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    // Where the permit is made, before it is looked whether its host takes it, before it is sent, and when its connection stands.
    let mut pair = Pair::stopping_at("permitted release#4", "a-late-detach").await?;
    pair.gateways.does(&FENCE).await?;
    pair.gateways.until_stopped().await?;
    pair.cloud.until_volume(&pair.volume, "available").await?;
    assert_eq!(pair.heard("DELETE", "", SystemTime::UNIX_EPOCH)?.len(), 1, "the successor's own alone");
    pair.gateways.does(&UNFENCE).await?;
    assert!(pair.runs()?, "{}", pair.gateways.logs());
    pair.cloud.attach(&pair.server, &pair.volume).await?;
    pair.goes_on_in_vain("DELETE", "").await?;
    pair.cloud.until_volume(&pair.volume, "in-use").await?;
    let seen = pair.cloud.ask(&Who::Tenant, "volume", json!({ "volume": pair.volume })).await?;
    assert_eq!(seen["attachments"][0]["server_id"], json!(pair.server), "{seen}");
    Ok(())
}
