//! A machine that its gateway names otherwise than its cluster does.

use std::time::Duration;

use picket_tests::peers::until;
use picket_tests::{Bmc, Result};
use serde_json::{Value, json};

use crate::cluster::fenced::{
    FENCED, fence, made_anew, pods, start, taints, unfence, until_clean, until_they_run,
};
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of};

const NODE: &str = "rack7-11";

/// By the UUID that its BMC and its kubelet say, from the check to the tidying; nobody but pod GC deletes its pods, and nothing is let go before
/// they are gone.
#[tokio::test]
async fn a_node_of_another_name_is_found_by_its_machine_and_its_pods_are_left_to_pod_gc() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    cluster.idle_pods("left", 3, machine).await?;
    let found = |uid: &str, login: &str| {
        let asked = format!("kind = \"kubernetes\"\nsettle = \"0s\"\ncluster_uid = {uid:?}\n{login}");
        format!("[releases.found]\n{asked}find_by = \"system_uuid\"\npods = \"left\"\n")
    };
    let gateway = start(cluster, &[(NODE, machine, "found")], &found).await?;
    cluster.define(("NodePool", "nodepools"), "karpenter.sh", "v1", "Cluster").await?;
    let told = async || Ok(gateway.picket(&["check", NODE]).await?.out.contains("karpenter.sh"));
    until("it is told who else lets go", Duration::from_secs(120), told).await?;
    let checked = gateway.picket(&["check", NODE]).await?;
    assert!(!checked.out.contains("another machine") && !checked.out.contains("no Node"), "{checked:?}");

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let old = pods(cluster, "left").await?;
    assert_eq!(old.len(), 3);
    let fenced = gateway.picket(&["fence", NODE, "--yes", "--reason", "its kubelet is dead"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    assert!(!machine.runs());
    let node = cluster.node(machine).await?;
    assert!(taints(&node).contains(&FENCED) && !taints(&node).contains(&OUT_OF_SERVICE), "{node:#}");
    let note = node["metadata"]["annotations"]["picket.dev/fence-picket"].as_str().unwrap_or_default();
    assert!(note.contains(&format!("\"node\":\"{NODE}\"")), "{note}");
    let now = pods(cluster, "left").await?;
    assert!(
        old.iter().all(|uid| !now.contains(uid)),
        "complete is that none of them is left: {old:?} {now:?}"
    );
    let told = gateway.picket(&["status", NODE]).await?;
    assert!(!told.out.contains("pods deleted"), "by others: {told:?}");

    unfence(&gateway, NODE).await?;
    until_clean(cluster, machine).await?;
    no_more_of(cluster, "left").await?;
    lent.leave().await?;
    Ok(())
}

/// By `spec.providerID`: another Node of its name is not it, and one that says the same is.
#[tokio::test]
async fn a_node_of_another_name_is_found_by_its_provider_id() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let provider_id = format!("lab:///rack-7/{}", machine.name());
    let patch = json!({ "spec": { "providerID": provider_id } }).to_string();
    cluster.kubectl(&["patch", "node", machine.name(), "--type=merge", "-p", &patch]).await?;
    cluster.idle_pods("provided", 2, machine).await?;
    let found = |uid: &str, login: &str| {
        let asked = format!("kind = \"kubernetes\"\nsettle = \"0s\"\ncluster_uid = {uid:?}\n{login}");
        let identity = format!("identity = {{ uuid = \"{}\" }}", machine.uuid());
        let bmc = Bmc::at(machine.bmc().address()).with(&identity).device("provided", "bmc");
        format!(
            "[releases.found]\n{asked}find_by = \"provider_id\"\n\
             [nodes.provided]\nlevels = [[\"bmc\"]]\nreleases = [\"found\"]\nprovider_id = {provider_id:?}\n{bmc}"
        )
    };
    let gateway = start(cluster, &[], &found).await?;
    let checked = gateway.picket(&["check", "provided"]).await?;
    assert!(!checked.out.contains("no Node"), "{checked:?}");
    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let old = pods(cluster, "provided").await?;
    fence(&gateway, "provided", "released").await?;
    assert!(!machine.runs());
    let new = made_anew(cluster, "provided", &old).await?;
    unfence(&gateway, "provided").await?;
    cluster.until_ready(machine, true).await?;
    until_they_run(cluster, "provided", new.len()).await?;
    assert_eq!(pods(cluster, "provided").await?, new, "none is deleted again");
    // The chain of the audit is whole, and says what was let go and whose.
    let audit = gateway.store_file().with_extension("audit").display().to_string();
    let audit = gateway.picket(&["history", "--audit", &audit, "--export"]).await?;
    assert_eq!(audit.code, 0, "{audit:?}");
    let entries: Vec<Value> =
        audit.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let phases = entries.iter().filter(|entry| entry["what"] == "phase");
    let phases: Vec<&str> = phases.filter_map(|entry| entry["details"]["to"].as_str()).collect();
    assert_eq!(phases, ["fencing", "fenced", "released", "unfencing", "normal"], "{}", audit.out);
    for said in [machine.name(), "pods deleted: default/provided-", "is out of service"] {
        assert!(audit.out.contains(said), "{said}: {}", audit.out);
    }
    until_clean(cluster, machine).await?;
    no_more_of(cluster, "provided").await?;
    lent.leave().await?;
    Ok(())
}
