//! What a command did, node by node, for scripts.

use serde::Serialize;

use super::evidence::{EvidenceView, ReleaseView};
use super::outcome::OutcomeView;
use super::{filled, words};
use crate::exit::Exit;
use crate::gateway_error::GatewayError;
use crate::motion::{FollowEnd, FollowedNode};

/// The document of a command that changes something.
#[derive(Debug, Serialize)]
pub struct Results {
    results: Vec<ResultView>,
    exit_code: u8,
}

/// One node.
#[derive(Debug, Serialize)]
pub struct ResultView {
    node: String,
    exit_code: u8,
    outcome: Option<OutcomeView>,
    error: Option<GatewayError>,
    /// Why it was not followed to its end: `lost`, `timed_out`, `interrupted`.
    left: Option<&'static str>,
    phase: Option<String>,
    fence_id: Option<String>,
    generation: Option<u64>,
    evidence: Option<EvidenceView>,
    releases: Vec<ReleaseView>,
    took_s: f64,
    idempotency_key: Option<String>,
}

impl Results {
    /// Of nodes that were followed.
    pub fn of_followed(followed: &[FollowedNode], exit: Exit) -> Self {
        Self { results: followed.iter().map(ResultView::from).collect(), exit_code: exit.code() }
    }

    /// Of calls that were answered at once.
    pub fn of_calls(calls: Vec<ResultView>, exit: Exit) -> Self {
        Self { results: calls, exit_code: exit.code() }
    }
}

impl ResultView {
    /// Of one call that was answered at once.
    pub fn of_call(node: &str, answer: &Result<picket_proto::v1::Node, GatewayError>) -> Self {
        let exit = answer.as_ref().err().map_or(Exit::Done, GatewayError::exit);
        let node_now = answer.as_ref().ok();
        Self {
            node: node.to_owned(),
            exit_code: exit.code(),
            outcome: None,
            error: answer.as_ref().err().cloned(),
            left: None,
            phase: node_now.and_then(|node| words::phase(node.phase)),
            fence_id: node_now.and_then(|node| filled(&node.fence_id)),
            generation: node_now.map(|node| node.generation),
            evidence: None,
            releases: Vec::new(),
            took_s: 0.0,
            idempotency_key: None,
        }
    }
}

impl From<&FollowedNode> for ResultView {
    fn from(followed: &FollowedNode) -> Self {
        let latest = followed.latest.as_ref();
        let (mut outcome, mut error, mut left) = (None, None, None);
        match &followed.end {
            FollowEnd::Outcome(end) => outcome = Some(OutcomeView::from(end)),
            FollowEnd::Refused(told) => error = Some(told.clone()),
            FollowEnd::Lost(_) => left = Some("lost"),
            FollowEnd::TimedOut => left = Some("timed_out"),
            FollowEnd::Interrupted => left = Some("interrupted"),
        }
        Self {
            node: followed.node.clone(),
            exit_code: followed.exit().code(),
            outcome,
            error,
            left,
            phase: latest.and_then(|update| words::phase(update.phase)),
            fence_id: latest.and_then(|update| filled(&update.fence_id)),
            generation: latest.map(|update| update.generation),
            evidence: latest.and_then(|update| update.evidence.as_ref()).map(EvidenceView::from),
            releases: latest
                .map(|update| update.releases.iter().map(ReleaseView::from).collect())
                .unwrap_or_default(),
            took_s: followed.took.as_secs_f64(),
            idempotency_key: filled(followed.motion.key()),
        }
    }
}
