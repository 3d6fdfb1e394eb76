//! How following one node ended.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_proto::v1::{DeviceReading, FenceUpdate, Outcome};

use super::Motion;
use crate::exit::Exit;
use crate::told::Told;

/// How it ended.
#[derive(Clone, Debug)]
pub enum End {
    /// The gateway told the outcome.
    Outcome(Outcome),
    /// The gateway refused.
    Refused(Told),
    /// The way to the gateway broke, and stayed broken; why.
    Lost(String),
    /// The command's time was over first.
    TimedOut,
    /// Somebody interrupted the command.
    Interrupted,
}

/// One node that was followed to its end.
#[derive(Debug)]
pub struct Followed {
    /// The node.
    pub node: String,
    /// What was asked for.
    pub motion: Motion,
    /// The newest message, with the evidence and the releases that still count.
    pub latest: Option<FenceUpdate>,
    /// What each device read last while it was followed, by its name.
    pub readings: BTreeMap<String, DeviceReading>,
    /// How it ended.
    pub end: End,
    /// Since it was asked for.
    pub took: Duration,
}

impl Followed {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match &self.end {
            End::Outcome(outcome) => self.motion.exit(outcome),
            End::Refused(told) => told.exit(),
            End::Lost(_) => Exit::Unreachable,
            End::TimedOut => Exit::TimedOut,
            End::Interrupted => Exit::Interrupted,
        }
    }
}
