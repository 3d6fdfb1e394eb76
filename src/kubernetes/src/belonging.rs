//! Whether the Node that a caller means is the one that the cluster has for a node (K1).

use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::{Fault, Kind};
use crate::finding::{FRESH, FindBy, Sought};
use crate::identity::{self, Match};
use crate::node;

/// Compares its name and its UID with those of the Node that is found, as the settings say, for the node. By whatever it is found, what the Node
/// says of its machine has to contradict nothing that is known of the node's: anybody who registers a Node chooses its name. A Node that is found by
/// what a kubelet may write has to be the only one that says so.
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
    let provider_id = sought.provider_id.as_deref();
    let known = match sought.by {
        // What other Nodes say of their machines is nothing to a Node that its name has found: no list is asked for.
        FindBy::Name => identity::is_this(&node, &[], devices, provider_id, Match::Name),
        FindBy::ProviderId | FindBy::SystemUuid => {
            let all = cluster.nodes(FRESH, until).await?;
            identity::is_this(&node, &all, devices, provider_id, Match::Identity)
        }
    };
    Ok(known.err())
}
