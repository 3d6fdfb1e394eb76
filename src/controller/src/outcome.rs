//! What a gateway's answer means.

use std::time::Duration;

use picket_proto::DOMAIN;
use picket_proto::v1::{self, ErrorReason, Fence, Outcome, OutcomeKind};
use tonic::Status;
use tonic_types::StatusExt;

use crate::decider::{Phase, RequestOutcome};

/// The end of a request, and what is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeReport {
    /// For the decider.
    pub end: RequestOutcome,
    /// What is noted.
    pub phase: Phase,
    /// The reason of the Event, one word.
    pub reason: &'static str,
    /// In words.
    pub text: String,
    /// The fence said that the node was proven off, and that everything was released.
    pub proven: bool,
}

/// The reason of the Event that tells of that phase.
pub fn reason_of(phase: v1::Phase) -> &'static str {
    match phase {
        v1::Phase::Fenced => "Releasing",
        v1::Phase::Released => "Released",
        v1::Phase::Unfencing => "PoweringOn",
        v1::Phase::PowerOnFailed => "PowerOnFailed",
        v1::Phase::NeedsOperator | v1::Phase::Retired => "NeedsOperator",
        v1::Phase::Unspecified | v1::Phase::Normal | v1::Phase::Fencing => "Fencing",
    }
}

impl OutcomeReport {
    fn new(end: RequestOutcome, phase: Phase, reason: &'static str, text: impl Into<String>) -> Self {
        Self { end, phase, reason, text: text.into(), proven: false }
    }

    /// Nothing was asked: somebody else is before us, or nobody could look.
    pub fn held(text: impl Into<String>) -> Self {
        Self::new(RequestOutcome::Held, Phase::Blocked, "FenceWaits", text)
    }

    /// Whoever wanted it does not any more: nothing is asked, or asked again.
    pub fn interrupted(text: impl Into<String>) -> Self {
        Self::new(RequestOutcome::Held, Phase::Blocked, "RemediationOver", text)
    }

    /// It recovered before anything was asked again.
    pub fn recovered(text: impl Into<String>) -> Self {
        Self::new(RequestOutcome::Recovered, Phase::Recovered, "FenceAborted", text)
    }

    /// It was fenced under this key before, and is on its way back.
    pub fn superseded(text: impl Into<String>) -> Self {
        Self::new(RequestOutcome::Superseded, Phase::Returning, "NodeReturning", text)
    }

    /// Nobody was reached.
    pub fn unreached(text: String) -> Self {
        Self::new(RequestOutcome::Blocked(None), Phase::Blocked, "GatewaysUnreachable", text)
    }

    /// Nothing was asked: its machine was switched on and not seen on, which is a person's to mend.
    pub fn not_seen_on(known: &v1::Node) -> Self {
        let v1::Node { name, detail, .. } = known;
        let text = format!(
            "it was switched on and not seen on, and is not fenced again: {detail}. Look at the machine; `picket retry {name}` switches it on \
             once more, and `picket status {name}` says what else there is"
        );
        Self::new(RequestOutcome::Person, Phase::NeedsOperator, "PowerOnFailed", text)
    }

    /// The request itself was refused.
    pub fn refused(text: String) -> Self {
        Self::new(RequestOutcome::Refused, Phase::Refused, "FenceRefused", text)
    }

    /// By a fence of the gateway's; `None`: it is not at its end, which is what is released, and not the proof.
    pub fn of_fence(fence: &Fence, stays: bool) -> Option<Self> {
        let ended = Self::of(fence.outcome.as_ref()?, stays);
        let runs = ended.end == RequestOutcome::Off && !ended.proven && fence.ended_at.is_none();
        (!runs).then_some(ended)
    }

    /// By the gateway's outcome. `stays`: it is not to be powered on afterwards.
    pub fn of(outcome: &Outcome, stays: bool) -> Self {
        let words = |what: &str| match outcome.detail.as_str() {
            "" => what.to_owned(),
            detail => format!("{what}: {detail}"),
        };
        let person = |what: &str| {
            Self::new(RequestOutcome::Person, Phase::NeedsOperator, "NeedsOperator", words(what))
        };
        match outcome.kind() {
            OutcomeKind::Fenced | OutcomeKind::AlreadyFenced => Self {
                end: RequestOutcome::Off,
                phase: if stays { Phase::Fenced } else { Phase::Returning },
                reason: "Fenced",
                text: words(match (outcome.released, stays) {
                    (true, true) => "it is proven off, and everything is released; it stays off",
                    (true, false) => "it is proven off, and everything is released; it is brought back",
                    (false, _) => "it is proven off; not everything is released",
                }),
                proven: outcome.released,
            },
            OutcomeKind::AbortedRecovered => Self::recovered(words("it recovered; no off was sent")),
            OutcomeKind::StoodDown => Self::recovered(words("a person said that it was alive")),
            OutcomeKind::Superseded => {
                let had = outcome.superseded.as_deref();
                let off = had.is_some_and(|had| {
                    matches!(had.kind(), OutcomeKind::Fenced | OutcomeKind::AlreadyFenced) && had.released
                });
                Self { proven: off, ..Self::superseded(words("this fence has ended before")) }
            }
            OutcomeKind::Blocked => {
                let limit = outcome.limit.as_ref();
                let after = limit.and_then(|limit| limit.retry_after);
                let after = after.and_then(|after| Duration::try_from(after).ok());
                let whose =
                    limit.map_or(String::new(), |limit| format!(" ({}, {})", limit.name, limit.whose));
                let text = words(&format!("nothing was sent{whose}, it is asked again"));
                Self::new(RequestOutcome::Blocked(after), Phase::Blocked, "FenceBlocked", text)
            }
            OutcomeKind::NeedsOperator => {
                person("a person must decide; it is kept off, and is not proven off")
            }
            OutcomeKind::PowerOnFailed => person("it was not seen on in time"),
            OutcomeKind::Retired => person("its hardware is gone for good, as a person said"),
            // Never taken for off.
            _ => Self::refused(words(
                "the gateway answered with an outcome that this controller does not know",
            )),
        }
    }
}

