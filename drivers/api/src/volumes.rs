//! The volumes of a machine, where whoever controls its power also attaches them: a cloud.
//!
//! **Purpose.** What is attached, letting one go, and how far that is; each one question or one command to
//! the cloud.
//! **Non-goals.** Which of them are to go, when, and how often it is tried: the releaser's and the engine's
//! matter.
//!
//! # Invariants
//!
//! - A detach names the machine *and* the place at which the volume is attached there. A late detach cannot
//!   take the volume from its next owner (S8).
//! - Only the cloud's own clear word says that a volume is free. Shown by
//!   `a_host_device_that_knows_of_volumes_conforms`.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::device::DriverError;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;

use crate::call::Call;

/// One volume that is attached to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// What and where it is.
    pub at: VolumeAt,
    /// Its name, for people and for the settings; empty: it has none.
    pub name: String,
    /// Its tags, or labels, or metadata, as the cloud calls them.
    pub tags: BTreeMap<String, String>,
    /// Why it stays in any case (`it is the root volume`); `None`: it may go.
    pub stays: Option<String>,
}

/// A volume at its place. Stored in the record: it is all that a successor needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeAt {
    /// As the cloud identifies it (`vol-0abc`, a UUID).
    pub id: String,
    /// Where the machine has it, as the cloud's detach wants it (`/dev/vdb`, a device name); empty: the cloud wants none.
    pub device: String,
}

/// How far a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is attached to this machine, and nothing is under way. In words.
    Attached(String),
    /// It is being detached from this machine. In words.
    Going(String),
    /// The cloud says that this machine does not have it (`available`, `in use by 1 other machine`). In words.
    Free(String),
}

/// The volumes of the one machine that a device controls.
#[async_trait]
pub trait Volumes: Send + Sync + std::fmt::Debug {
    /// S8: how long a detach may still take effect after its sender stopped, as the far side bounds it, told now and without any
    /// I/O; `None`: nothing bounds it.
    fn max_in_flight(&self) -> Option<Duration>;

    /// All that is attached now, freshly asked for. What cannot be told in full is an error.
    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError>;

    /// Lets one go: once, without repeating. `Ok`: the cloud took it, or it was not attached there any more. `forced`: also where
    /// the cloud warns of lost writes; only where the settings say so. What could be taken later than
    /// [`ReleaseOrder::life`] is not sent.
    async fn detach(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        forced: bool,
        call: &Call,
    ) -> Result<(), DriverError>;

    /// Whether the cloud knows a forced detach: one that lets go of what a detach that it took does not end.
    fn forces(&self) -> bool {
        false
    }

    /// For how long the far side's limits bear no further detach; `None`: one may go now. Asked before its permit is: who is told to wait
    /// has a place in the order in which that was asked, and asks again then. Told without any I/O.
    fn turn(&self) -> Option<Duration> {
        None
    }

    /// How far it is, freshly asked for.
    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError>;
}
