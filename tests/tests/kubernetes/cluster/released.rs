//! What is in the way of a release: a Node that is deleted, somebody else's taint, another machine, another cluster.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;

use crate::cluster::fenced::{
    FENCED, RECOVERED, is_clean, is_told, no_more, power, start, taints, until_clean, until_out_of_service,
};
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, for_everybody, lend, no_more_of, sleeping};

/// The whole machine hangs, and somebody deletes its Node while what detaches sleeps: the Node stays until its volume is free, so that
/// nobody lets it go but us; then it goes.
#[tokio::test]
async fn a_node_that_is_deleted_in_the_middle_stays_until_its_volume_is_free() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let [one, other] = lent.two();
    let database = cluster.database("deleted", &[one, other]).await?;
    let on = database.node().await?.expect("it runs");
    let (here, there) = if one.name() == on { (one, other) } else { (other, one) };
    database.runs_on(here.name()).await?;
    let frozen = here.freeze();
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    let gateway = start(cluster, &[(here.name(), here, "pods")], &no_more).await?;

    let asleep = sleeping(cluster).await;
    let fenced = gateway
        .picket(&["fence", here.name(), "--until", "confirmed", "--yes", "--reason", "it hangs"])
        .await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    until_out_of_service(cluster, here, true).await?;
    is_told(&gateway, here.name(), "left: ").await?;
    cluster.kubectl(&["delete", "node", here.name(), "--wait=false"]).await?;
    let node = cluster.node(here).await.expect("it is kept");
    assert!(node["metadata"]["deletionTimestamp"].is_string(), "{node:#}");
    assert_eq!(node["metadata"]["finalizers"], serde_json::json!(["picket.dev/fencing-picket"]));
    drop(asleep);
    database.runs_on(there.name()).await?;
    let is_there = async || {
        let nodes = cluster.json(&["get", "nodes"]).await?;
        let mut all = nodes["items"].as_array().into_iter().flatten();
        Ok(all.any(|node| node["metadata"]["name"] == here.name()))
    };
    until("the Node is gone", Duration::from_secs(60), async || is_there().await.map(|there: bool| !there))
        .await?;
    is_told(&gateway, here.name(), "released").await?;
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));

    drop(frozen);
    let unfenced = gateway.picket(&["unfence", here.name(), "--yes", "--reason", "mended"]).await?;
    assert_eq!(unfenced.code, 0, "{unfenced:?}\n{}", gateway.log());
    until("it is a Node again", Duration::from_secs(120), is_there).await?;
    cluster.until_ready(here, true).await?;
    assert!(is_clean(&cluster.node(here).await?), "it is a new one");
    assert_eq!(database.writers().changes(), 1, "who is back does not write");
    no_more_of(cluster, "deleted").await?;
    lent.leave().await?;
    Ok(())
}

/// Somebody else's `out-of-service` is neither used nor removed, and nothing is switched on while it stands; and a Node that is ready again is let
/// be, by the word of the cluster itself.
#[tokio::test]
async fn somebody_else_s_taint_stays_and_bars_the_on_and_who_is_ready_is_let_be() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine);
    let asks = |uid: &str, login: &str| {
        let asked = format!("kind = \"kubernetes\"\ncluster_uid = {uid:?}\n{login}");
        // A person's fence would not ask.
        let programs = "[roles.programs]\nrole = \"controller\"\ncallers = [\"uid:*\"]";
        format!("{programs}\n[groups.all]\nhosts = {:?}\n[groups.all.liveness]\n{asked}", machine.name())
    };
    let mut gateway = start(cluster, &[(machine.name(), machine, "pods")], &asks).await?;
    let fence = ["fence", machine.name(), "--yes", "--reason", "a test"];
    let aborted = gateway.picket(&fence).await?;
    assert_eq!(aborted.code, RECOVERED, "{aborted:?}\n{}", gateway.log());
    assert!(aborted.out.contains("Ready is True"), "{aborted:?}");
    until_clean(cluster, machine).await?;
    assert_eq!(power(machine), switched);
    gateway.stop().await?;

    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    let taint = |what: &str| format!("{OUT_OF_SERVICE}{what}");
    let set = [&taint("=by-hand:NoExecute"), "--overwrite"];
    let by_hand =
        async || cluster.kubectl(&["taint", "node", machine.name(), set[0], set[1]]).await.map(drop);
    let taken_back =
        async || cluster.kubectl(&["taint", "node", machine.name(), &taint("-")]).await.map(drop);
    by_hand().await?;
    let fenced = gateway.picket(&[&fence[..], &["--until", "confirmed"]].concat()).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    is_told(&gateway, machine.name(), "somebody else's taint").await?;
    assert!(taints(&cluster.node(machine).await?).contains(&FENCED), "it was told before the off");
    taken_back().await?;
    is_told(&gateway, machine.name(), "released").await?;

    by_hand().await?;
    let unfence = ["unfence", machine.name(), "--yes", "--reason", "mended"];
    let meanwhile = async {
        is_told(&gateway, machine.name(), "somebody else's taint").await?;
        assert!(!machine.runs());
        let node = cluster.node(machine).await?;
        assert!(taints(&node).contains(&OUT_OF_SERVICE), "it is not ours to remove: {node:#}");
        taken_back().await
    };
    let (unfenced, told) = tokio::join!(gateway.picket(&unfence), meanwhile);
    told?;
    assert_eq!(unfenced?.code, 0, "{}", gateway.log());
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}

/// A Node that is another machine's, or one of another cluster: its pods and volumes are nobody's to let go, and a person is told which it is.
#[tokio::test]
async fn what_is_another_machine_s_or_another_cluster_s_is_not_touched() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let (machine, other) = (lent.one(), for_everybody(cluster));
    let elsewhere = |_: &str, login: &str| {
        let another = "00000000-0000-4000-8000-000000000000";
        format!("[releases.elsewhere]\nkind = \"kubernetes\"\ncluster_uid = {another:?}\n{login}")
    };
    for (node, release, why) in
        [(other.name(), "pods", "another machine"), (machine.name(), "elsewhere", "another cluster")]
    {
        let gateway = start(cluster, &[(node, machine, release)], &elsewhere).await?;
        let checked = gateway.picket(&["check", node]).await?;
        assert!(checked.out.contains(why), "{checked:?}");
        let fenced =
            gateway.picket(&["fence", node, "--until", "confirmed", "--yes", "--reason", "a test"]).await?;
        assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
        is_told(&gateway, node, why).await?;
    }
    assert!(!machine.runs() && other.runs());
    for machine in [machine, other] {
        let node = cluster.node(machine).await?;
        assert!(!taints(&node).iter().any(|key| [OUT_OF_SERVICE, FENCED].contains(key)), "{node:#}");
    }
    machine.force(true).await?;
    cluster.until_ready(machine, true).await?;
    lent.leave().await?;
    Ok(())
}
