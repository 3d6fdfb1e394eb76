//! The words of the wire's enums.

use std::borrow::Cow;

use picket_proto::v1::{
    Bringing, DeviceClass, DeviceProblemKind, EffectKind, FenceCause, Grade, Hold, IdentityMatch,
    OutcomeKind, Phase, PlanAction, Power, Readiness, Reason, ReleaseStage,
};

use crate::duration;
use crate::style::Tone;

/// The word of a value: its name without the prefix of its type. Nothing of an unspecified one; a value that this
/// version does not know is `unknown_17`.
fn word<E: TryFrom<i32>>(value: i32, prefix: &str, name: impl Fn(&E) -> &'static str) -> Option<String> {
    match (value, E::try_from(value)) {
        (0, _) => None,
        (_, Ok(known)) => Some(name(&known).trim_start_matches(prefix).to_ascii_lowercase()),
        (_, Err(_)) => Some(format!("unknown_{value}")),
    }
}

macro_rules! words {
    ($($function:ident: $type:ident, $prefix:literal;)*) => {$(
        #[doc = concat!("The word of a `", stringify!($type), "`.")]
        pub fn $function(value: i32) -> Option<String> {
            word::<$type>(value, $prefix, $type::as_str_name)
        }
    )*};
}

words! {
    phase: Phase, "PHASE_";
    power: Power, "POWER_";
    grade: Grade, "GRADE_";
    reason: Reason, "REASON_";
    outcome: OutcomeKind, "OUTCOME_KIND_";
    device_class: DeviceClass, "DEVICE_CLASS_";
    identity_match: IdentityMatch, "IDENTITY_MATCH_";
    readiness: Readiness, "READINESS_";
    problem: DeviceProblemKind, "DEVICE_PROBLEM_KIND_";
    stage: ReleaseStage, "RELEASE_STAGE_";
    effect: EffectKind, "EFFECT_KIND_";
    bringing: Bringing, "BRINGING_";
    cause: FenceCause, "FENCE_CAUSE_";
    plan_action: PlanAction, "PLAN_ACTION_";
}

/// Who somebody is, for people: as the gateway shows them, else by the name that counts.
pub fn who<'a>(name: &'a str, shown: &'a str) -> &'a str {
    if shown.is_empty() { name } else { shown }
}

/// A holder, for people: whoever holds under the own name is shown as they are.
pub fn holder(hold: &Hold) -> &str {
    if hold.holder == hold.by { who(&hold.holder, &hold.by_shown) } else { &hold.holder }
}

/// A word as people read it; `unknown` of none.
pub fn spoken(word: Option<String>) -> String {
    word.map_or_else(|| "unknown".to_owned(), |word| word.replace('_', " "))
}

/// Up to so many names are told, or stand in a command.
pub const NAMED: usize = 4;

/// Names in a row: `a, b, c, d and 3 more`.
pub fn some<T: AsRef<str>>(names: &[T]) -> String {
    let (told, more) = names.split_at(names.len().min(NAMED));
    let told = told.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if more.is_empty() { told } else { format!("{told} and {} more", more.len()) }
}

/// The text with another word for the node, wherever it stands as a word.
pub fn named(text: &str, node: &str, other: &str) -> String {
    let word = |word: &str| match word.strip_prefix(node) {
        Some(rest) if rest.chars().all(|c| c.is_ascii_punctuation() && c != '-' && c != '.') => {
            format!("{other}{rest}")
        }
        _ => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What happened, without the words of a gateway that could be taken for more than they say: `off: bmc` tells that an off was sent, and
/// not that anything is off. Its durations are as everywhere here.
pub fn happened(text: &str) -> Cow<'_, str> {
    for verb in ["off", "on"] {
        if let Some(devices) = text.strip_prefix(verb).and_then(|rest| rest.strip_prefix(": ")) {
            return Cow::Owned(format!("an {verb} was sent to {devices}"));
        }
    }
    duration::spoken(text)
}

/// What a grade of evidence means.
pub fn grade_means(value: i32) -> &'static str {
    match Grade::try_from(value) {
        Ok(Grade::Attested) => "a person vouches for it",
        Ok(Grade::Claimed) => "a device says so that is trusted and not verified",
        Ok(Grade::Learned) => "seen off by a device that alone says whose machine it controls",
        Ok(Grade::Hypervisor) => "a cloud or a parent says so",
        Ok(Grade::Observed) => "seen off by a device that is known to be this machine's",
        Ok(Grade::Unspecified) | Err(_) => "not known",
    }
}

/// How a phase is to be taken.
pub fn phase_tone(value: i32) -> Tone {
    match Phase::try_from(value) {
        Ok(Phase::Normal) => Tone::Good,
        Ok(Phase::Fencing | Phase::Unfencing) => Tone::Busy,
        Ok(Phase::Fenced | Phase::Released | Phase::Retired) => Tone::Dark,
        Ok(Phase::NeedsOperator | Phase::PowerOnFailed | Phase::Unspecified) | Err(_) => Tone::Bad,
    }
}

/// How a readiness is to be taken.
pub fn readiness_tone(value: i32) -> Tone {
    match Readiness::try_from(value) {
        Ok(Readiness::Ready) => Tone::Good,
        Ok(Readiness::Degraded) => Tone::Busy,
        Ok(Readiness::NotReady) => Tone::Bad,
        Ok(Readiness::Unspecified) | Err(_) => Tone::Faint,
    }
}

/// How an outcome is to be taken.
pub fn outcome_tone(value: i32) -> Tone {
    match OutcomeKind::try_from(value) {
        Ok(
            OutcomeKind::Fenced | OutcomeKind::AlreadyFenced | OutcomeKind::Unfenced | OutcomeKind::DryRun,
        ) => Tone::Good,
        Ok(
            OutcomeKind::Blocked
            | OutcomeKind::AbortedRecovered
            | OutcomeKind::StillHeld
            | OutcomeKind::StoodDown
            | OutcomeKind::Superseded
            | OutcomeKind::Retired,
        ) => Tone::Busy,
        Ok(OutcomeKind::NeedsOperator | OutcomeKind::PowerOnFailed | OutcomeKind::Unspecified) | Err(_) => {
            Tone::Bad
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_off_that_was_sent_is_no_node_that_is_off() {
        assert_eq!(happened("off: bmc, pdu-a"), "an off was sent to bmc, pdu-a");
        assert_eq!(happened("on: bmc"), "an on was sent to bmc");
        assert_eq!(happened("confirmed off, observed"), "confirmed off, observed");
    }

    #[test]
    fn a_name_is_replaced_where_it_is_a_word() {
        let text = "n1: n10 and n1 n1-b n1.c, then picket retry n1";
        assert_eq!(named(text, "n1", "X"), "X: n10 and X n1-b n1.c, then picket retry X");
    }

    #[test]
    fn of_many_names_the_first_are_told_and_the_others_counted() {
        assert_eq!(some::<&str>(&[]), "");
        assert_eq!(some(&["a", "b", "c", "d"]), "a, b, c, d");
        assert_eq!(some(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d and 2 more");
    }

    #[test]
    fn words_are_stable_and_unknown_ones_are_told_as_such() {
        assert_eq!(phase(Phase::NeedsOperator.into()).as_deref(), Some("needs_operator"));
        assert_eq!(reason(Reason::Self_.into()).as_deref(), Some("self"));
        assert_eq!(outcome(0), None);
        assert_eq!(outcome(99).as_deref(), Some("unknown_99"));
        assert_eq!(spoken(phase(Phase::PowerOnFailed.into())), "power on failed");
    }
}
