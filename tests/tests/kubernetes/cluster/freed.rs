//! A Node that is deleted all the same: nothing keeps it, and its attachments are waited for (K5, K8).

use std::time::Duration;

use picket_tests::peers::{Kubernetes, KubernetesMachine, eventually, until};
use picket_tests::{Daemon, Fleet, Gateway, Result};
use serde_json::Value;

use crate::cluster::door::Door;
use crate::cluster::fenced::{
    FENCED, fence, is_told, login, recorded, settings, taints, unfence, until_clean, until_out_of_service,
};
use crate::cluster::scene::{cluster, lend, no_more_of, sleeping};
use crate::cluster::seed::placed;

/// What kube-controller-manager takes away by itself, it does after six minutes, or finds to be gone after one.
const BY_ITSELF: Duration = Duration::from_secs(480);
/// So many looks at what is left show that it is waited for.
const LOOKS: usize = 20;

/// A node whose Node anybody may delete.
async fn fleet(cluster: &Kubernetes, door: &Door, machine: &KubernetesMachine) -> Result<Fleet> {
    let free = |uid: &str, login: &str| {
        let asked = format!("kind = \"kubernetes\"\nsettle = \"0s\"\ncluster_uid = {uid:?}\n{login}");
        format!("[releases.free]\n{asked}node_deletion = \"free\"\n")
    };
    settings(cluster, door.login(), &[(machine.name(), machine, "free")], &free).await
}

