//! What a gateway that died left on a Node, and a Node that is deleted before its machine is proven off.

use std::time::Duration;

use picket_tests::peers::{eventually, until};
use picket_tests::{Daemon, Gateway, Result};
use serde_json::{Value, json};

use crate::fenced::{
    FENCED, fence, login, made_anew, no_more, pods, power, settings, start, taints, unfence, until_clean,
    until_they_run,
};
use crate::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of};

fn of_others(node: &Value) -> Vec<Value> {
    let all = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|one| one["key"] == "example.org/later").collect()
}

/// Its node is back, and new pods may not come yet; and what lets volumes go was set late, by what was on its way. The next process finds both at
/// its start, by the Node, and takes them away (K7); what is somebody else's stays as it is.
#[tokio::test]
async fn the_next_process_takes_away_what_a_killed_one_left_and_nothing_else() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine).len();
    let taint = async |what: &str| cluster.kubectl(&["taint", "node", machine.name(), what]).await.map(drop);
    taint("example.org/later=yes:PreferNoSchedule").await?;
    let theirs = of_others(&cluster.node(machine).await?);
    assert_eq!(theirs.len(), 1, "{theirs:?}");
    let mut gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    fence(&gateway, machine.name(), "released").await?;
    unfence(&gateway, machine.name()).await?;
    gateway.kill();
    let left = cluster.node(machine).await?;
    let ours = json!({ "key": FENCED, "value": "picket.picket.1", "effect": "NoSchedule" });
    let is_kept_away = left["spec"]["taints"].as_array().into_iter().flatten().any(|one| {
        (&one["key"], &one["value"], &one["effect"]) == (&ours["key"], &ours["value"], &ours["effect"])
    });
    assert!(is_kept_away, "{left:#}");
    taint(&format!("{OUT_OF_SERVICE}=picket.picket.1:NoExecute")).await?;

    gateway.begin(&[]).await?;
    let swept = async || {
        let node = cluster.node(machine).await?;
        let noted = node["metadata"]["annotations"]["picket.dev/fence-picket"].is_string();
        let stands = taints(&node).contains(&OUT_OF_SERVICE) || node["metadata"]["finalizers"] != Value::Null;
        Ok(!noted && !stands && node["spec"]["taints"].as_array().map(Vec::len) == Some(1))
    };
    until("it is swept", Duration::from_secs(180), swept).await?;
    assert_eq!(of_others(&cluster.node(machine).await?), theirs);
    assert_eq!(power(machine)[switched..], ["off", "on"]);
    taint("example.org/later-").await?;
    until_clean(cluster, machine).await?;
    lent.leave();
    Ok(())
}

/// Somebody deletes the Node between the off and the confirmation: it stays, nothing of it is let go before the machine is proven off, and then all
/// is (K8).
#[tokio::test]
async fn a_node_that_is_deleted_before_the_confirmation_lets_nothing_go_until_then() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    cluster.idle_pods("early", 2, machine).await?;
    let old = pods(cluster, "early").await?;
    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let nodes = [(machine.name(), machine, "pods")];
    let fleet = settings(cluster, &login(cluster).await?, &nodes, &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Hooked, &fleet)?;
    let paused = gateway.directory().join("paused");
    let at = paused.display().to_string();
    gateway.begin(&[("PICKET_PAUSE_AT", "sent off"), ("PICKET_PAUSE_FILE", &at)]).await?;

    let uid = cluster.node(machine).await?["metadata"]["uid"].clone();
    let meanwhile = async {
        eventually("the off is sent", Duration::from_secs(120), || paused.exists()).await?;
        let kept = json!(["picket.dev/fencing-picket"]);
        let is_kept = async || Ok(cluster.node(machine).await?["metadata"]["finalizers"] == kept);
        until("whoever deletes it waits for us", Duration::from_secs(60), is_kept).await?;
        cluster.kubectl(&["delete", "node", machine.name(), "--wait=false"]).await?;
        let node = cluster.node(machine).await?;
        assert!(node["metadata"]["deletionTimestamp"].is_string(), "{node:#}");
        assert!(!taints(&node).contains(&OUT_OF_SERVICE), "{node:#}");
        assert_eq!(pods(cluster, "early").await?, old, "nothing is let go\n{}", gateway.log());
        std::fs::remove_file(&paused).expect("it is there");
        Ok(())
    };
    tokio::try_join!(fence(&gateway, machine.name(), "released"), meanwhile)?;
    let new = made_anew(cluster, "early", &old).await?;
    let uid_now = async || {
        let nodes = cluster.json(&["get", "nodes"]).await?;
        let all = nodes["items"].as_array().into_iter().flatten();
        let mut ours = all.filter(|node| node["metadata"]["name"] == machine.name());
        Ok(ours.next().map(|node| node["metadata"]["uid"].clone()))
    };
    until("that Node is gone", Duration::from_secs(60), async || Ok(uid_now().await?.is_none())).await?;
    unfence(&gateway, machine.name()).await?;
    let is_new = async || Ok(uid_now().await?.is_some_and(|now| now != uid));
    until("it is a Node again", Duration::from_secs(120), is_new).await?;
    cluster.until_ready(machine, true).await?;
    until_they_run(cluster, "early", new.len()).await?;
    assert_eq!(pods(cluster, "early").await?, new);
    until_clean(cluster, machine).await?;
    no_more_of(cluster, "early").await?;
    lent.leave();
    Ok(())
}
