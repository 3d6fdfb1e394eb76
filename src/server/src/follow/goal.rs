//! What a stream waits for, and how it ends.
//!
//! # Invariants
//!
//! - FENCED is told only while the fence is the node's present one and nobody brings the node back. The
//!   caller who asked for that (`then: POWER_ON`) is the exception. Shown by
//!   `fenced_is_told_of_the_present_fence_alone`.
//! - A fence that ended while it was followed is SUPERSEDED, with what it had come to (S20). Shown by
//!   `fenced_is_told_of_the_present_fence_alone`.

use std::time::Duration;

use picket_core::device::Grade;
use picket_core::ids::FenceId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Bringing, Fence, NodeRecord, Phase, Then};
use picket_engine::{Engine, EngineError, NodeView, Until};
use picket_proto::v1;

use crate::convert::{outcome, words};

/// What a stream waits for.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// That the node is off.
    Fence {
        /// Whether also that its volumes are released.
        until: Until,
        /// The caller's own least grade.
        grade: Option<Grade>,
        /// What the caller wants to come after.
        then: Then,
        /// It was proven off when the caller asked.
        already: bool,
    },
    /// That the node is back.
    Back,
    /// That it was off, released, and is back.
    Drill,
}

impl Goal {
    /// The fence as it is or was, and how the stream ends, if it does.
    pub(crate) async fn end(
        &self,
        engine: &Engine,
        view: &NodeView,
        id: FenceId,
    ) -> Result<(Option<Fence>, Option<v1::Outcome>), EngineError> {
        let record = &view.stored.record;
        match self {
            Goal::Fence { until, grade, then, already } => {
                let (fence, outcome) = engine.outcome(view, id, *until, *grade).await?;
                let end = fence_end(record, fence.as_ref(), outcome, *then, *already, *grade);
                Ok((fence, end))
            }
            Goal::Back | Goal::Drill => {
                let open = record.fence.as_ref().filter(|fence| fence.id == id);
                let fence = match open {
                    Some(fence) => Some(fence.clone()),
                    None => engine.get_fence(id).await?,
                };
                let end = match self {
                    Goal::Drill => drill_end(record, id, fence.as_ref()),
                    _ => back_end(record, id, fence.as_ref()),
                };
                Ok((fence, end))
            }
        }
    }

    /// Whether it is that the node is off.
    pub(crate) fn is_fence(&self) -> bool {
        matches!(self, Goal::Fence { .. })
    }

    /// How the stream ends when the caller's own deadline passes; the node goes on its way.
    pub(crate) fn too_late(&self, deadline: Duration) -> v1::Outcome {
        match self {
            Goal::Fence { .. } => {
                let detail = format!(
                    "not confirmed off within {deadline:?}, which is your own deadline; the fence goes on"
                );
                outcome::outcome(&Outcome::NeedsOperator(Reason::Deadline), detail)
            }
            Goal::Back | Goal::Drill => {
                let detail = format!(
                    "not seen on within {deadline:?}, which is your own deadline; it is still being brought back"
                );
                outcome::outcome(&Outcome::PowerOnFailed, detail)
            }
        }
    }

    /// Whether the caller's own deadline still counts.
    pub(crate) fn has_deadline(&self, record: &NodeRecord) -> bool {
        match self {
            Goal::Fence { .. } => record.phase == Phase::Fencing,
            Goal::Back | Goal::Drill => record.phase == Phase::Unfencing,
        }
    }
}