/// Once it is told of the fence, and so who it was; nobody but a kubelet makes it anew.
async fn delete_node(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<()> {
    let is_told = async || Ok(taints(&cluster.node(machine).await?).contains(&FENCED));
    until("it is told of the fence", Duration::from_secs(60), is_told).await?;
    let node = cluster.node(machine).await?;
    assert_eq!(node["metadata"]["finalizers"], Value::Null, "nothing keeps it: {node:#}");
    cluster.kubectl(&["delete", "node", machine.name(), "--timeout=30s"]).await?;
    assert_eq!(uid(cluster, machine).await?, Value::Null);
    Ok(())
}

/// Of its Node; null where there is none.
async fn uid(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<Value> {
    let node = cluster.json(&["get", "node", machine.name(), "--ignore-not-found"]).await?;
    Ok(node["metadata"]["uid"].clone())
}

/// What is attached to it.
async fn attached(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<Vec<Value>> {
    let all = cluster.json(&["get", "volumeattachments"]).await?;
    let all = all["items"].as_array().cloned().unwrap_or_default();
    Ok(all.into_iter().filter(|one| one["spec"]["nodeName"] == machine.name()).collect())
}

/// It is looked for again and again, and stands: nothing is complete, and the machine is off.
async fn is_waited_for(
    cluster: &Kubernetes,
    machine: &KubernetesMachine,
    gateway: &Gateway,
    door: &Door,
) -> Result<()> {
    let before = door.missed(machine.name());
    let looks = async || Ok(door.missed(machine.name()) >= before + LOOKS);
    until("what is left is looked for", Duration::from_secs(120), looks).await?;
    is_told(gateway, machine.name(), "left: ").await?;
    let status = gateway.picket(&["status", machine.name()]).await?;
    assert!(!status.out.contains("released"), "{status:?}\n{}", gateway.log());
    assert_eq!(attached(cluster, machine).await?.len(), 1, "{}", gateway.log());
    assert!(!machine.runs());
    Ok(())
}

/// Its kubelet makes another Node, on which nothing of ours comes to stand.
async fn comes_back(
    cluster: &Kubernetes,
    machine: &KubernetesMachine,
    gateway: &Gateway,
    old: &Value,
) -> Result<()> {
    unfence(gateway, machine.name()).await?;
    let is_new = async || {
        let now = uid(cluster, machine).await?;
        Ok(!now.is_null() && now != *old)
    };
    until("it is a Node again", Duration::from_secs(120), is_new).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await
}

/// Its taint had begun to let the volume go when somebody deleted the Node, and with it the taint: what detaches sleeps, and as long as the
/// attachment stands nothing is complete. Then it is, and the volume is written elsewhere, by one writer after the other.
#[tokio::test]
async fn a_node_that_is_deleted_while_it_is_out_of_service_is_complete_when_its_attachment_is_gone()
-> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let database = cluster.database("freed", &lent.two()).await?;
    let (here, there) = placed(cluster, &database, lent.two()).await?;
    let old = uid(cluster, here).await?;
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let fleet = fleet(cluster, &door, here).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;

    let asleep = sleeping(cluster).await;
    fence(&gateway, here.name(), "confirmed").await?;
    until_out_of_service(cluster, here, true).await?;
    let let_go = async || {
        let all = attached(cluster, here).await?;
        Ok(all.len() == 1 && all[0]["metadata"]["deletionTimestamp"].is_string())
    };
    until("its volume is being let go", Duration::from_secs(120), let_go).await?;
    delete_node(cluster, here).await?;
    is_waited_for(cluster, here, &gateway, &door).await?;
    assert_eq!(database.writers().nodes(), [here.name()], "its volume is nobody else's yet");
    drop(asleep);

    is_told(&gateway, here.name(), "released").await?;
    assert!(attached(cluster, here).await?.is_empty());
    assert!(!here.runs());
    database.runs_on(there.name()).await?;
    door.all_end();
    comes_back(cluster, here, &gateway, &old).await?;
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    no_more_of(cluster, "freed").await?;
    lent.leave().await?;
    Ok(())
}

/// Deleted before anything was let go: its pod is deleted by its UID, no taint can be set, and what was attached is waited for until whoever
/// may detach it has done so.
#[tokio::test]
async fn a_node_that_is_deleted_before_it_is_out_of_service_has_its_pods_deleted_and_its_attachment_waited_for()
-> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let database = cluster.database("freed-early", &lent.two()).await?;
    let (here, there) = placed(cluster, &database, lent.two()).await?;
    let old = uid(cluster, here).await?;
    let pod = database.look().await?["metadata"]["uid"].clone();
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let fleet = fleet(cluster, &door, here).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Hooked, &fleet)?;
    let paused = gateway.directory().join("paused");
    let at = paused.display().to_string();
    gateway.begin(&[("PICKET_PAUSE_AT", "sent off"), ("PICKET_PAUSE_FILE", &at)]).await?;

    let meanwhile = async {
        let is_off = || paused.exists() && !here.runs();
        eventually("the off is sent, and the machine off", Duration::from_secs(120), is_off).await?;
        delete_node(cluster, here).await?;
        std::fs::remove_file(&paused).expect("it is there");
        Ok(())
    };
    tokio::try_join!(fence(&gateway, here.name(), "confirmed"), meanwhile)?;
    is_waited_for(cluster, here, &gateway, &door).await?;
    let is_another = async || {
        let now = database.look().await?["metadata"]["uid"].clone();
        Ok(!now.is_null() && now != pod)
    };
    until("its pod is made anew", Duration::from_secs(60), is_another).await?;
    assert_eq!(database.writers().nodes(), [here.name()], "its volume is nobody else's yet");
    let said = recorded(&gateway, here.name()).await?;
    // By Picket, or in its place by its StatefulSet, once it was told that the pod failed.
    for named in [": default/freed-early-0", "Kubernetes lets go what was attached to it"] {
        assert!(said.contains(named), "{named}: {said}\n{}", gateway.log());
    }

    // Nobody waits for six minutes: a person who sees that the machine is off may do the same.
    let all = attached(cluster, here).await?;
    let name = all[0]["metadata"]["name"].as_str().unwrap_or_default();
    cluster.kubectl(&["delete", "volumeattachment", name, "--timeout=80s"]).await?;
    is_told(&gateway, here.name(), "released").await?;
    assert!(!here.runs());
    let writes_there = async || Ok(database.writers().nodes().len() == 2);
    until("its volume is written elsewhere", BY_ITSELF, writes_there).await?;
    database.runs_on(there.name()).await?;
    door.all_end();
    comes_back(cluster, here, &gateway, &old).await?;
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    no_more_of(cluster, "freed-early").await?;
    lent.leave().await?;
    Ok(())
}
