//! What goes between a driver and a simulated device.

use std::time::Duration;

use picket_core::device::Identity;
use picket_core::power::Power;
use picket_core::time::BootTime;
use picket_driver::{Standing, Volume, VolumeAt};
use serde::{Deserialize, Serialize};

use crate::machine::RestorePolicy;

/// A session of one device; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u64);

/// A command that changes power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Switch off, hard.
    Off,
    /// Switch on.
    On,
}

/// What a device keeps that decides whether its machine comes back by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldSettings {
    /// What happens when the mains come back.
    pub restore: RestorePolicy,
    /// Whether the watchdog timer runs and may power-cycle the machine.
    pub watchdog: bool,
    /// Whether the power button does nothing.
    pub button_locked: bool,
}

impl HoldSettings {
    /// A machine that nobody holds.
    pub const FREE: Self = Self { restore: RestorePolicy::LastState, watchdog: true, button_locked: false };
    /// A machine that is kept off by its device.
    pub const HELD: Self = Self { restore: RestorePolicy::AlwaysOff, watchdog: false, button_locked: true };
}

/// What is asked of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begin a session.
    Open,
    /// End this session.
    Close,
    /// End another session.
    End(SessionId),
    /// Tell the power.
    Read,
    /// Change the power.
    Command(Verb),
    /// Tell what is controlled.
    Identify,
    /// Tell on which machine the device's own runs.
    Place,
    /// Tell the settings of the hold.
    InspectHold,
    /// Set the settings of the hold. The watchdog is never started by it (S11).
    SetHold(HoldSettings),
    /// Tell what is attached to the device's machine. Like all questions about volumes it belongs to no session.
    Volumes,
    /// Tell how far a volume is.
    Standing(VolumeAt),
    /// Let a volume go.
    Detach {
        /// Which, and where it is attached.
        at: VolumeAt,
        /// Also where writes may be lost.
        forced: bool,
        /// Refused where it arrives later.
        not_after: BootTime,
    },
    /// Anything that whoever carries real packets answers by itself: it keeps its session alive and changes nothing.
    Touch,
}

impl Request {
    /// Whether it is asked of whoever attaches volumes, in no session.
    pub(crate) fn is_about_volumes(&self) -> bool {
        matches!(self, Request::Volumes | Request::Standing(_) | Request::Detach { .. })
    }
}

/// What a device answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// A session began.
    Opened(SessionId),
    /// The session ended.
    Closed,
    /// What it says of power.
    Power(Power),
    /// It took the command.
    Took {
        /// It says that it was in that state already.
        already: bool,
    },
    /// What it says it controls.
    Identity(Identity),
    /// The settings of the hold.
    Hold(HoldSettings),
    /// On which machine its own runs, and why it may be about to run elsewhere.
    Placed {
        /// What its owner calls it.
        host: String,
        /// In words.
        moving: Option<String>,
    },
    /// What is attached.
    Volumes(Vec<Volume>),
    /// How far a volume is.
    Standing(Standing),
    /// A [`Request::Touch`] came in its session.
    Touched,
}

/// Why there is no such answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing came. What was asked may have happened.
    Silence,
    /// It does not know the session: what was asked did not happen.
    NoSession,
    /// All its sessions are taken.
    SessionsFull,
    /// It refused the credentials.
    Password,
    /// It is busy; try again.
    Busy,
    /// It refused an off because it is off, or an on because it is on ("not supported in present state").
    AlreadySo,
    /// It refused without a reason.
    Refused,
    /// The account may not do this.
    Forbidden,
    /// It cannot do this at all.
    Unsupported,
}

/// An answer, and how much later than usual it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Beyond the usual way there and back.
    pub late_by: Duration,
    /// What came.
    pub what: Result<Response, Trouble>,
}

/// A command that arrived at a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When.
    pub at: BootTime,
    /// The device.
    pub device: String,
    /// The command.
    pub verb: Verb,
    /// The session in which it came; `None` at a device without sessions.
    pub session: Option<SessionId>,
    /// It came late, or was a duplicate.
    pub late: bool,
    /// It was looked at; `false`: its session was over, and it was thrown away.
    pub executed: bool,
}