fn fence_end(
    record: &NodeRecord,
    fence: Option<&Fence>,
    reached: Option<Outcome>,
    then: Then,
    already: bool,
    grade: Option<Grade>,
) -> Option<v1::Outcome> {
    let Some(fence) = fence else { return Some(outcome::superseded(None, &record.phase)) };
    let stored = fence.outcome.as_ref();
    let own_end = matches!(
        stored,
        Some(Outcome::AbortedRecovered | Outcome::Blocked(_) | Outcome::StoodDown | Outcome::Retired)
    );
    if !is_present(record, fence) && !own_end && !brought_back_as_asked(record, fence, then) {
        return Some(outcome::superseded(Some(fence), &record.phase));
    }
    let reached = match reached? {
        Outcome::Fenced { released } if already => Outcome::AlreadyFenced { released },
        Outcome::Superseded => return Some(outcome::superseded(Some(fence), &record.phase)),
        reached => reached,
    };
    let detail = match (&reached, &fence.evidence, grade) {
        // The caller's own: the fence itself was confirmed.
        (Outcome::NeedsOperator(Reason::GradeTooLow), Some(evidence), Some(least))
            if evidence.grade < least =>
        {
            let (got, least) = (words::grade_word(evidence.grade), words::grade_word(least));
            format!("the node is off, {got}, which is less than the {least} that you asked for")
        }
        _ => outcome::detail(fence, &reached),
    };
    Some(outcome::outcome(&reached, detail))
}

/// The fence is the node's present one, and nobody brings the node back.
fn is_present(record: &NodeRecord, fence: &Fence) -> bool {
    let open = record.fence.as_ref();
    open.is_some_and(|open| open.id == fence.id && open.generation == record.generation)
        && fence.ended_at.is_none()
}

/// All is released, and the node is brought back because this caller asked for that.
fn brought_back_as_asked(record: &NodeRecord, fence: &Fence, then: Then) -> bool {
    let unended = record.fence.as_ref().is_some_and(|open| open.id == fence.id) && fence.ended_at.is_none();
    let released = fence.outcome == Some(Outcome::Fenced { released: true });
    unended && released && then == Then::PowerOn && record.bringing == Bringing::PowerOn
}

/// While the fence of a drill is under way it has not come so far; how it ended otherwise is told as it is.
fn drill_end(record: &NodeRecord, id: FenceId, fence: Option<&Fence>) -> Option<v1::Outcome> {
    let under_way = matches!(record.phase, Phase::Fencing | Phase::Fenced)
        && record.fence.as_ref().is_some_and(|open| open.id == id);
    if under_way {
        return None;
    }
    match fence.filter(|fence| fence.ended_at.is_some()).and_then(|fence| fence.outcome.as_ref()) {
        Some(Outcome::AbortedRecovered) => {
            let detail = fence.map(|fence| outcome::detail(fence, &Outcome::AbortedRecovered));
            Some(outcome::outcome(&Outcome::AbortedRecovered, detail.unwrap_or_default()))
        }
        _ => back_end(record, id, fence),
    }
}

fn back_end(record: &NodeRecord, id: FenceId, fence: Option<&Fence>) -> Option<v1::Outcome> {
    let open = record.fence.as_ref();
    let Some(open) = open.filter(|open| open.id == id) else {
        if open.is_some() {
            return Some(outcome::superseded(fence, &record.phase));
        }
        let kind = match fence.and_then(|fence| fence.outcome.as_ref()) {
            Some(Outcome::StoodDown) => Outcome::StoodDown,
            Some(Outcome::Retired) => Outcome::Retired,
            _ => Outcome::Unfenced,
        };
        let detail = fence.map(|fence| outcome::detail(fence, &kind)).unwrap_or_default();
        return Some(outcome::outcome(&kind, detail));
    };
    let of = |kind: Outcome| Some(outcome::outcome(&kind, outcome::detail(open, &kind)));
    match record.phase {
        Phase::Unfencing => None,
        Phase::PowerOnFailed => of(Outcome::PowerOnFailed),
        Phase::NeedsOperator(reason) => of(Outcome::NeedsOperator(reason)),
        Phase::Normal | Phase::Fencing | Phase::Fenced | Phase::Released | Phase::Retired => {
            let holders: Vec<&str> = record.holds.keys().map(String::as_str).collect();
            Some(outcome::outcome(&Outcome::StillHeld, format!("still held by {}", holders.join(", "))))
        }
    }
}

#[cfg(test)]
#[path = "goal_tests.rs"]
pub(super) mod tests;
