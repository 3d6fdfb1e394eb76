//! Of the objects of the API, the parts that are read here.
//!
//! # Invariants
//!
//! - What is not read is never written: changes are patches (K6).

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owner_references: Vec<Owner>,
    pub(crate) deletion_timestamp: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    pub(crate) controller: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Namespace {
    pub(crate) metadata: Metadata,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) metadata: Metadata,
    pub(crate) spec: NodeSpec,
    pub(crate) status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    #[serde(rename = "providerID")]
    pub(crate) provider_id: String,
    /// As they stand there: a patch tests all of them, whatever they have that is not known here.
    pub(crate) taints: Option<Vec<Value>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeStatus {
    pub(crate) node_info: NodeInfo,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) addresses: Vec<Address>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Address {
    pub(crate) r#type: String,
    pub(crate) address: String,
}

impl Node {
    /// The addresses that its kubelet says it has, of whatever kind; a name is none.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let all = self.status.addresses.iter().filter_map(|one| one.address.parse::<IpAddr>().ok());
        all.map(|address| address.to_canonical())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeInfo {
    #[serde(rename = "systemUUID")]
    pub(crate) system_uuid: String,
    #[serde(rename = "bootID")]
    pub(crate) boot_id: String,
    #[serde(rename = "machineID")]
    pub(crate) machine_id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    pub(crate) r#type: String,
    pub(crate) status: String,
}

/// What a kubelet renews while it lives.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lease {
    pub(crate) spec: LeaseSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LeaseSpec {
    pub(crate) renew_time: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    pub(crate) spec: PodSpec,
    pub(crate) status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodSpec {
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) volumes: Vec<Volume>,
}

/// A volume of a pod; what it is, is said by a key of that name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Volume {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) source: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Claim {
    pub(crate) spec: ClaimSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClaimSpec {
    pub(crate) volume_name: String,
}

/// What it is, is said by a key of that name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PersistentVolume {
    pub(crate) spec: Map<String, Value>,
}

impl PersistentVolume {
    /// Its CSI driver.
    pub(crate) fn driver(&self) -> Option<&str> {
        self.spec.get("csi")?["driver"].as_str()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CsiDriver {
    pub(crate) metadata: Metadata,
    pub(crate) spec: CsiDriverSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CsiDriverSpec {
    pub(crate) attach_required: Option<bool>,
}

/// The CSI drivers that registered with one kubelet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CsiNode {
    pub(crate) metadata: Metadata,
    pub(crate) spec: CsiNodeSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CsiNodeSpec {
    /// `null`: none.
    pub(crate) drivers: Option<Vec<CsiNodeDriver>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CsiNodeDriver {
    pub(crate) name: String,
    /// What the driver calls the node.
    #[serde(rename = "nodeID")]
    pub(crate) node_id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodStatus {
    pub(crate) phase: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Toleration {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) value: String,
    pub(crate) effect: String,
    pub(crate) toleration_seconds: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeAttachment {
    pub(crate) metadata: Metadata,
    pub(crate) spec: VolumeAttachmentSpec,
    pub(crate) status: VolumeAttachmentStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VolumeAttachmentStatus {
    pub(crate) attached: bool,
    /// What the attacher said when it had attached it.
    pub(crate) attachment_metadata: BTreeMap<String, String>,
    /// Why it could not detach it.
    pub(crate) detach_error: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VolumeAttachmentSpec {
    pub(crate) attacher: String,
    pub(crate) node_name: String,
    pub(crate) source: Source,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Source {
    pub(crate) persistent_volume_name: Option<String>,
}
