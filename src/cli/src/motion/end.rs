//! How following one node ended.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_proto::v1::{DeviceReading, FenceUpdate, Outcome};

use super::Motion;
use crate::exit::Exit;
use crate::gateway_error::GatewayError;

/// How it ended.
#[derive(Clone, Debug)]
pub enum FollowEnd {
    /// The gateway told the outcome.
    Outcome(Outcome),
    /// The gateway refused.
    Refused(GatewayError),
    /// The way to the gateway broke, and stayed broken; why.
    Lost(String),
    /// The command's time was over first.
    TimedOut,
    /// Somebody interrupted the command.
    Interrupted,
}

/// One node that was followed to its end.
#[derive(Debug)]
pub struct FollowedNode {
    /// The node.
    pub node: String,
    /// What was asked for.
    pub motion: Motion,
    /// The newest message, with the evidence and the releases that still count.
    pub latest: Option<FenceUpdate>,
    /// What each device read last while it was followed, by its name.
    pub readings: BTreeMap<String, DeviceReading>,
    /// How it ended.
    pub end: FollowEnd,
    /// Since it was asked for.
    pub took: Duration,
}

impl FollowedNode {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match &self.end {
            FollowEnd::Outcome(outcome) => self.motion.exit(outcome),
            FollowEnd::Refused(told) => told.exit(),
            FollowEnd::Lost(_) => Exit::Unreachable,
            FollowEnd::TimedOut => Exit::TimedOut,
            FollowEnd::Interrupted => Exit::Interrupted,
        }
    }
}
