//! S8, with a whole gateway that stands still with a permit, or with a request on its way, and another one that goes on meanwhile: what the
//! first had begun comes to nothing once the node is back.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use picket_tests::peers::{EtcdCluster, Kubernetes, KubernetesMachine, fresh_address, until};
use picket_tests::{Daemon, Gateway, Gateways, Result, one_of_several};

use crate::cluster::door::{Asked, Door};
use crate::cluster::fenced::{
    fence, is_clean, is_told, login, made_anew, no_more, pods, settings, until_clean, until_they_run,
};
use crate::cluster::replaced::{is_made_anew, needs_a_person};
use crate::cluster::scene::{Lent, OUT_OF_SERVICE, cluster, lend, no_more_of};

/// The longest that is waited for anything.
const PATIENCE: Duration = Duration::from_secs(300);
const PODS: u32 = 3;

/// Two gateways over one etcd, which ask the API server by one door, and one node with some pods. `g0` leads.
struct Pair {
    /// First, so that they end first.
    gateways: Gateways,
    _etcd: EtcdCluster,
    door: Door,
    cluster: &'static Kubernetes,
    lent: Lent,
    machine: &'static KubernetesMachine,
    set: &'static str,
    pods: BTreeSet<String>,
}

impl Pair {
    async fn start(set: &'static str, variables: &[(&str, &str)]) -> Result<Self> {
        let (cluster, lent) = (cluster().await?, lend(1).await?);
        let machine = lent.one();
        cluster.idle_pods(set, PODS, machine).await?;
        let pods = pods(cluster, set).await?;
        let IpAddr::V4(address) = fresh_address().ip() else { unreachable!("it is one of loopback") };
        let etcd = EtcdCluster::within(&[&cluster.place().by(address)]).await?;
        let door = Door::before(cluster, &login(cluster).await?).await?;
        let mut gateways = Vec::new();
        for n in 0..2 {
            let store = |_: &str, _: &str| one_of_several(n, &etcd, "3s");
            let nodes = [(machine.name(), machine, "pods")];
            let fleet = settings(cluster, door.login(), &nodes, &store).await?;
            gateways.push(Gateway::within(cluster.place(), Daemon::Hooked, &fleet)?);
        }
        // With one thread alone: with more of them it may know that it leads no more before it does what it was about to.
        let alone = [("TOKIO_WORKER_THREADS", "1")];
        let gateways = Gateways::start(gateways, &[variables, &alone].concat(), &[]).await?;
        Ok(Self { gateways, _etcd: etcd, door, cluster, lent, machine, set, pods })
    }

    fn node(&self) -> &'static str {
        self.machine.name()
    }

    /// Lets `picket` do that at both, to its end; while nobody leads it is asked for again.
    fn does(&self, verb: &str) -> impl Future<Output = Result<()>> + use<> {
        self.gateways.does(&[verb, self.node(), "--yes", "--reason", "a test"])
    }

    /// The successor has let everything go, and brings the node back: it has its pods again, which are other ones, and nothing of ours.
    async fn comes_back(&mut self) -> Result<()> {
        assert!(!self.machine.runs());
        self.pods = made_anew(self.cluster, self.set, &self.pods).await?;
        self.does("unfence").await?;
        self.cluster.until_ready(self.machine, true).await?;
        until_they_run(self.cluster, self.set, self.pods.len()).await?;
        until_clean(self.cluster, self.machine).await
    }

    /// What is recorded of its fences.
    async fn history(&self) -> Result<String> {
        let said = self.gateways[1].picket(&["--output", "json", "history", self.node()]).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.gateways.logs());
        Ok(said.out)
    }

    /// Lets the first one go on: it finds that it does not lead, and changes nothing, neither there nor in the record. What it was about to
    /// send in the moment in which it stopped (a connection was being made for it) the API server refuses; how much that was.
    async fn goes_on_in_vain(mut self) -> Result<usize> {
        let (recorded, changes) = (self.history().await?, self.door.changes().len());
        self.gateways[0].process()?.thaw();
        self.gateways.until_succeeded().await?;
        let late = || self.door.changes().split_off(changes);
        let all = async || Ok(late().iter().all(|one| one.status.is_some()));
        until("what it sent late is answered", PATIENCE, all).await?;
        for one in late() {
            assert!(matches!(one.status, Some(404 | 409 | 422)), "{one:#?}\n{}", self.gateways.logs());
        }
        self.is_untouched().await?;
        self.door.all_end();
        assert_eq!(self.history().await?, recorded);
        no_more_of(self.cluster, self.set).await?;
        let late = late().len();
        self.lent.leave().await?;
        Ok(late)
    }

    /// The node that is back, and what is on it, is as it was.
    async fn is_untouched(&self) -> Result<()> {
        let node = self.cluster.node(self.machine).await?;
        assert!(is_clean(&node), "{node:#}\n{}", self.gateways.logs());
        assert_eq!(pods(self.cluster, self.set).await?, self.pods, "{}", self.gateways.logs());
        assert!(self.machine.runs());
        Ok(())
    }

    /// What was on its way arrives, and the API server refuses it.
    async fn arrives_in_vain(&self) -> Result<()> {
        for one in self.door.let_go().await? {
            assert!(matches!(one.status, Some(409 | 422)), "{one:#?}\n{}", self.gateways.logs());
        }
        self.is_untouched().await
    }
}

