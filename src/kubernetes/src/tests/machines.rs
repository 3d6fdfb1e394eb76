//! Which Machine of Cluster API is a Node's (K1, K8).

use super::*;

const GROUP: &str = "/apis/cluster.x-k8s.io";
const MACHINE: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/machines/m7";

/// The Node `r1`, which names the Machine `fleet/m7`.
fn naming() -> Value {
    let mut node = node("r1", UUID, &[]);
    node["metadata"]["annotations"] =
        json!({ "cluster.x-k8s.io/machine": "m7", "cluster.x-k8s.io/cluster-namespace": "fleet" });
    node["spec"]["providerID"] = json!("aws:///z/i-1");
    node
}

/// A Machine that is being deleted.
fn going(provider_id: &str, status: Value) -> Value {
    json!({
        "metadata": {
            "namespace": "fleet", "name": "m7", "uid": "u-m7", "resourceVersion": "5", "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": { "providerID": provider_id },
        "status": status,
    })
}

/// A kubelet writes the annotations of its own Node: they choose no other machine's Machine.
#[tokio::test(start_paused = true)]
async fn a_machine_is_a_node_s_where_it_says_so_itself() {
    let of = |name: &str, uid: &str| json!({ "nodeRef": { "name": name, "uid": uid } });
    for (machine, is_its) in [
        (going("aws:///z/i-1", of("r1", "u-r1")), true),
        (going("", of("r1", "u-r1")), true),
        (going("aws:///z/i-1", json!({ "nodeRef": { "name": "r1" } })), true),
        (going("aws:///z/i-1", of("r7", "u-r7")), false),
        // Of another cluster.
        (going("", of("r1", "u-another")), false),
        (going("aws:///z/i-7", of("r1", "")), false),
        (going("aws:///z/i-1", json!({})), false),
        // Another cluster may have a Node of that name, too.
        (going("", of("r1", "")), false),
    ] {
        let group = json!({ "preferredVersion": { "groupVersion": "cluster.x-k8s.io/v1beta2" } });
        let api = Api::of_both([naming()], [(GROUP, group), (MACHINE, machine.clone())]);
        let release = with(&api, json!({ "find_by": "name", "machines": "here" }));
        let subject = subject(whose(Some(&naming()), UUID));
        let spared = release.exclude(&subject, soon()).await;
        assert_eq!(spared.is_ok(), is_its, "{machine:#} {spared:?}");
        assert_eq!(api.changes().contains(&format!("PATCH {MACHINE}")), is_its, "{machine:#}");
        assert_eq!(release.is_being_deleted(&subject, soon()).await.is_some(), is_its, "{machine:#}");
        let told = release.check(&identities(UUID), soon()).await;
        let is_told =
            told.iter().any(|one| one.contains("the Machine fleet/m7, which the Node r1 names, is not"));
        assert_eq!(is_told, !is_its, "{told:?}");
    }
}
