//! A Node of the API.

use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::object::{Lease, Node};

/// Where it is.
pub(crate) fn path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// As a quorum has it.
pub(crate) async fn read(cluster: &Cluster, name: &str, until: Instant) -> Result<Node, Fault> {
    let node: Node = cluster.get(&path(name), until).await?;
    // What nothing is said in says nothing.
    let is_whole = node.metadata.name == name && !node.metadata.uid.is_empty();
    let wrong = || Fault::away(format!("get {}: the answer is no Node {name}", path(name)));
    if is_whole && !node.metadata.resource_version.is_empty() { Ok(node) } else { Err(wrong()) }
}

/// When its kubelet renewed its lease last, in its own words; `None`: it is not told.
pub(crate) async fn lease(cluster: &Cluster, name: &str, until: Instant) -> Option<String> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}");
    let lease: Lease = cluster.get(&path, until).await.ok()?;
    Some(lease.spec.renew_time).filter(|time| !time.is_empty())
}

/// Whether its kubelet says that it is ready.
pub(crate) fn is_ready(node: &Node) -> bool {
    node.status.conditions.iter().any(|one| one.r#type == "Ready" && one.status == "True")
}
