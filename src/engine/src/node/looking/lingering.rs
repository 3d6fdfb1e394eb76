//! Readings that go on beside the node's own work.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use picket_core::ground::Look;
use picket_core::ids::DeviceId;

use super::on;
use crate::node::hands::{Did, Doing};

/// Readings that a look did not wait for. Nothing else may be asked of these devices before they are gone on with or dropped: it would
/// wait for them.
#[derive(Debug, Default)]
pub(in crate::node) struct Lingering {
    pub(super) devices: BTreeSet<DeviceId>,
    /// None in a node at rest.
    doing: Option<Mutex<FuturesUnordered<Doing>>>,
    /// What came of them since the last look.
    pub(super) heard: Vec<Look>,
}

impl Lingering {
    pub(in crate::node) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn doing(&mut self) -> &mut FuturesUnordered<Doing> {
        self.doing.get_or_insert_default().get_mut()
    }

    /// What the next one came to; `None`: none is under way.
    pub(in crate::node) async fn next(&mut self) -> Option<(DeviceId, Did)> {
        let doing = self.doing.as_mut()?.get_mut();
        let (device, did) = doing.next().await?;
        self.devices.remove(&device);
        Some((device, did))
    }

    /// The next look hears these, too: what was asked says something, whoever asked.
    pub(in crate::node) fn hear_next(&mut self, looks: Vec<Look>) {
        self.heard.extend(looks.into_iter().filter(|look| look.reading.is_some()));
    }

    /// Something reads On by what the next look hears: that is due at once.
    pub(in crate::node) fn hears_on(&self) -> bool {
        on(&self.heard).next().is_some()
    }

    pub(super) fn is_asking(&self, devices: &[DeviceId]) -> bool {
        devices.iter().any(|device| self.devices.contains(device))
    }
}