/// It had the permit, and had sent nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_stood_still_before_it_set_its_taint_sets_none() -> Result<()> {
    // The first attempt deletes pods, the second one sets the taint.
    let mut pair = Pair::start("late-permit", &[("PICKET_STOP_AT", "permitted release#2")]).await?;
    pair.does("fence").await?;
    pair.gateways.until_stopped().await?;
    pair.comes_back().await?;
    assert_eq!(pair.goes_on_in_vain().await?, 0, "it asks again before it sends anything");
    Ok(())
}

/// Its leader stands still once so many of its requests are on their way. The other one brings the node back; then they arrive, and it goes on.
async fn stands_still_with(mut pair: Pair, requests: usize) -> Result<()> {
    let fencing = pair.does("fence");
    let standing = async {
        pair.door.until_held(requests).await?;
        pair.gateways[0].process()?.freeze();
        Ok(())
    };
    tokio::try_join!(fencing, standing)?;
    pair.comes_back().await?;
    pair.arrives_in_vain().await?;
    pair.goes_on_in_vain().await.map(drop)
}

/// It had sent the taint, and that was on its way for as long as all of this took.
#[tokio::test(flavor = "multi_thread")]
async fn a_taint_that_was_on_its_way_is_refused_once_the_node_is_back() -> Result<()> {
    let pair = Pair::start("late-taint", &[]).await?;
    pair.door.hold(1, sets_the_taint);
    stands_still_with(pair, 1).await
}

fn sets_the_taint(asked: &Asked) -> bool {
    let is_of_node = asked.method == "PATCH" && asked.path.starts_with("/api/v1/nodes/");
    is_of_node && asked.body.contains(OUT_OF_SERVICE)
}

/// It was on its way while somebody deleted the Node by force and made it anew, for the same machine: the API server refuses it by the UID. Nothing of
/// ours comes to the new one, and a person is asked.
#[tokio::test]
async fn a_taint_that_was_on_its_way_to_a_node_that_was_made_anew_is_refused() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(1).await?);
    let machine = lent.one();
    let info = cluster.node(machine).await?["status"]["nodeInfo"].clone();
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let nodes = [(machine.name(), machine, "pods")];
    let fleet = settings(cluster, door.login(), &nodes, &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    door.hold(1, sets_the_taint);
    fence(&gateway, machine.name(), "confirmed").await?;
    door.until_held(1).await?;
    // In one step, as the gateway sees it.
    gateway.process()?.freeze();
    is_made_anew(cluster, machine, &info).await?;
    for one in door.let_go().await? {
        assert!(matches!(one.status, Some(409 | 422)), "{one:#?}\n{}", gateway.log());
    }
    let node = cluster.node(machine).await?;
    assert!(is_clean(&node), "{node:#}\n{}", gateway.log());
    gateway.process()?.thaw();
    is_told(&gateway, machine.name(), "replaced: the UID").await?;
    needs_a_person(&gateway, machine).await?;
    until_clean(cluster, machine).await?;
    let set = door.changes().into_iter().filter(|one| sets_the_taint(one) && one.status == Some(200));
    assert_eq!(set.count(), 0, "{}", gateway.log());
    door.all_end();

    gateway.stop().await?;
    machine.force(true).await?;
    cluster.until_ready(machine, true).await?;
    lent.leave().await?;
    Ok(())
}

/// The same of what it had sent to its pods, of which others have the names by then.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_on_its_way_to_pods_is_refused_once_others_have_their_names() -> Result<()> {
    let pair = Pair::start("late-pods", &[]).await?;
    let is = |asked: &Asked, method: &str, end: &str| {
        let path = asked.path.split('?').next().unwrap_or_default();
        asked.method == method && path.ends_with(end)
    };
    pair.door.hold(2, move |asked| {
        is(asked, "PATCH", "/late-pods-0/status") || is(asked, "DELETE", "/late-pods-1")
    });
    stands_still_with(pair, 2).await
}
