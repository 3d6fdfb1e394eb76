//! How requests end.

use picket_core::budget::Bar;
use picket_core::outcome::{ASKS, Outcome, Reason};
use picket_core::record::{Fence, Phase, ReleaseStage};
use picket_proto::v1;

use super::time::duration;
use super::words;

fn of_kind(kind: v1::OutcomeKind, detail: impl Into<String>) -> v1::Outcome {
    v1::Outcome { kind: kind.into(), detail: detail.into(), ..Default::default() }
}

/// An outcome; `detail` is for people.
pub(crate) fn outcome(outcome: &Outcome, detail: impl Into<String>) -> v1::Outcome {
    let with = |kind, reason: Reason, detail| v1::Outcome {
        reason: words::reason(reason).into(),
        ..of_kind(kind, detail)
    };
    let detail = detail.into();
    match outcome {
        Outcome::Fenced { released } => {
            v1::Outcome { released: *released, ..of_kind(v1::OutcomeKind::Fenced, detail) }
        }
        Outcome::AlreadyFenced { released } => {
            v1::Outcome { released: *released, ..of_kind(v1::OutcomeKind::AlreadyFenced, detail) }
        }
        Outcome::AbortedRecovered => of_kind(v1::OutcomeKind::AbortedRecovered, detail),
        Outcome::Superseded => of_kind(v1::OutcomeKind::Superseded, detail),
        Outcome::Blocked(reason) => with(v1::OutcomeKind::Blocked, *reason, detail),
        Outcome::NeedsOperator(reason) => with(v1::OutcomeKind::NeedsOperator, *reason, detail),
        Outcome::PowerOnFailed => of_kind(v1::OutcomeKind::PowerOnFailed, detail),
        Outcome::StoodDown => of_kind(v1::OutcomeKind::StoodDown, detail),
        Outcome::Unfenced => of_kind(v1::OutcomeKind::Unfenced, detail),
        Outcome::StillHeld => of_kind(v1::OutcomeKind::StillHeld, detail),
        Outcome::Retired => of_kind(v1::OutcomeKind::Retired, detail),
    }
}

/// A limit, or a pause, bars it; the nodes that count are for those who may know of all nodes.
pub(crate) fn barred(bar: &Bar, knows_all: bool) -> v1::Outcome {
    let detail = if knows_all { bar.named() } else { bar.detail() };
    v1::Outcome { limit: Some(limit(bar)), ..outcome(&Outcome::Blocked(bar.reason()), detail) }
}

/// The limit, or the pause, in numbers.
pub(crate) fn limit(bar: &Bar) -> v1::Limit {
    v1::Limit {
        name: bar.kind.label().to_owned(),
        whose: bar.whose.clone(),
        allowed: bar.allowed,
        found: bar.found,
        retry_after: bar.retry_after.map(duration),
    }
}

/// A dry run: it would begin.
pub(crate) fn dry_run(detail: impl Into<String>) -> v1::Outcome {
    of_kind(v1::OutcomeKind::DryRun, detail)
}

/// The outcome that is stored for a fence, with what its moments say of it.
pub(crate) fn of_fence(fence: &Fence) -> Option<v1::Outcome> {
    fence.outcome.as_ref().map(|stored| outcome(stored, detail(fence, stored)))
}

/// The fence has ended since; what it had come to is history.
pub(crate) fn superseded(fence: Option<&Fence>, present: &Phase) -> v1::Outcome {
    let how = fence.and_then(|fence| fence.moments.last()).map(|moment| format!(" ({})", moment.what));
    let words = present.label().replace('_', " ");
    let detail =
        format!("the fence has ended since{}; the node is in phase {words}", how.unwrap_or_default());
    v1::Outcome {
        superseded: fence.and_then(of_fence).map(Box::new),
        ..of_kind(v1::OutcomeKind::Superseded, detail)
    }
}

