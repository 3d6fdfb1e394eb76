//! Who else lets go what Picket waits with, as far as the API tells it (K8), and what bars it: for `picket check`.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::object::{List, Node};
use crate::webhooks;

/// What was heard is good for so long: every node of a cluster asks the same.
pub(crate) const FRESH: Duration = Duration::from_secs(60);
const MANAGERS: &str =
    "/api/v1/namespaces/kube-system/pods?labelSelector=component%3Dkube-controller-manager";
const FLAG: &str = "--disable-force-detach-on-timeout";

/// Groups of the API whose controllers let go what a Node holds, or delete it, by themselves; and what is to be done.
const GROUPS: &[(&str, &str)] = &[
    ("self-node-remediation.medik8s.io", "Self Node Remediation takes a Node for dead after a time"),
    (
        "fence-agents-remediation.medik8s.io",
        "Fence Agents Remediation reboots Nodes, and lets go what they held",
    ),
    ("machine-deletion-remediation.medik8s.io", "Machine Deletion Remediation deletes the Machines of Nodes"),
    ("cluster.x-k8s.io", "a MachineHealthCheck of Cluster API deletes Machines whose Node is not healthy"),
    ("machine.openshift.io", "a MachineHealthCheck of OpenShift deletes Machines whose Node is not healthy"),
    (
        "metal3.io",
        "the operator of Metal3 switches on within a minute what is off and whose BareMetalHost says online",
    ),
    ("karpenter.sh", "Karpenter ends instances whose Node is not healthy"),
    (
        "longhorn.io",
        "Longhorn force-deletes pods of a Node that is down, where its setting node-down-pod-deletion-policy says so",
    ),
    (
        "piraeus.io",
        "the High Availability Controller of Piraeus evicts pods, and deletes VolumeAttachments, of a Node without quorum",
    ),
    (
        "stork.libopenstorage.org",
        "the health monitor of Stork deletes pods of a Node whose storage is offline",
    ),
    (
        "csiaddons.openshift.io",
        "Rook and OpenShift Data Foundation fence the storage of a Node by NetworkFences of their own",
    ),
];
/// Of the Nodes that kube-fencing reboots and flushes.
const KUBE_FENCING: &str = "fencing/enabled";

/// Which groups the API has.
pub(crate) const APIS: &str = "/apis";

#[derive(Deserialize)]
pub(crate) struct Groups {
    groups: Vec<Group>,
}

impl Groups {
    pub(crate) fn has(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one.name == group)
    }
}

#[derive(Deserialize)]
struct Group {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Manager {
    spec: ManagerSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ManagerSpec {
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    command: Vec<String>,
    args: Vec<String>,
}

/// What is to be said of the Node, and of its cluster.
pub(crate) async fn of(cluster: &Cluster, node: &Node, until: Instant) -> Vec<String> {
    let mut told = match cluster.rivals(FRESH, until).await {
        Ok(told) => told.to_vec(),
        Err(fault) => vec![fault.to_string()],
    };
    if node.metadata.annotations.get(KUBE_FENCING).is_some_and(|value| value == "true") {
        let name = &node.metadata.name;
        told.push(format!(
            "Node {name} has the annotation {KUBE_FENCING}: kube-fencing lets go what it holds once its own program said that it \
             rebooted: take the annotation away"
        ));
    }
    told
}

/// What is to be said of the cluster.
pub(crate) async fn of_cluster(cluster: &Cluster, until: Instant) -> Result<Vec<String>, Fault> {
    let (groups, managers, webhooks) = tokio::join!(
        cluster.get::<Groups>(APIS, until),
        cluster.get::<List<Manager>>(MANAGERS, until),
        webhooks::of_cluster(cluster, until)
    );
    let mut told = rivals(&groups?);
    told.extend(detaching(&managers?.items));
    // A login without that right fences all the same.
    told.extend(webhooks.unwrap_or_else(|fault| vec![fault.to_string()]));
    Ok(told)
}

fn rivals(groups: &Groups) -> Vec<String> {
    let known = GROUPS.iter().filter(|(group, _)| groups.has(group));
    known
        .map(|(group, what)| {
            format!("the cluster has the API {group}: {what}, without proof: keep it from Nodes that Picket fences")
        })
        .collect()
}

/// Where no such pod is seen (who runs the control plane hides it), nothing is known.
fn detaching(managers: &[Manager]) -> Option<String> {
    let words = |one: &Manager| -> Vec<String> {
        let all =
            one.spec.containers.iter().flat_map(|container| container.command.iter().chain(&container.args));
        all.cloned().collect()
    };
    let is_set =
        |one: &Manager| words(one).iter().any(|word| word == FLAG || *word == format!("{FLAG}=true"));
    let unset = managers.iter().filter(|one| !is_set(one)).count();
    (unset > 0).then(|| {
        format!(
            "{unset} of {} kube-controller-managers run without {FLAG}: six minutes after its pod is gone a volume is detached from a \
             Node, also from one that runs",
            managers.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manager(command: &[&str], args: &[&str]) -> Manager {
        let container = json!({ "command": command, "args": args });
        serde_json::from_value(json!({ "spec": { "containers": [container] } })).expect("a pod")
    }

    #[test]
    fn a_manager_that_detaches_by_time_is_told_where_it_is_seen() {
        assert_eq!(detaching(&[]), None, "nobody shows it");
        let set = || manager(&["kube-controller-manager", "--disable-force-detach-on-timeout=true"], &[]);
        assert_eq!(detaching(&[set(), manager(&["x"], &[FLAG])]), None);
        let one = detaching(&[set(), manager(&["x"], &["--disable-force-detach-on-timeout=false"])]);
        assert!(one.expect("told").starts_with("1 of 2 kube-controller-managers"));
    }

    #[test]
    fn who_else_lets_go_is_named_with_what_it_does() {
        let groups = |names: &[&str]| Groups {
            groups: names.iter().map(|name| Group { name: (*name).to_owned() }).collect(),
        };
        assert_eq!(rivals(&groups(&["apps", "picket.dev"])), [""; 0]);
        let told = rivals(&groups(&["apps", "cluster.x-k8s.io", "metal3.io", "karpenter.sh"]));
        assert_eq!(told.len(), 3);
        assert!(told[1].contains("switches on within a minute"));
        assert!(told[0].contains("MachineHealthCheck of Cluster API"));
    }
}
