//! What the liveness source sees of a Node's life.

use picket_liveness::{Asking, Look, Sign};

use super::*;
use crate::alive::Alive;

/// What it says of `r1`, and what it saw.
async fn looks(api: &Arc<Api>) -> (Look, Option<Sign>) {
    let release = unbound(api, json!({}));
    let alive = Alive::in_cluster(release.cluster.clone());
    let of = alive.of(&NodeId::new("r1").expect("a name"), None).expect("it can");
    (of.ask(soon()).await, of.sign())
}

fn is(ready: &str) -> Value {
    let mut node = node("r1", UUID, &[]);
    node["status"]["conditions"] = json!([{ "type": "Ready", "status": ready }]);
    node
}

/// Conditions outlive their kubelet by most of a minute: a Node lives by its lease.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_well_tells_its_boot_and_when_its_kubelet_renewed_its_lease() {
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/r1";
    let renewed = json!({ "spec": { "renewTime": "2026-11-29T20:00:00.000000Z" } });
    for (ready, lease, boot, beat) in [
        ("True", Some((lease, renewed.clone())), Some("b"), Some("2026-11-29T20:00:00.000000Z")),
        ("True", Some((lease, json!({ "spec": {} }))), Some("b"), None),
        ("True", None, Some("b"), None),
        ("False", Some((lease, renewed.clone())), Some("b"), None),
    ] {
        let api = Api::of_both([is(ready)], lease.clone());
        let (look, sign) = looks(&api).await;
        assert_eq!(matches!(look, Look::Recovered(_)), ready == "True", "{look:?}");
        let told = sign.map(|sign| (sign.boot, sign.beat));
        assert_eq!(told, boot.map(|boot| (boot.to_owned(), beat.map(str::to_owned))), "{ready} {lease:?}");
    }
    let mut bootless = is("True");
    bootless["status"]["nodeInfo"]["bootID"] = json!("");
    assert_eq!(looks(&Api::of([bootless])).await.1, None, "it says no boot");
    assert_eq!(looks(&Api::of([])).await.1, None, "nothing was seen");
}
