//! How following a node ended, for people: the outcome, the evidence behind it, and what to do next.

use picket_proto::v1::{FenceUpdate, Outcome, OutcomeKind, Phase, Reason};

use super::{evidence, exits, outcome, words};
use crate::duration;
use crate::follow::{End, Followed, Motion};
use crate::style::{Paint, Tone, clean};

/// All lines, each with its line end.
pub fn render(followed: &Followed, paint: Paint) -> String {
    let node = clean(&followed.node).into_owned();
    let mut lines = vec![headline(followed)];
    lines.extend(evidence_lines(followed));
    lines.extend(hints(followed).into_iter().map(|hint| (Tone::Faint, hint)));
    let mut out = String::new();
    for (index, (tone, text)) in lines.into_iter().enumerate() {
        let margin = if index == 0 { node.clone() } else { " ".repeat(node.chars().count()) };
        out += &format!("{margin}  {}\n", paint.tone(tone, &clean(&text)));
    }
    out
}

fn headline(followed: &Followed) -> (Tone, String) {
    let took = duration::words(followed.took);
    match &followed.end {
        End::Outcome(end) => {
            let elapsed = followed.latest.as_ref().and_then(|update| update.elapsed);
            let after = elapsed.map_or(took, |span| duration::words(duration::of_wire(&span)));
            (words::outcome_tone(end.kind), format!("{} [{after}]", outcome::sentence(end)))
        }
        End::Refused(told) => (Tone::Bad, format!("refused: {}", told.message)),
        End::Lost(why) => (Tone::Bad, format!("connection lost and not to be had again: {why}")),
        End::TimedOut => (Tone::Busy, format!("not done within {took}; {}", goes_on(followed))),
        End::Interrupted => (Tone::Busy, format!("left; {}", goes_on(followed))),
    }
}

/// Whether the newest message told that the fence waits in the queue, and is not begun.
fn waits(followed: &Followed) -> bool {
    let waits = |update: &FenceUpdate| update.fence_id.is_empty() && update.wait.is_some();
    matches!(followed.motion, Motion::Fence(_)) && followed.latest.as_ref().is_some_and(waits)
}

/// What becomes of it without us.
fn goes_on(followed: &Followed) -> String {
    match waits(followed) {
        true => "it waits in the queue".to_owned(),
        false => format!("the {} goes on", followed.motion.noun()),
    }
}

fn evidence_lines(followed: &Followed) -> Vec<(Tone, String)> {
    let Some(update) = &followed.latest else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(proof) = &update.evidence {
        lines.extend(evidence::lines(proof).into_iter().map(|line| (Tone::Plain, line)));
    }
    lines.extend(update.releases.iter().map(evidence::release_line));
    if !update.fence_id.is_empty() {
        lines.push((Tone::Faint, format!("fence {}, generation {}", update.fence_id, update.generation)));
    }
    lines
}

/// What to do next.
fn hints(followed: &Followed) -> Vec<String> {
    let node = &followed.node;
    match &followed.end {
        End::Outcome(end) => match OutcomeKind::try_from(end.kind) {
            Ok(OutcomeKind::NeedsOperator | OutcomeKind::PowerOnFailed) => waiting(followed, end),
            Ok(OutcomeKind::Blocked) => ways(node, end),
            Ok(OutcomeKind::StillHeld) => vec![format!("who holds it: picket status {node}")],
            Ok(OutcomeKind::Fenced | OutcomeKind::AlreadyFenced) if !end.released => {
                vec![format!("its releases go on: picket status {node}")]
            }
            Ok(OutcomeKind::Fenced | OutcomeKind::AlreadyFenced) if followed.motion.powers_on() => {
                let phase = followed.latest.as_ref().map(|update| update.phase).unwrap_or_default();
                vec![match Phase::try_from(phase) {
                    Ok(Phase::Released) => {
                        format!("it stays off: others hold it still: picket status {node}")
                    }
                    _ => format!(
                        "it is being powered on again, and is not to be taken for off: picket status {node}"
                    ),
                }]
            }
            _ => Vec::new(),
        },
        End::Refused(told) => told.details.clone(),
        End::Lost(_) => {
            let again = match &followed.motion {
                Motion::Fence(_) => format!("picket fence {node}"),
                Motion::Unfence(_) => format!("picket unfence {node}"),
                Motion::Retry(_) => format!("picket retry {node}"),
                Motion::StandDown(_) => format!("picket stand-down {node}"),
                Motion::Attest(_) => format!("picket attest {node}"),
                Motion::Drill(_) => format!("picket drill {node}"),
            };
            vec![
                format!("the {} may go on; whether it began is not known", followed.motion.noun()),
                format!("ask again with the same arguments: {again} --key {}", followed.motion.key()),
            ]
        }
        End::TimedOut | End::Interrupted if waits(followed) => {
            let holder = match &followed.motion {
                Motion::Fence(request) if !request.holder.is_empty() => {
                    format!(" --holder {}", request.holder)
                }
                _ => String::new(),
            };
            vec![format!("how it fares: picket status {node}; to withdraw it: picket unfence {node}{holder}")]
        }
        End::TimedOut | End::Interrupted => vec![format!("how it fares: picket status {node}")],
    }
}

fn ways(node: &str, end: &Outcome) -> Vec<String> {
    exits::of_outcome(node, end).into_iter().map(|(label, way)| format!("{label}: {way}")).collect()
}

/// What to do about a node that waits for a person. Where it does not, this caller alone asked for more, or for less time.
fn waiting(followed: &Followed, end: &Outcome) -> Vec<String> {
    let node = &followed.node;
    let phase = followed.latest.as_ref().map(FenceUpdate::phase);
    let waits = matches!(phase, None | Some(Phase::NeedsOperator | Phase::PowerOnFailed));
    if !waits && end.reason() != Reason::Orphaned {
        return vec![format!(
            "only what this call asked for was not met; how it fares: picket status {node}"
        )];
    }
    let mut lines = ways(node, end);
    lines.push(format!("with its releases and devices by name: picket status {node}"));
    lines
}

/// How several nodes ended, on one line.
pub fn summary(followed: &[&Followed]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for one in followed {
        let word = match &one.end {
            End::Outcome(end) => words::spoken(words::outcome(end.kind)),
            End::Refused(_) => "refused".to_owned(),
            End::Lost(_) => "lost".to_owned(),
            End::TimedOut => "not done in time".to_owned(),
            End::Interrupted => "left".to_owned(),
        };
        *counts.entry(word).or_insert(0_usize) += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    format!("{} nodes: {}\n", followed.len(), parts.join(", "))
}
