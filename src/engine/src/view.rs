//! What can be seen of a node at a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::device::{Identity, IdentityMatch};
use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::power::{Power, Reading};
use picket_core::store::Stored;
use picket_core::time::WallTime;
use picket_driver::ErrorKind;

use crate::parts::node_plan::NodePlan;

/// What is being waited for. Every wait is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What for (`off of bmc to fall`).
    pub what: String,
    /// On whom it depends (`bmc`, `release detach`, `an operator`).
    pub whose: String,
    /// Until when at most.
    pub until: Option<WallTime>,
}

/// A check of a device that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// When it ended.
    pub at: WallTime,
    /// How long it took.
    pub took: Duration,
    /// Whether it can be told to stay off; `None`: it did not come so far.
    pub holds: Option<bool>,
    /// What its driver has to say of it that is no fault, for people.
    pub remarks: Vec<String>,
    /// What keeps a fence from its end by it, for people.
    pub obstacles: Vec<String>,
}

/// Whose a wait is, while it is asked whether the node recovered (S15): in vain, the fence goes on.
pub const LIVENESS_SOURCE: &str = "its liveness source";

/// Whose a wait is, while a release is to complete: at its end people are asked.
pub fn whose_release(id: &ReleaseId) -> String {
    format!("release {id}")
}

/// What a device showed last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceLive {
    /// What it said of power, and when it was asked.
    pub power: Option<(Power, WallTime)>,
    /// The last reading as it was taken; `None` where the last call brought none.
    pub reading: Option<Reading>,
    /// How long the last reading took that came to an answer.
    pub reading_took: Option<Duration>,
    /// Its own words.
    pub said: String,
    /// The last error and when it happened; gone with the next answer.
    pub fault: Option<(String, WallTime)>,
    /// The stable kind of that error.
    pub fault_kind: Option<ErrorKind>,
    /// What it says it controls.
    pub identity: Option<Identity>,
    /// Whether that is what is expected.
    pub identity_match: Option<IdentityMatch>,
    /// Its last check.
    pub checked: Option<Checked>,
    /// How it refused the last off or on that it was told, in words: no wait changes that.
    pub refused: Option<String>,
}

/// What is known and not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// By device.
    pub devices: BTreeMap<DeviceId, Arc<DeviceLive>>,
    /// What is being waited for.
    pub wait: Option<Wait>,
    /// This leadership holds a proof that the node is off.
    pub proven: bool,
    /// Why nothing is sent to the node any more: it is an orphan. `None`: it is none.
    pub orphaned: Option<String>,
    /// A round of its open fence's levels came to its end, and no off was stored since: they are tried anew until its deadline (S16).
    pub unreached: bool,
    /// Releases at whose far sides it is not seen to be back, long after it was switched on: what its fence left stands there (K2).
    pub not_back: BTreeSet<ReleaseId>,
    /// Releases at whose far sides it is not told yet that the node is being fenced, and why (K9): what keeps new work away does not stand, and
    /// whom they have for it is not known.
    pub unannounced: BTreeMap<ReleaseId, String>,
}

/// A node at a moment.
#[derive(Clone, Debug)]
pub struct NodeView {
    /// What is stored; version 0: nothing yet.
    pub stored: Arc<Stored>,
    /// What is known besides.
    pub live: Arc<Live>,
    /// What the settings say.
    pub plan: Arc<NodePlan>,
}

impl NodeView {
    /// The power as the host devices say it: all Off is Off, any On is On, else Unknown; with the oldest asking.
    pub fn power(&self) -> (Power, Option<WallTime>) {
        let said: Vec<_> = self
            .plan
            .topology
            .hosts()
            .map(|spec| self.live.devices.get(&spec.id).and_then(|device| device.power))
            .collect();
        let oldest = said.iter().flatten().map(|(_, at)| *at).min();
        let powers: Vec<Power> =
            said.iter().map(|said| said.map_or(Power::Unknown, |(power, _)| power)).collect();
        if powers.contains(&Power::On) {
            (Power::On, oldest)
        } else if !powers.is_empty() && powers.iter().all(|power| *power == Power::Off) {
            (Power::Off, oldest)
        } else {
            (Power::Unknown, oldest)
        }
    }
}
