//! What is looked at of a Node.

use std::collections::BTreeMap;
use std::time::Duration;

/// A moment on the controller's own monotonic clock, since its process began.
pub type Moment = Duration;

/// Labels that say that a Node is one of the control plane, or has a member of an etcd.
const CONTROL_PLANE: [&str; 3] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/etcd",
];
const ZONE: &str = "topology.kubernetes.io/zone";

/// One condition of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When it turned so, as the API says: it names the turn, and is compared with no clock.
    pub turned: String,
}

/// A Node, as the API server has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its UID: another one of that name has another.
    pub uid: String,
    /// The life of the machine's kernel; empty where no kubelet has told any.
    pub boot_id: String,
    /// `spec.providerID`; empty: none.
    pub provider_id: String,
    /// The machine's system UUID; empty: none.
    pub system_uuid: String,
    /// Its conditions, by type.
    pub conditions: BTreeMap<String, Condition>,
    /// Whether it is cordoned.
    pub cordoned: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Node {
    /// Whether it is one of the control plane, or has a member of an etcd (K11).
    pub fn is_control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|label| self.labels.contains_key(*label))
    }

    /// Its zone; empty where it has none.
    pub fn zone(&self) -> &str {
        self.labels.get(ZONE).map_or("", String::as_str)
    }

    /// Whether it says that it is Ready.
    pub fn is_ready(&self) -> bool {
        self.conditions.get("Ready").is_some_and(|ready| ready.status == "True")
    }

    /// Whether it says that it is not. One of which nothing is told yet has not failed.
    pub fn has_failed(&self) -> bool {
        self.conditions.get("Ready").is_some_and(|ready| ready.status != "True")
    }
}
