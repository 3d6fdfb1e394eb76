//! The VolumeAttachments of a node: what the attach-detach controller, and who attaches, have not let go yet.

use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::object::{List, VolumeAttachment};

/// Those of the Node, each in words.
pub(crate) async fn of(cluster: &Cluster, name: &str, until: Instant) -> Result<Vec<String>, Fault> {
    let all: List<VolumeAttachment> = cluster.get("/apis/storage.k8s.io/v1/volumeattachments", until).await?;
    let of_node = all.items.into_iter().filter(|one| one.spec.node_name == name);
    Ok(of_node.map(|one| words(&one)).collect())
}

fn words(one: &VolumeAttachment) -> String {
    let volume = one.spec.source.persistent_volume_name.as_deref().unwrap_or("an inline volume");
    format!("{volume} by {} ({})", one.spec.attacher, one.metadata.name)
}
