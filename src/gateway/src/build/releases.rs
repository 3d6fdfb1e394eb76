//! The releases of the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use picket_config::{Fault, Gateway, Kinded, Settings};
use picket_core::ids::ReleaseId;
use picket_release::Releaser;

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

/// Who uses the service account of a pod runs on a Node of the very cluster that it lets go, and must know on which (S17, K13).
fn stands_nowhere(gateway: &Gateway, release: &Kinded) -> Option<Fault> {
    let within = release.kind == "kubernetes" && !release.settings.contains_key("kubeconfig");
    let knows = gateway.node.is_some() || gateway.kubernetes_node.is_some();
    (within && !knows).then(|| {
        release.fault(
            "",
            "uses the service account of the pod in which this gateway runs, and the gateway does not know on which Node that is: it could \
             shoot itself. Set gateway.kubernetes_node, in the pod by PICKET__GATEWAY__KUBERNETES_NODE from the field spec.nodeName \
             (deploy/helm does), or name a kubeconfig",
        )
    })
}
