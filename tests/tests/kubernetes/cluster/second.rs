//! A login that leads to another cluster, which has a Node of the same name.

use std::time::Duration;

use picket_tests::peers::{Kubernetes, until};
use picket_tests::{Daemon, Gateway, Result};
use serde_json::{Value, json};

use crate::cluster::door::Door;
use crate::cluster::fenced::{ALLOWED, fence, is_clean, is_told, no_more, settings};
use crate::cluster::odd::spec;
use crate::cluster::replaced::says;
use crate::cluster::scene::{cluster, lend};

/// Even the machine is the same, by all that the Node says: nothing of it is changed, by no fence and no withdrawal, no pod is deleted, and it
/// is told that this is another cluster. Nor is anything said to the first cluster, to which the login does not lead.
#[tokio::test]
async fn a_node_of_the_same_name_in_a_second_control_plane_is_not_touched() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let second = Kubernetes::start(0).await?;
    let login = second.account_by("picket-release", &[ALLOWED]).await?;
    let labels = json!({ "kubernetes.io/hostname": machine.name() });
    let meta = json!({ "name": machine.name(), "labels": labels });
    second.apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": meta })).await?;
    says(&second, machine, &cluster.node(machine).await?["status"]["nodeInfo"]).await?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "second" },
        "spec": spec(&json!({ "nodeName": machine.name(), "serviceAccountName": "picket-release" })),
    });
    second.apply(&pod).await?;
    // What they say of a silent Node is none of ours.
    let still = second.stop_controllers();
    let all = async || -> Result<[Value; 2]> {
        Ok([second.node(machine).await?, second.json(&["get", "pod", "second"]).await?])
    };
    let mut before = all().await?;
    let same = async || {
        let now = all().await?;
        Ok(std::mem::replace(&mut before, now.clone()) == now)
    };
    until("nobody changes it any more", Duration::from_secs(30), same).await?;

    let door = Door::between(cluster.place(), &second, &login).await?;
    let nodes = [(machine.name(), machine, "pods")];
    // With the UID of the first one.
    let fleet = settings(cluster, door.login(), &nodes, &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    let other = "this is another cluster";
    let checked = gateway.picket(&["check", machine.name()]).await?;
    assert!(checked.out.contains(other), "{checked:?}");
    fence(&gateway, machine.name(), "confirmed").await?;
    is_told(&gateway, machine.name(), other).await?;
    assert!(!machine.runs());
    gateway.stop().await?;
    let changes = door.changes();
    let asks = |path: &str| path.starts_with("/apis/authorization.k8s.io/");
    assert!(changes.iter().all(|one| asks(&one.path)), "{changes:#?}");
    assert_eq!(all().await?, before, "{}", gateway.log());
    assert!(is_clean(&cluster.node(machine).await?), "{}", gateway.log());

    drop(still);
    machine.force(true).await?;
    cluster.until_ready(machine, true).await?;
    lent.leave().await?;
    Ok(())
}