/// What a fence's moments say of its outcome.
pub(crate) fn detail(fence: &Fence, outcome: &Outcome) -> String {
    let last_of = |phase: &str| {
        let moment = fence.moments.iter().rev().find(|moment| moment.phase == phase);
        moment.map(|moment| moment.what.clone()).unwrap_or_default()
    };
    match outcome {
        Outcome::Fenced { .. } | Outcome::AlreadyFenced { .. } => fenced(fence),
        // The reason stands beside the detail already.
        Outcome::NeedsOperator(reason) => {
            // Whoever joins or holds meanwhile adds moments of the same phase. A restore of a version before says it in other words.
            let told = newest(fence, &spellings(*reason).map(|word| format!("{ASKS}{word}): ")));
            told.unwrap_or_else(|| last_of("needs_operator"))
        }
        Outcome::Blocked(reason) => {
            newest(fence, &spellings(*reason).map(|word| format!("blocked ({word}) "))).unwrap_or_default()
        }
        Outcome::PowerOnFailed => last_of("power_on_failed"),
        _ => fence.moments.last().map(|moment| moment.what.clone()).unwrap_or_default(),
    }
}

/// What the newest of the moments says that begin so.
fn newest(fence: &Fence, begins: &[String]) -> Option<String> {
    let told = |what: &str| begins.iter().find_map(|begins| what.strip_prefix(begins)).map(str::to_owned);
    fence.moments.iter().rev().find_map(|moment| told(&moment.what))
}

/// How moments spell a reason; the second is that of versions before.
fn spellings(reason: Reason) -> [String; 2] {
    [reason.words(), reason.label().to_owned()]
}

fn fenced(fence: &Fence) -> String {
    let grade = fence.evidence.as_ref().map(|evidence| format!("off, {}", words::grade_word(evidence.grade)));
    let abandoned: Vec<&str> = fence
        .releases
        .iter()
        .filter(|release| release.stage == ReleaseStage::Abandoned)
        .map(|release| release.id.as_str())
        .collect();
    let mut words: Vec<String> = grade.into_iter().collect();
    if fence.topology.is_simulated() {
        words.push("simulated: no real machine is off".to_owned());
    }
    if !abandoned.is_empty() {
        words.push(format!("given up by name: {}", abandoned.join(", ")));
    }
    words.join("; ")
}

/// An outcome in a few words, for the last line of a stream.
pub(crate) fn in_words(outcome: &v1::Outcome) -> String {
    let kind = outcome.kind();
    let word = kind.as_str_name().trim_start_matches("OUTCOME_KIND_").to_lowercase().replace('_', " ");
    match kind {
        v1::OutcomeKind::Fenced | v1::OutcomeKind::AlreadyFenced if outcome.released => {
            format!("{word}, released")
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_keeps_its_word_and_only_fenced_can_be_released() {
        let all = [
            Outcome::Fenced { released: true },
            Outcome::AlreadyFenced { released: true },
            Outcome::AbortedRecovered,
            Outcome::Superseded,
            Outcome::Blocked(Reason::OwnHost),
            Outcome::NeedsOperator(Reason::Deadline),
            Outcome::PowerOnFailed,
            Outcome::StoodDown,
            Outcome::Unfenced,
            Outcome::StillHeld,
            Outcome::Retired,
        ];
        for known in all {
            let wire = outcome(&known, "why");
            let word = format!("OUTCOME_KIND_{}", known.label().to_ascii_uppercase());
            assert_eq!(wire.kind().as_str_name(), word);
            assert_eq!(wire.detail, "why");
            assert_eq!(
                wire.released,
                matches!(word.as_str(), "OUTCOME_KIND_FENCED" | "OUTCOME_KIND_ALREADY_FENCED")
            );
            let has_reason = matches!(known, Outcome::Blocked(_) | Outcome::NeedsOperator(_));
            assert_eq!(wire.reason() != v1::Reason::Unspecified, has_reason, "{known:?}");
        }
    }

    #[test]
    fn the_last_line_says_released_only_where_it_is() {
        let wire = |released| outcome(&Outcome::Fenced { released }, "");
        assert_eq!(in_words(&wire(true)), "fenced, released");
        assert_eq!(in_words(&wire(false)), "fenced");
        assert_eq!(in_words(&outcome(&Outcome::NeedsOperator(Reason::Deadline), "")), "needs operator");
    }
}
