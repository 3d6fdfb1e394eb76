//! The release of volumes, one by one.

use picket_core::ids::{NodeId, ReleaseId};
use picket_engine::PlannedRelease;
use picket_release::{Devices, ForNode};

/// Its name.
pub(crate) const VOLUMES: &str = "volumes";

/// That of a node with these devices.
pub(super) fn of(node: &NodeId, devices: &Devices) -> PlannedRelease {
    let deadline = ("deadline".to_owned(), "300s".into());
    let settings = [deadline].into_iter().collect();
    let releaser = picket_release::make(VOLUMES, "volumes", &settings).expect("good settings");
    let whose = ForNode { id: node, provider_id: None, devices };
    PlannedRelease {
        id: ReleaseId::new(VOLUMES).expect("a good name"),
        releaser: releaser.of_node(&whose).expect("it knows volumes").expect("it works by a device"),
    }
}
