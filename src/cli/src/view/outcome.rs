//! How a request ended, for scripts and in words.

use picket_proto::v1::{Limit, Outcome, OutcomeKind};
use serde::Serialize;

use super::{filled, seconds, words};

/// An outcome.
#[derive(Debug, Serialize)]
pub struct OutcomeView {
    kind: Option<String>,
    reason: Option<String>,
    detail: Option<String>,
    released: bool,
    superseded: Option<Box<OutcomeView>>,
    limit: Option<LimitView>,
}

/// The limit, or the pause, that bars it.
#[derive(Debug, Serialize)]
pub struct LimitView {
    name: String,
    whose: String,
    allowed: u32,
    found: u32,
    retry_after_s: Option<f64>,
}

impl From<&Outcome> for OutcomeView {
    fn from(outcome: &Outcome) -> Self {
        Self {
            kind: words::outcome(outcome.kind),
            reason: words::reason(outcome.reason),
            detail: filled(&outcome.detail),
            released: outcome.released,
            superseded: outcome.superseded.as_deref().map(|earlier| Box::new(Self::from(earlier))),
            limit: outcome.limit.as_ref().map(LimitView::from),
        }
    }
}

impl From<&Limit> for LimitView {
    fn from(limit: &Limit) -> Self {
        Self {
            name: limit.name.clone(),
            whose: limit.whose.clone(),
            allowed: limit.allowed,
            found: limit.found,
            retry_after_s: seconds(&limit.retry_after),
        }
    }
}

/// The same of a fence whose releases are known: where there are none, none was let go.
pub fn sentence_of(outcome: &Outcome, has_releases: bool) -> String {
    let said = sentence(outcome);
    if outcome.released && !has_releases {
        return said.replacen("and released", "with nothing to let go", 1);
    }
    said
}

/// The outcome in words, with its reason and detail. Of FENCED it always says whether the volumes are released.
pub fn sentence(outcome: &Outcome) -> String {
    let released = if outcome.released { "released" } else { "NOT released" };
    let mut text = match OutcomeKind::try_from(outcome.kind) {
        Ok(OutcomeKind::Fenced) => format!("fenced and {released}"),
        Ok(OutcomeKind::AlreadyFenced) => format!("fenced already and {released}"),
        Ok(OutcomeKind::AbortedRecovered) => "recovered before anything was sent: it is not off".to_owned(),
        Ok(OutcomeKind::Superseded) => {
            let earlier = outcome.superseded.as_deref().map(sentence);
            let had = earlier.map(|earlier| format!("; it had been {earlier}")).unwrap_or_default();
            format!("superseded: the fence of this key has ended{had}")
        }
        Ok(OutcomeKind::StillHeld) => "hold dropped; others still keep it off".to_owned(),
        Ok(OutcomeKind::StoodDown) => "stood down: a person said that it was alive".to_owned(),
        Ok(OutcomeKind::Unfenced) if outcome.detail.is_empty() => "unfenced: it is back".to_owned(),
        // The detail says how it is known, or that nothing was to be done.
        Ok(OutcomeKind::Unfenced) => "unfenced".to_owned(),
        Ok(OutcomeKind::DryRun) => "dry run: it would begin; nothing was sent".to_owned(),
        Ok(OutcomeKind::Unspecified) => "no outcome".to_owned(),
        Ok(
            OutcomeKind::Blocked
            | OutcomeKind::NeedsOperator
            | OutcomeKind::PowerOnFailed
            | OutcomeKind::Retired,
        )
        | Err(_) => words::spoken(words::outcome(outcome.kind)),
    };
    if let Some(reason) = words::reason(outcome.reason) {
        text += &format!(" ({})", reason.replace('_', " "));
    }
    let is_proven = matches!(outcome.kind(), OutcomeKind::Fenced | OutcomeKind::AlreadyFenced);
    match outcome.detail.strip_prefix("off, ").filter(|_| is_proven) {
        // Of a machine with a BMC "off, hypervisor" reads as if the hypervisor were off.
        Some(proof) => text += &format!(", proof: {proof}"),
        None if outcome.detail.is_empty() => {}
        None => text += &format!(": {}", words::happened(&outcome.detail)),
    }
    text
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::Reason;

    use super::*;

    fn outcome(kind: OutcomeKind) -> Outcome {
        Outcome { kind: kind.into(), ..Default::default() }
    }

    #[test]
    fn fenced_says_whether_it_is_released() {
        assert_eq!(sentence(&outcome(OutcomeKind::Fenced)), "fenced and NOT released");
        let released = Outcome { released: true, ..outcome(OutcomeKind::AlreadyFenced) };
        assert_eq!(sentence(&released), "fenced already and released");
        assert_eq!(sentence_of(&released, true), "fenced already and released");
        assert_eq!(sentence_of(&released, false), "fenced already with nothing to let go");
    }

    #[test]
    fn unfenced_says_one_thing() {
        assert_eq!(sentence(&outcome(OutcomeKind::Unfenced)), "unfenced: it is back");
        let untouched = Outcome { detail: "it was not fenced".to_owned(), ..outcome(OutcomeKind::Unfenced) };
        assert_eq!(sentence(&untouched), "unfenced: it was not fenced");
    }

    #[test]
    fn a_grade_is_no_machine_that_is_off() {
        let fenced = Outcome {
            released: true,
            detail: "off, hypervisor; given up by name: san".to_owned(),
            ..outcome(OutcomeKind::Fenced)
        };
        assert_eq!(sentence(&fenced), "fenced and released, proof: hypervisor; given up by name: san");
    }

    #[test]
    fn when_to_ask_again_is_told_as_people_read_it() {
        let blocked = Outcome {
            reason: Reason::CoolDown.into(),
            detail: "it came back at noon; ask again in 7199s".to_owned(),
            ..outcome(OutcomeKind::Blocked)
        };
        assert!(sentence(&blocked).ends_with("at noon; ask again in 1 h 59 min"), "{}", sentence(&blocked));
    }

    #[test]
    fn reasons_and_what_was_before_are_told() {
        let blocked = Outcome {
            reason: Reason::Budget.into(),
            detail: "1 of 1 at once: r1n07".to_owned(),
            ..outcome(OutcomeKind::Blocked)
        };
        assert_eq!(sentence(&blocked), "blocked (budget): 1 of 1 at once: r1n07");
        let superseded = Outcome {
            superseded: Some(Box::new(outcome(OutcomeKind::Fenced))),
            ..outcome(OutcomeKind::Superseded)
        };
        assert!(sentence(&superseded).ends_with("it had been fenced and NOT released"));
    }
}