/// What a gateway's refusal says, for programs; `None`: no gateway of ours said it.
pub fn reason(status: &Status) -> Option<ErrorReason> {
    let details = status.get_error_details();
    let info = details.error_info().filter(|info| info.domain == DOMAIN)?;
    Some(ErrorReason::of_word(&info.reason))
}

/// Whether it says something of the way to a gateway, or of one that goes away, rather than of the request.
pub fn is_passing(status: &Status) -> bool {
    let Some(reason) = reason(status) else { return true };
    matches!(
        reason,
        ErrorReason::NotLeader
            | ErrorReason::NoLeader
            | ErrorReason::StoreUnavailable
            | ErrorReason::KubernetesAway
            | ErrorReason::ShuttingDown
            | ErrorReason::Limit
            | ErrorReason::TooSlow
            | ErrorReason::Conflict
            | ErrorReason::NotAfterPassed
    )
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::Limit;
    use tonic::Code;
    use tonic_types::ErrorDetails;

    use super::*;

    fn ended(kind: i32) -> RequestOutcome {
        OutcomeReport::of(&Outcome { kind, ..Outcome::default() }, true).end
    }

    #[test]
    fn only_what_says_that_it_is_off_is_taken_for_off() {
        for kind in 0..20 {
            let is_off = [OutcomeKind::Fenced as i32, OutcomeKind::AlreadyFenced as i32].contains(&kind);
            assert_eq!(ended(kind) == RequestOutcome::Off, is_off, "{kind}");
        }
        assert_eq!(ended(OutcomeKind::NeedsOperator as i32), RequestOutcome::Person);
        assert_eq!(ended(99), RequestOutcome::Refused);
    }

    #[test]
    fn proven_is_what_the_fence_said_and_released_also_where_that_is_history() {
        let fenced = |released| Outcome { kind: OutcomeKind::Fenced as i32, released, ..Outcome::default() };
        assert!(
            OutcomeReport::of(&fenced(true), false).proven
                && !OutcomeReport::of(&fenced(false), false).proven
        );
        let history = |had: Option<Outcome>| {
            let kind = OutcomeKind::Superseded as i32;
            OutcomeReport::of(&Outcome { kind, superseded: had.map(Box::new), ..Outcome::default() }, false)
                .proven
        };
        assert!(history(Some(fenced(true))) && !history(Some(fenced(false))) && !history(None));
        for kind in 3..20 {
            let outcome = Outcome { kind, released: true, ..Outcome::default() };
            assert!(!OutcomeReport::of(&outcome, false).proven, "{kind}");
        }
    }

    #[test]
    fn a_fence_that_is_proven_and_lets_go_still_is_not_at_its_end() {
        let fence = |kind: OutcomeKind, released, ended: bool| Fence {
            outcome: Some(Outcome { kind: kind as i32, released, ..Outcome::default() }),
            ended_at: ended.then(prost_types::Timestamp::default),
            ..Fence::default()
        };
        let end =
            |fence: &Fence| OutcomeReport::of_fence(fence, false).map(|ended| (ended.end, ended.proven));
        assert_eq!(end(&Fence::default()), None);
        assert_eq!(end(&fence(OutcomeKind::Fenced, false, false)), None);
        assert_eq!(end(&fence(OutcomeKind::Fenced, true, false)), Some((RequestOutcome::Off, true)));
        assert_eq!(end(&fence(OutcomeKind::Fenced, false, true)), Some((RequestOutcome::Off, false)));
        assert_eq!(
            end(&fence(OutcomeKind::NeedsOperator, false, false)),
            Some((RequestOutcome::Person, false))
        );
    }

    #[test]
    fn what_is_blocked_says_by_what_and_when_it_is_worth_asking_again() {
        let retry_after = Some(prost_types::Duration { seconds: 90, nanos: 0 });
        let limit = Limit {
            name: "at_once".to_owned(),
            whose: "the fleet".to_owned(),
            retry_after,
            ..Limit::default()
        };
        let outcome = Outcome { kind: OutcomeKind::Blocked as i32, limit: Some(limit), ..Outcome::default() };
        let ended = OutcomeReport::of(&outcome, true);
        assert_eq!(ended.end, RequestOutcome::Blocked(Some(Duration::from_secs(90))));
        assert!(ended.text.contains("at_once, the fleet"), "{}", ended.text);
    }

    #[test]
    fn what_speaks_of_the_way_is_tried_again_and_what_speaks_of_the_request_is_not() {
        let told = |reason: &str| {
            let details = ErrorDetails::with_error_info(reason, DOMAIN, [] as [(String, String); 0]);
            Status::with_error_details(Code::Unavailable, "no", details)
        };
        for (reason, passing) in [
            ("NO_LEADER", true),
            ("SHUTTING_DOWN", true),
            ("KUBERNETES_AWAY", true),
            ("KUBERNETES_NODE_MISMATCH", false),
            ("KEY_REUSED", false),
            ("NODE_NOT_FOUND", false),
            ("NEW", false),
        ] {
            assert_eq!(is_passing(&told(reason)), passing, "{reason}");
        }
        assert!(is_passing(&Status::unavailable("the connection broke")));
    }
}
