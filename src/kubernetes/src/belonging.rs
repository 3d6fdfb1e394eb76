//! Whether the Node that a caller means is the one that the cluster has for a node (K1).

use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::{Fault, Kind};
use crate::finding::{FRESH, FindBy, Sought};
use crate::identity::{self, Match};
use crate::node;

/// Compares its name and its UID with those of the Node that is found, as the settings say, for the node. Who is found by what a Node says of
/// its machine is found by what a kubelet may write: that has to be no other Node's word, and to contradict nothing that is known of the node.
pub(crate) async fn belongs(
    sought: &Sought,
    cluster: &Cluster,
    wanted: &ClusterNode,
    devices: &[Identity],
    until: Instant,
) -> Belongs {
    match compared(sought, cluster, wanted, devices, until).await {
        Ok(None) => Belongs::Yes,
        Ok(Some(why)) => Belongs::No(why),
        // Two Nodes that say the same are nobody's; by its name it is known all the same.
        Err(fault) if fault.is(Kind::NotFound) || fault.is(Kind::Refused) && sought.by != FindBy::Name => {
            Belongs::No(fault.to_string())
        }
        Err(fault) => Belongs::Untold(fault.to_string()),
    }
}

/// Why it is another one.
async fn compared(
    sought: &Sought,
    cluster: &Cluster,
    wanted: &ClusterNode,
    devices: &[Identity],
    until: Instant,
) -> Result<Option<String>, Fault> {
    let another = |name: &str| Ok(Some(format!("its Node is {name}, and not {}", wanted.name)));
    // By its name it is known without a word of the API server's.
    if sought.by == FindBy::Name && sought.ours.node != wanted.name {
        return another(&sought.ours.node);
    }
    // What another cluster says is of other machines, by whatever name.
    if let Some(why) = cluster.is_another(until).await? {
        return Ok(Some(why));
    }
    let name = sought.name(cluster, devices, None, until).await?;
    if name != wanted.name {
        return another(&name);
    }
    let node = node::read(cluster, &name, until).await?;
    if node.metadata.uid != wanted.uid {
        let found = &node.metadata.uid;
        return Ok(Some(format!("the UID of Node {name} is {found}, and not {}", wanted.uid)));
    }
    if sought.by == FindBy::Name {
        return Ok(None);
    }
    let all = cluster.nodes(FRESH, until).await?;
    let known = identity::is_this(&node, &all, devices, sought.provider_id.as_deref(), Match::Identity);
    Ok(known.err())
}
