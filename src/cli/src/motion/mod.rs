//! What sets a node in motion, and streams until its outcome.

mod end;
mod node_progress;

use std::pin::Pin;

pub use end::{FollowEnd, FollowedNode};
pub use node_progress::NodeProgress;
use picket_proto::v1::{
    AttestRequest, DrillRequest, FenceRequest, FenceThen, FenceUntil, FenceUpdate, Outcome, OutcomeKind,
    RetryRequest, StandDownRequest, UnfenceRequest,
};
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use crate::connect::Client;
use crate::exit::Exit;

/// Messages until the outcome.
pub type Updates = Pin<Box<dyn Stream<Item = Result<FenceUpdate, Status>> + Send>>;

/// A request whose stream is followed. Sent again as it is it follows the same motion: its key says so.
#[derive(Clone, Debug)]
pub enum Motion {
    /// Switch it off.
    Fence(FenceRequest),
    /// Drop a hold, bring it back.
    Unfence(UnfenceRequest),
    /// Try it again.
    Retry(RetryRequest),
    /// It was alive.
    StandDown(StandDownRequest),
    /// It is off, on a person's word.
    Attest(AttestRequest),
    /// Off on purpose, and back.
    Drill(DrillRequest),
}

macro_rules! updates {
    ($answer:expr) => {
        Box::pin($answer.await?.into_inner().filter_map(|message| match message {
            Ok(message) => message.update.map(Ok),
            Err(status) => Some(Err(status)),
        }))
    };
}

impl Motion {
    /// Sends the request and opens its stream.
    pub async fn open(&self, client: &mut Client) -> Result<Updates, Status> {
        Ok(match self.clone() {
            Motion::Fence(request) => updates!(client.fence(request)),
            Motion::Unfence(request) => updates!(client.unfence(request)),
            Motion::Retry(request) => updates!(client.retry(request)),
            Motion::StandDown(request) => updates!(client.stand_down(request)),
            Motion::Attest(request) => updates!(client.attest(request)),
            Motion::Drill(request) => updates!(client.drill(request)),
        })
    }

    /// Its idempotency key.
    pub fn key(&self) -> &str {
        match self {
            Motion::Fence(request) => &request.idempotency_key,
            Motion::Unfence(request) => &request.idempotency_key,
            Motion::Retry(request) => &request.idempotency_key,
            Motion::StandDown(request) => &request.idempotency_key,
            Motion::Attest(request) => &request.idempotency_key,
            Motion::Drill(request) => &request.idempotency_key,
        }
    }

    /// Whether the node is brought back by itself once everything is released.
    pub fn powers_on(&self) -> bool {
        matches!(self, Motion::Fence(request) if request.then == i32::from(FenceThen::PowerOn) && !request.dry_run)
    }

    /// Whether it ends with a proof that the node is off, or should.
    pub fn proves(&self) -> bool {
        match self {
            Motion::Fence(request) => !request.dry_run,
            Motion::Retry(_) | Motion::Attest(_) => true,
            Motion::Unfence(_) | Motion::StandDown(_) | Motion::Drill(_) => false,
        }
    }

    /// What goes on when whoever follows it leaves.
    pub fn noun(&self) -> &'static str {
        match self {
            Motion::Fence(_) => "fence",
            Motion::Unfence(_) => "unfence",
            Motion::Retry(_) => "retry",
            Motion::StandDown(_) => "stand-down",
            Motion::Attest(_) => "release",
            Motion::Drill(_) => "drill",
        }
    }

    /// The exit code of an outcome, for one who asked for this.
    pub fn exit(&self, outcome: &Outcome) -> Exit {
        let kind = OutcomeKind::try_from(outcome.kind).unwrap_or(OutcomeKind::Unspecified);
        match (self, kind) {
            (Motion::Fence(request), OutcomeKind::Fenced | OutcomeKind::AlreadyFenced) => {
                // Of a dry run as of a plan: nothing would be refused.
                let confirmed_will_do = request.dry_run || request.until == i32::from(FenceUntil::Confirmed);
                if outcome.released || confirmed_will_do { Exit::Done } else { Exit::Failed }
            }
            (Motion::Fence(request), OutcomeKind::DryRun) if request.dry_run => Exit::Done,
            (Motion::Retry(_), OutcomeKind::Fenced | OutcomeKind::AlreadyFenced) => Exit::Done,
            (Motion::Unfence(_) | Motion::Retry(_) | Motion::StandDown(_), OutcomeKind::Unfenced) => {
                Exit::Done
            }
            (Motion::StandDown(_), OutcomeKind::StoodDown) | (Motion::Drill(_), OutcomeKind::Unfenced) => {
                Exit::Done
            }
            (Motion::Drill(request), OutcomeKind::DryRun) if request.dry_run => Exit::Done,
            (Motion::Attest(_), OutcomeKind::Fenced) if outcome.released => Exit::Done,
            (Motion::Attest(_), OutcomeKind::Fenced) => Exit::Failed,
            (_, OutcomeKind::Blocked | OutcomeKind::StillHeld) => Exit::Blocked,
            (_, OutcomeKind::NeedsOperator | OutcomeKind::PowerOnFailed) => Exit::NeedsOperator,
            (_, OutcomeKind::AbortedRecovered) => Exit::Recovered,
            (
                _,
                OutcomeKind::Superseded
                | OutcomeKind::StoodDown
                | OutcomeKind::Retired
                | OutcomeKind::Unfenced
                | OutcomeKind::Fenced
                | OutcomeKind::AlreadyFenced,
            ) => Exit::Overtaken,
            (_, OutcomeKind::DryRun | OutcomeKind::Unspecified) => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(motion: &Motion, kind: i32, released: bool) -> Exit {
        motion.exit(&Outcome { kind, released, ..Default::default() })
    }

    #[test]
    fn only_what_was_asked_for_is_done() {
        let fence = Motion::Fence(FenceRequest::default());
        assert_eq!(exit(&fence, OutcomeKind::Fenced.into(), true), Exit::Done);
        assert_eq!(exit(&fence, OutcomeKind::Fenced.into(), false), Exit::Failed, "released was asked for");
        let until = FenceUntil::Confirmed.into();
        let confirmed = Motion::Fence(FenceRequest { until, ..Default::default() });
        assert_eq!(exit(&confirmed, OutcomeKind::Fenced.into(), false), Exit::Done);
        assert_eq!(exit(&fence, OutcomeKind::DryRun.into(), false), Exit::Failed, "no dry run was asked for");
        let dry = Motion::Fence(FenceRequest { dry_run: true, ..Default::default() });
        assert_eq!(exit(&dry, OutcomeKind::AlreadyFenced.into(), false), Exit::Done, "as of a plan");
        assert_eq!(exit(&dry, OutcomeKind::Blocked.into(), false), Exit::Blocked);
        let unfence = Motion::Unfence(UnfenceRequest::default());
        assert_eq!(exit(&unfence, OutcomeKind::Unfenced.into(), false), Exit::Done);
        assert_eq!(exit(&unfence, OutcomeKind::StillHeld.into(), false), Exit::Blocked);
        assert_eq!(exit(&unfence, OutcomeKind::Fenced.into(), true), Exit::Overtaken);
    }

    #[test]
    fn no_outcome_and_an_unknown_one_are_never_good() {
        for kind in [0, 4711] {
            assert_eq!(exit(&Motion::Fence(FenceRequest::default()), kind, true), Exit::Failed);
        }
    }
}
