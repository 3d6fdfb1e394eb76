//! Whether a node is off, and whether its volumes were let go, in a few words: in capitals where it is bad.

use std::collections::BTreeMap;

use picket_proto::v1::{Fence, Node, OutcomeKind, Phase, Power, Release, ReleaseStage};

use super::{readiness, words};
use crate::style::Tone;

/// A node's power, for a table. Where the node is kept off, or nobody fenced it, the word says whether that fits what was read.
pub fn power(node: &Node) -> (Tone, String) {
    let read = node.power.map(|power| power.power()).unwrap_or_default();
    let (tone, text) = match (read, node.phase()) {
        (Power::On, Phase::Fencing) => (Tone::Busy, "still on"),
        (Power::On, Phase::NeedsOperator) => (Tone::Bad, "STILL ON"),
        (Power::On, Phase::Fenced | Phase::Released) => (Tone::Bad, "ON AGAIN"),
        (Power::Off, Phase::Normal) => (Tone::Busy, "OFF, not fenced"),
        (Power::Off, Phase::Fenced | Phase::Released | Phase::NeedsOperator) if node.proven => {
            (Tone::Dark, "off, proven")
        }
        (Power::Off, Phase::Fencing) => (Tone::Busy, "off, not proven"),
        (Power::Off, Phase::Fenced | Phase::Released | Phase::NeedsOperator) => {
            (Tone::Busy, "off, NOT PROVEN")
        }
        // An outlet says nothing of its machine; one that ignored its off feeds it still.
        (Power::Unknown | Power::Unspecified, Phase::NeedsOperator)
            if node.devices.iter().any(|device| readiness::ignored(node, device)) =>
        {
            (Tone::Bad, "STILL ON")
        }
        (Power::Unknown | Power::Unspecified, Phase::NeedsOperator) => (Tone::Bad, "NOT KNOWN"),
        (read, _) => return (Tone::Plain, words::spoken(words::power(read.into()))),
    };
    (tone, text.to_owned())
}

/// How a node stands, for the line that begins with its name: what is bad comes first, then its power, then its volumes.
pub fn of_node(node: &Node) -> (Tone, String) {
    let (tone, power) = power(node);
    let power = if power == "NOT KNOWN" || power == "unknown" { format!("power {power}") } else { power };
    let (_, volumes) = volumes(&node.releases, node.phase() == Phase::Released);
    let phase = words::spoken(words::phase(node.phase));
    let text = match node.phase() {
        Phase::Normal | Phase::Unspecified => power,
        Phase::Fencing | Phase::Fenced | Phase::Released => format!("{phase}: {power}, volumes {volumes}"),
        Phase::NeedsOperator => format!("{}: {power}, volumes {volumes}", phase.to_uppercase()),
        Phase::PowerOnFailed => format!("{}: {power}", phase.to_uppercase()),
        Phase::Unfencing | Phase::Retired => format!("{phase}: {power}"),
    };
    (if tone == Tone::Plain { words::phase_tone(node.phase) } else { tone }, text)
}

/// How the gateway asks a device for its power, in the words of the audit.
pub const ASKS_POWER: &str = "is it on or off";

/// How a fence stands, or ended, for the line that begins with its node's name. What it says of power is of the fence, and not of now.
pub fn of_fence(fence: &Fence) -> (Tone, String) {
    let Some(end) = &fence.outcome else { return (Tone::Busy, "under way: NOT PROVEN OFF".to_owned()) };
    let kind = words::spoken(words::outcome(end.kind));
    let (volumes_tone, volumes) = volumes(&fence.releases, end.released);
    match end.kind() {
        OutcomeKind::Fenced | OutcomeKind::AlreadyFenced => {
            let tone = if volumes_tone == Tone::Bad { Tone::Bad } else { Tone::Good };
            let was = if fence.ended_at.is_some() { "was " } else { "" };
            (tone, format!("{kind}: {was}proven off, volumes {volumes}"))
        }
        OutcomeKind::NeedsOperator => {
            let power = match (&fence.evidence, last_read(fence)) {
                (_, Some("on")) => "STILL ON",
                (Some(_), _) => "proven off",
                (None, _) => "NOT PROVEN OFF",
            };
            (Tone::Bad, format!("{}: {power}, volumes {volumes}", kind.to_uppercase()))
        }
        _ => (words::outcome_tone(end.kind), kind),
    }
}

/// The word of the last reading in a fence's exchanges: any device that says on has it.
fn last_read(fence: &Fence) -> Option<&str> {
    let mut last = BTreeMap::new();
    for exchange in fence.exchanges.iter().filter(|exchange| exchange.asked == ASKS_POWER) {
        last.insert(&exchange.device, power_word(&exchange.answered));
    }
    last.values().copied().max_by_key(|word| *word == "on")
}

/// The power in an answer to that question: `on` of `on (chassis status 0x61)`.
pub fn power_word(answered: &str) -> &str {
    answered.split([' ', ',']).next().unwrap_or_default()
}

/// Whether the volumes of a node were let go: `is_over` where the gateway says that every release is complete or given up.
pub fn volumes(releases: &[Release], is_over: bool) -> (Tone, String) {
    let names = |of: &dyn Fn(ReleaseStage) -> bool| {
        let whole = releases.iter().filter(|release| release.part_of.is_empty() && of(release.stage()));
        whole.map(|release| release.name.as_str()).collect::<Vec<_>>()
    };
    let let_go = names(&|stage| stage == ReleaseStage::Complete);
    let given_up = names(&|stage| stage == ReleaseStage::Abandoned);
    let open = names(&|stage| !matches!(stage, ReleaseStage::Complete | ReleaseStage::Abandoned));
    let any = !let_go.is_empty() || !given_up.is_empty();
    match (is_over || any && open.is_empty(), given_up.is_empty()) {
        (true, true) if let_go.is_empty() => (Tone::Plain, "none to let go".to_owned()),
        (true, true) => (Tone::Plain, format!("let go ({})", let_go.join(", "))),
        (true, false) => (Tone::Bad, format!("GIVEN UP: {}", given_up.join(", "))),
        (false, _) if any => (Tone::Bad, format!("NOT let go ({})", open.join(", "))),
        (false, _) => (Tone::Bad, "NOT let go".to_owned()),
    }
}
