//! The traits: of whatever lets volumes go, and of what is let go part by part.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::release::{Found, Progress, ReleaseError, Subject};
use picket_core::ground::ReleasePermit;
use picket_core::ids::{DeviceId, NodeId};
use picket_core::order::ReleaseOrder;
use picket_core::record::Part;
use picket_driver::{Call, PowerDriver};
use tokio::time::Instant;

use crate::pace::Pace;
use crate::quarantine::Quarantine;

/// A node's devices, by their drivers.
pub type Devices = BTreeMap<DeviceId, Arc<dyn PowerDriver>>;

/// Whose volumes are to be let go.
#[derive(Clone, Copy, Debug)]
pub struct ForNode<'n> {
    /// The node.
    pub id: &'n NodeId,
    /// What its cloud is told by, where the settings say it.
    pub provider_id: Option<&'n str>,
    /// Its devices.
    pub devices: &'n Devices,
}

/// A release that is made of parts: what they are is asked for, and each is let go, and followed, for itself.
#[async_trait]
pub trait InParts: Send + Sync + std::fmt::Debug {
    /// The device of the node that is asked, and told.
    fn device(&self) -> &DeviceId;

    /// What of it the settings choose, in words.
    fn choice(&self) -> String;

    /// What is attached now, freshly asked for. An error says that it could not be told in full.
    async fn survey(&self, call: &Call) -> Result<Found, ReleaseError>;

    /// Whether a late attempt does more than one before: by force, which ends what was taken and comes to no end.
    fn forces(&self) -> bool {
        false
    }

    /// For how long no attempt may go, by what the far side bears; `None`: one may now.
    fn turn(&self) -> Option<Duration> {
        None
    }

    /// One attempt for one part, sent at once and once. `late`: half of the time that it has is over.
    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        part: &Part,
        late: bool,
        call: &Call,
    ) -> Result<Progress, ReleaseError>;

    /// Looks how far one part is; changes nothing. [`Progress::NotThere`]: nothing is under way, and a new attempt is due; an
    /// earlier one may land yet.
    async fn observe(&self, part: &Part, call: &Call) -> Result<Progress, ReleaseError>;
}

/// One way to let volumes go.
#[async_trait]
pub trait Releaser: Send + Sync + std::fmt::Debug {
    /// How long an attempt may still take effect after its sender stopped (S8); `None`: nothing bounds it.
    fn max_in_flight(&self) -> Option<Duration>;

    /// What it will need of this machine and does not find now, in words: no fault, it may be there by then. Told by `picketd --check` and at
    /// the start. Sends nothing.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// How long it may take.
    fn pace(&self) -> Pace;

    /// How long the whole release may take before a person is asked.
    fn deadline(&self) -> Duration {
        self.pace().deadline
    }

    /// Least time between the confirmed Off and the first attempt (S23).
    fn settle(&self) -> Duration {
        self.pace().settle
    }

    /// How long one attempt, or one look, may take: what `until` is best set to.
    fn attempt_time(&self) -> Duration {
        self.pace().attempt
    }

    /// The same releaser for that node, where it works by one of its devices, or by its name: what is shared by nodes knows none. `None`: it
    /// needs none.
    ///
    /// # Errors
    /// It needs one that the node does not have, and what would be right.
    fn of_node(&self, node: &ForNode<'_>) -> Result<Option<Arc<dyn Releaser>>, String> {
        let _ = node;
        Ok(None)
    }

    /// Whether a cloud lets go with its own hands what this one should have, once its deadline is over (S23): a release in parts that
    /// stands behind it.
    fn passes_on(&self) -> bool {
        false
    }

    /// The cluster that it lets volumes go in, where that is told around a fence what it may do with the node; `None`: nobody is told.
    fn quarantine(self: Arc<Self>) -> Option<Arc<dyn Quarantine>> {
        None
    }

    /// What it lets go part by part; `None`: it is attempted as a whole.
    fn in_parts(&self) -> Option<&dyn InParts> {
        None
    }

    /// One attempt. Returns before `until`.
    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError>;

    /// Looks how far an accepted attempt is; changes nothing. Returns before `until`.
    async fn observe(&self, subject: &Subject, until: Instant) -> Result<Progress, ReleaseError>;
}
