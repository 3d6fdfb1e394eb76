//! The trait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::release::{Found, Left, LetOn, Prepared, Progress, ReleaseError, Subject, Whose};
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use picket_core::ground::ReleasePermit;
use picket_core::ids::{DeviceId, NodeId};
use picket_core::order::ReleaseOrder;
use picket_core::power::Power;
use picket_core::record::Part;
use picket_core::restore::Lives;
use picket_driver::{Call, PowerDriver};
use tokio::time::Instant;

use crate::pace::Pace;

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

/// What the far side says of a machine of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// What its cloud calls it.
    pub provider_id: Option<String>,
    /// What it says of itself.
    pub identity: Identity,
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

    /// What an attempt sets up, and lets volumes go for as long as it stands (a taint): for how long after it was seen to be gone it may
    /// still be acted on. `None`: an attempt sets up nothing.
    fn lingers(&self) -> Option<Duration> {
        None
    }

    /// Whether its far side knows the node, or may know it, by a name alone: by the settings, or as nothing else was found that says which machine it
    /// is. The fence's evidence is graded one step lower then: it says of a machine that it is off, and less of whom is let go (K1). Asked again for each
    /// proof.
    fn by_name_alone(&self) -> bool {
        false
    }

    /// Takes away what attempts for that node set up, whoever made them; it wants no permit, and may be asked at any time. `Ok`: it was seen
    /// to be gone, or not to be there, and what was sent before and goes by what was read is refused. Returns before `until`.
    async fn withdraw(&self, whose: &Whose, until: Instant) -> Result<(), ReleaseError> {
        let _ = (whose, until);
        Ok(())
    }

    /// Takes away what is left of earlier fences of a node that is back, as soon as that may be; it wants no permit. `Some`: what that
    /// waits for; it is asked again. What a later generation left is not touched: whoever asks may have stood still since. Returns before
    /// `until`.
    async fn tidy(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        let _ = (left, until);
        Ok(None)
    }

    /// Says at the far side that the node is being fenced, so that nothing new is given to it and nobody else lets go what is its (K2, K8):
    /// before it is off, beside the off, and never a condition of it. What it sets up lets nothing go, and [`Releaser::tidy`] takes it
    /// away. Asked only of what lingers. Answers whom the far side has for the node, in its own words. Returns before `until`.
    async fn announce(&self, subject: &Subject, until: Instant) -> Result<Option<String>, ReleaseError> {
        let _ = (subject, until);
        Ok(None)
    }

    /// Keeps whoever else remediates machines away from the one that was met (K8), beside all else and for as long as the node is fenced; nothing
    /// waits for it. What it sets up lets nothing go, and [`Releaser::unspare`] takes it away. Asked only of what lingers. Returns before
    /// `until`.
    async fn spare(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        let _ = (subject, until);
        Ok(())
    }

    /// Whether what it takes away of a node that is back goes by whom it met in the fence, so that a gateway that leads since then is told that
    /// ([`Left::met_last`]).
    fn recalls(&self) -> bool {
        false
    }

    /// Takes away what [`Releaser::spare`] set up, once [`Releaser::tidy`] has nothing more to do. `Some`: what it waits for; it is asked again.
    /// What a later generation set up is not touched. Returns before `until`.
    async fn unspare(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        let _ = (left, until);
        Ok(None)
    }

    /// Reads what the next attempt goes by, before power is read and the store is asked for the last time: what such an attempt changes
    /// it changes only as it was read. Asked only of what lingers. Changes nothing. Returns before `until`.
    async fn prepare(&self, subject: &Subject, until: Instant) -> Result<Prepared, ReleaseError> {
        let _ = (subject, until);
        Ok(Prepared::default())
    }

    /// Looks once more before the node is switched on (K2). Asked only of what lingers. Changes nothing, but on whom it finds to
    /// be another machine. [`ReleaseError::DidNotHappen`], [`ReleaseError::Barred`]: the on must not go now, and why; [`ReleaseError::Replaced`]: as for
    /// [`Releaser::recognise`]; [`ReleaseError::Unknown`]: nobody answers. Returns before `until`.
    async fn lets_on(&self, subject: &Subject, until: Instant) -> Result<LetOn, ReleaseError> {
        let _ = (subject, until);
        Ok(LetOn::default())
    }

    /// Whether the far side has another machine for the node by now than was met when the fence began (K1): asked again and again while the node
    /// is kept off, of what lingers, where somebody was met. [`ReleaseError::Replaced`]: another one, and what was set up is taken from it.
    /// Returns before `until`.
    async fn recognise(&self, subject: &Subject, until: Instant) -> Result<(), ReleaseError> {
        let _ = (subject, until);
        Ok(())
    }

    /// Whether who manages machines takes this one away for good (K8): switched on for that it is no failure of the fence, and whoever fences it
    /// again and again fights with them. Asked when a node was found on, of what lingers. In words. Returns before `until`.
    async fn is_going(&self, subject: &Subject, until: Instant) -> Option<String> {
        let _ = (subject, until);
        None
    }

    /// Whether it would find what it lets go, as far as that can be told beforehand: what is wrong, in words. Asked with each check of the
    /// node's devices, of what lingers. Changes nothing. Returns before `until`.
    async fn check(&self, identities: &[Identity], until: Instant) -> Vec<String> {
        let _ = (identities, until);
        Vec::new()
    }

    /// What all of the node's host devices read in a check, after what [`Releaser::check`] found in the same one: on where one of them reads on, off where
    /// all do. A far side that has a machine which lives, while they read off, has another one (K1). Told of what lingers.
    fn reads(&self, power: Power) {
        let _ = power;
    }

    /// By what the gateway's store is known again: what was noted at the far side in the name of another store is neither used nor removed (K7). Told
    /// at the beginning of each leadership, before anything else is asked.
    fn serves(&self, store: &Arc<Lives>) {
        let _ = store;
    }

    /// What the far side says of the machine that it has for the node, and who says so, in words: found without what the node's devices
    /// say, so that what was learned from a device can be compared with it (S13). `None`: it says nothing. Asked with each check, of
    /// what lingers. Changes nothing. Returns before `until`.
    async fn machine(&self, until: Instant) -> Option<(Identity, String)> {
        let _ = until;
        None
    }

    /// Whether that Node of Kubernetes is the one that it has for the node, by whatever it finds it (K1). `None`: it knows no such Nodes. Asked
    /// before anything is begun for a caller who names one. Changes nothing. Returns before `until`.
    async fn has(&self, node: &ClusterNode, identities: &[Identity], until: Instant) -> Option<Belongs> {
        let _ = (node, identities, until);
        None
    }

    /// Whether it finds a node's machine at its far side otherwise than by the node's name.
    fn finds_otherwise(&self) -> bool {
        false
    }

    /// The machine that has this name at its far side: a gateway that runs there knows by it which of its nodes that is (S17). Changes nothing.
    ///
    /// # Errors
    /// That is not told now.
    async fn machine_named(&self, _name: &str, _until: Instant) -> Result<Machine, String> {
        Err("it knows no machines by name".to_owned())
    }

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
