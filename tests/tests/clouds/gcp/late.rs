//! S8, with a whole gateway that stands still between its permit and its packet, and another one that goes on meanwhile: what the first
//! sends when it goes on comes to nothing, as its token is over.

use picket_tests::peers::{EtcdCluster, GceDisk, GceInstance, GceMake, GceRequest};
use picket_tests::{Daemon, Gateway, Gateways, Result, one_of_several};
use serde_json::json;

use crate::gcp::scene::{Plan, by_hand, compute, picket, private};
use crate::scene::soon;

/// So many seconds a token lives here: it is over long before the other one may go on.
const LIFE: u64 = 15;

/// Two gateways over one etcd, and one node, which is an instance. `g0` leads, and stops at that point.
struct Pair {
    /// First, so that they end first.
    gateways: Gateways,
    _etcd: EtcdCluster,
    instance: GceInstance,
}

impl Pair {
    async fn stopping_at(point: &str) -> Result<Self> {
        let (etcd, compute) = (EtcdCluster::start(1).await?, compute().await?);
        let instance = compute.instance(&["data"]).await?;
        let key = compute.short_lived_file(&picket().await?, LIFE)?;
        private(&key)?;
        let mut gateways = Vec::new();
        for n in 0..2 {
            // A call that outlasts the stop of its process: what is sent after that is the cloud's to refuse, and not the call's end.
            let plan = Plan::new().device("call = \"120s\"\n");
            let fleet = plan.fleet(compute, &key, &instance).with(&one_of_several(n, &etcd, "3s"));
            gateways.push(Gateway::of(Daemon::Hooked, &fleet)?);
        }
        let gateways = Gateways::stopping_at(gateways, point).await?;
        Ok(Self { gateways, _etcd: etcd, instance })
    }

    async fn is(&self, state: &str) -> Result<()> {
        assert_eq!(compute().await?.state(&self.instance.id).await?, state, "{}", self.gateways.logs());
        Ok(())
    }

    /// What was asked for by that method and was refused as its token was over; the others.
    async fn heard(&self, method: &str) -> Result<(Vec<GceRequest>, Vec<GceRequest>)> {
        let all = compute().await?.asked_to(method, &self.instance.id).await?;
        Ok(all.into_iter().partition(|one| one.status == 401))
    }

    /// Lets the first one go on: what it was about to send comes, once, and is refused, with a token that is over.
    async fn goes_on_in_vain(&mut self, method: &str) -> Result<()> {
        let (late, before) = self.heard(method).await?;
        assert!(late.is_empty(), "{late:#?}");
        self.gateways[0].process()?.thaw();
        let comes = async || Ok(!self.heard(method).await?.0.is_empty());
        self.gateways.until("what it was about to send comes", comes).await?;
        self.gateways.until_succeeded().await?;
        let (late, after) = self.heard(method).await?;
        assert_eq!(
            (late.len(), after.len()),
            (1, before.len()),
            "{late:#?} {after:#?}\n{}",
            self.gateways.logs()
        );
        let age = late[0].token.as_ref().map(|token| token.age);
        assert!(age.is_some_and(|age| age > LIFE as f64), "{late:#?}");
        assert_eq!(late[0].reason.as_deref(), Some("authError"), "{late:#?}");
        Ok(())
    }
}

const FENCE: [&str; 5] = ["fence", "n1", "--yes", "--reason", "a test"];
const UNFENCE: [&str; 4] = ["unfence", "n1", "--reason", "a test"];

/// The successor waits until what may be on its way is surely over, brings the node back, and fences it anew: then the start comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    // The second time for a command: its connection stands.
    let mut pair = Pair::stopping_at("permitted on#2").await?;
    pair.gateways.does(&FENCE).await?;
    let unfenced = pair.gateways.said(&UNFENCE).await?;
    pair.gateways.until_stopped().await?;
    if unfenced.code != 0 {
        pair.gateways.does(&UNFENCE).await?;
    }
    pair.is("RUNNING").await?;
    let (late, starts) = pair.heard("instances.start").await?;
    assert_eq!((late.len(), starts.len()), (0, 1), "the successor's own alone\n{}", pair.gateways.logs());
    pair.gateways.does(&FENCE).await?;
    pair.goes_on_in_vain("instances.start").await?;
    pair.is("TERMINATED").await?;
    let events = compute().await?.events(&pair.instance.id).await?;
    assert_eq!(events.iter().filter(|event| event.what == "on").count(), 1, "{events:#?}");
    pair.gateways.does(&UNFENCE).await
}

/// The successor lets the disk go itself, and brings the node back once what may be on its way is surely over. By then the disk is
/// another machine's, and another disk is at its device: neither is pulled from its owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_detach_of_a_gateway_that_stood_still_is_refused() -> Result<()> {
    let compute = compute().await?;
    // Where the permit is made, before it is looked whether the disk is there, before it is sent, and when its connection stands.
    let mut pair = Pair::stopping_at("permitted release#4").await?;
    pair.gateways.does(&FENCE).await?;
    pair.gateways.until_stopped().await?;
    let (late, detaches) = pair.heard("instances.detachDisk").await?;
    assert_eq!((late.len(), detaches.len()), (0, 1), "the successor's own alone\n{}", pair.gateways.logs());
    pair.gateways.does(&UNFENCE).await?;
    pair.is("RUNNING").await?;

    let disk = pair.instance.disks["data"].clone();
    let heir = GceMake { disks: vec![GceDisk::new("data").of(&disk)], ..GceMake::default() };
    let heir = compute.make(&heir).await?;
    let spare = compute.instance(&["spare"]).await?;
    compute.switch(&spare.id, "TERMINATED").await?;
    assert_eq!(by_hand(&spare, "detachDisk?deviceName=spare", None).await?, 200);
    let other = spare.disks["spare"].clone();
    soon("it is free", async || Ok(compute.disk(&other).await?.users.is_empty())).await?;
    let source = format!("projects/{}/zones/{}/disks/{other}", compute.project(), spare.zone);
    let at = json!({ "source": source, "deviceName": "data" });
    assert_eq!(by_hand(&pair.instance, "attachDisk", Some(&at)).await?, 200);
    let has = async || Ok(compute.disk(&other).await?.users.contains_key(&pair.instance.id));
    soon("it is attached", has).await?;

    pair.goes_on_in_vain("instances.detachDisk").await?;
    let (disk, other) = (compute.disk(&disk).await?, compute.disk(&other).await?);
    assert!(disk.users.contains_key(&heir.id) && disk.users.len() == 1, "{disk:?}");
    assert!(other.users.contains_key(&pair.instance.id) && other.users.len() == 1, "{other:?}");
    Ok(())
}
