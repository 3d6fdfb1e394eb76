//! The releases of the settings.
//!
//! # Invariants
//!
//! - A release of kind `kubernetes` that uses its pod's service account makes no gateway that does not know
//!   its Node (K13). The downward API names the Node. Where a node has that name, and its releases find
//!   Nodes by it, it is the own node (S17). Else the Node is asked for its providerID and system UUID.
//!   Shown by `who_uses_its_pod_s_account_says_on_which_node_it_stands`.
//! - A cloud's release stands behind the cluster's, never the other way round (S23). Shown by
//!   `a_cloud_s_own_hands_stand_behind_the_cluster_s`.

use std::collections::BTreeMap;
use std::sync::Arc;

use picket_config::{Fault, Gateway, Kinded, Settings};
use picket_core::ids::ReleaseId;
use picket_engine::{NodePlan, Own, PlannedRelease};
use picket_release::{ForNode, Releaser};

/// Those of the settings, by name; what is wrong is told.
pub(super) fn made(settings: &Settings, faults: &mut Vec<Fault>) -> BTreeMap<ReleaseId, Arc<dyn Releaser>> {
    let mut releasers = BTreeMap::new();
    for release in settings.releases.values() {
        faults.extend(stands_nowhere(&settings.gateway, &release.how));
        match crate::drivers::releaser(release.id.as_str(), &release.how.kind, &release.how.settings) {
            Ok(releaser) => {
                releasers.insert(release.id.clone(), releaser);
            }
            Err(wrong) => {
                faults.extend(wrong.into_iter().map(|fault| release.how.fault(&fault.key, fault.message)))
            }
        }
    }
    releasers
}

/// Those of a node, in their order, and what is wrong with them.
pub(super) fn of_node(
    named: &[ReleaseId],
    made: &BTreeMap<ReleaseId, Arc<dyn Releaser>>,
    node: &ForNode<'_>,
) -> (Vec<PlannedRelease>, Vec<String>) {
    let (mut releases, mut wrong) = (Vec::new(), Vec::new());
    for id in named {
        let Some(shared) = made.get(id).cloned() else { continue };
        match shared.of_node(node) {
            Ok(own) => releases.push(PlannedRelease { id: id.clone(), releaser: own.unwrap_or(shared) }),
            Err(why) => wrong.push(why),
        }
    }
    let hands = |one: &PlannedRelease| Hands {
        release: one.id.clone(),
        cloud: one.releaser.in_parts().is_some(),
        cluster: one.releaser.passes_on(),
    };
    wrong.extend(out_of_order(&releases.iter().map(hands).collect::<Vec<_>>()));
    (releases, wrong)
}

/// Whose hands let volumes go.
struct Hands {
    release: ReleaseId,
    cloud: bool,
    cluster: bool,
}

/// What a cloud has attached for a cluster is the cluster's to let go first (S23): detached behind its back it is attached again.
fn out_of_order(releases: &[Hands]) -> Option<String> {
    let cloud = releases.iter().position(|one| one.cloud)?;
    let cluster = &releases[cloud..].iter().find(|one| one.cluster)?.release;
    let cloud = &releases[cloud].release;
    Some(format!(
        "{cloud} stands before {cluster}, and would detach what the cluster holds for attached, and attaches again: name {cluster} before {cloud}"
    ))
}

/// By the service account of the pod in which the gateway runs.
fn is_within(release: &Kinded) -> bool {
    release.kind == "kubernetes" && !release.settings.contains_key("kubeconfig")
}

/// Whether the settings say that the gateway stands on that node: by its name, or by that of its Node, unless that Node `is_asked` and no
/// release of the node finds it by its name.
pub(super) fn stands_on(gateway: &Gateway, plan: &NodePlan, is_asked: bool) -> bool {
    match &gateway.node {
        Some(node) => *node == plan.id,
        None => {
            let mut clusters = plan.releases.iter().filter_map(PlannedRelease::quarantine).peekable();
            let finds_otherwise =
                is_asked && clusters.peek().is_some() && clusters.all(|one| one.finds_otherwise());
            gateway.kubernetes_node.as_deref() == Some(plan.id.as_str()) && !finds_otherwise
        }
    }
}

/// Where the settings do not say on which node the gateway stands, and a release finds Nodes otherwise than by their names, the Node
/// of the pod tells by which of them it is found.
pub(super) fn who_tells_where_it_stands(
    settings: &Settings,
    made: &BTreeMap<ReleaseId, Arc<dyn Releaser>>,
) -> Own {
    let Gateway { node: None, kubernetes_node: Some(name), .. } = &settings.gateway else {
        return Own::default();
    };
    let within = settings.releases.values().filter(|release| is_within(&release.how));
    let clusters = within.filter_map(|release| made.get(&release.id)?.clone().quarantine());
    let cluster = clusters.into_iter().find(|one| one.finds_otherwise());
    cluster.map_or_else(Own::default, |one| Own::named(name.clone(), one))
}

/// Who uses the service account of a pod runs on a Node of the very cluster that it lets go, and must know on which (S17, K13).
fn stands_nowhere(gateway: &Gateway, release: &Kinded) -> Option<Fault> {
    let knows = gateway.node.is_some() || gateway.kubernetes_node.is_some();
    (is_within(release) && !knows).then(|| {
        release.fault(
            "",
            "uses the service account of the pod in which this gateway runs, and the gateway does not know on which Node that is: it could \
             shoot itself. Set gateway.kubernetes_node, in the pod by PICKET__GATEWAY__KUBERNETES_NODE from the field spec.nodeName \
             (deploy/helm does), or name a kubeconfig",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_s_own_hands_stand_behind_the_cluster_s() {
        let hands = |name: &str, cloud, cluster| Hands {
            release: ReleaseId::new(name).expect("a name"),
            cloud,
            cluster,
        };
        let of = |names: &[&str]| {
            let all: Vec<Hands> =
                names.iter().map(|name| hands(name, *name == "disks", *name == "pods")).collect();
            out_of_order(&all)
        };
        assert_eq!(of(&["pods", "told", "disks"]), None);
        assert_eq!(of(&["disks", "told"]), None);
        let wrong = of(&["told", "disks", "pods"]).expect("it is wrong");
        assert!(wrong.contains("name pods before disks"), "{wrong}");
    }
}
