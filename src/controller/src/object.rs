//! What is read of the API's objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::crd;
use crate::decider::{Condition, Node};

/// A Node: of its status, what is looked at; the images of a Node alone would be most of it.
pub type SeenNode = Object<NodeSpec, NodeStatus>;
/// A lease of a kubelet.
pub type SeenLease = Object<LeaseSpec, ()>;
/// A policy, not yet read.
pub type SeenPolicy = Object<Value, Value>;
/// A remediation, not yet read.
pub type SeenRemediation = Object<Value, Value>;

/// `spec` of a Node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    #[serde(rename = "providerID")]
    provider_id: String,
    unschedulable: bool,
}

/// `status` of a Node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    conditions: Vec<NodeCondition>,
    node_info: NodeInfo,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    last_transition_time: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    #[serde(rename = "systemUUID")]
    system_uuid: String,
    #[serde(rename = "bootID")]
    boot_id: String,
}

/// `spec` of a lease.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseSpec {
    /// Who holds it.
    pub holder_identity: Option<String>,
    /// For how long, from when it was renewed.
    pub lease_duration_seconds: Option<u64>,
    /// Since when.
    pub acquire_time: Option<String>,
    /// When it was renewed, on the holder's clock: compared with no other.
    pub renew_time: Option<String>,
    /// How often it changed hands.
    pub lease_transitions: Option<i64>,
}

/// A Node as the decider takes it.
pub fn node(seen: SeenNode) -> Node {
    let ObjectMeta { name, uid, labels, annotations, .. } = seen.metadata;
    let status = seen.status.unwrap_or_default();
    let condition = |one: NodeCondition| {
        (one.kind, Condition { status: one.status, turned: one.last_transition_time.unwrap_or_default() })
    };
    Node {
        name: name.unwrap_or_default(),
        uid: uid.unwrap_or_default(),
        boot_id: status.node_info.boot_id,
        provider_id: seen.spec.provider_id,
        system_uuid: status.node_info.system_uuid,
        conditions: status.conditions.into_iter().map(condition).collect::<BTreeMap<_, _>>(),
        cordoned: seen.spec.unschedulable,
        labels: labels.unwrap_or_default(),
        annotations: annotations.unwrap_or_default(),
    }
}

/// Where Nodes are.
pub fn nodes() -> ApiResource {
    ApiResource::erase::<k8s_openapi::api::core::v1::Node>(&())
}

/// Where leases are.
pub fn leases() -> ApiResource {
    ApiResource::erase::<k8s_openapi::api::coordination::v1::Lease>(&())
}

/// Where policies are.
pub fn policies() -> ApiResource {
    ApiResource {
        group: crd::GROUP.to_owned(),
        version: crd::VERSION.to_owned(),
        api_version: format!("{}/{}", crd::GROUP, crd::VERSION),
        kind: crd::KIND.to_owned(),
        plural: crd::PLURAL.to_owned(),
    }
}

/// Where remediations are.
pub fn remediations() -> ApiResource {
    ApiResource {
        kind: crd::remediation::KIND.to_owned(),
        plural: crd::remediation::PLURAL.to_owned(),
        ..policies()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_node_what_counts_is_read_and_what_is_missing_is_empty() {
        let seen: SeenNode = serde_json::from_value(json!({
            "metadata": { "name": "n1", "uid": "u", "labels": { "role": "worker" } },
            "spec": { "providerID": "p://1", "unschedulable": true, "podCIDR": "10.0.0.0/24" },
            "status": {
                "conditions": [{ "type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "NodeStatusUnknown" }],
                "nodeInfo": { "systemUUID": "S", "bootID": "b", "kernelVersion": "6" },
                "images": [{ "names": ["x"] }],
            },
        }))
        .expect("a Node");
        let node = node(seen);
        assert_eq!((node.name.as_str(), node.boot_id.as_str(), node.cordoned), ("n1", "b", true));
        assert_eq!((node.provider_id.as_str(), node.system_uuid.as_str()), ("p://1", "S"));
        assert_eq!(node.conditions["Ready"].turned, "2026-01-01T00:00:00Z");
        let bare: SeenNode =
            serde_json::from_value(json!({ "metadata": { "name": "n1" }, "spec": {} })).expect("a Node");
        assert!(super::node(bare).conditions.is_empty());
    }
}
