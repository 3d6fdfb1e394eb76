//! How following a node ended, for people: the outcome, the evidence behind it, and what to do next.

use picket_proto::v1::{FenceUpdate, Outcome, OutcomeKind, Phase, Reason};

use super::{evidence, exits, outcome, update, words};
use crate::duration;
use crate::motion::{FollowEnd, FollowedNode, Motion};
use crate::style::{Page, Tone, clean};

/// All lines, each with its line end.
pub fn render(followed: &FollowedNode, page: Page) -> String {
    let (tone, text) = timed(followed);
    let hints = hints(followed).into_iter().map(|(label, hint)| (Tone::Faint, labelled(label, &hint)));
    lines(followed, std::iter::once((tone, text)).chain(evidence_lines(followed)).chain(hints), page)
}

/// The first of them: its node and how it ended.
pub fn line(followed: &FollowedNode, page: Page) -> String {
    lines(followed, std::iter::once(timed(followed)), page)
}

/// What stands behind a fence that ended well, and what is still to come.
pub fn proof(followed: &FollowedNode, page: Page) -> String {
    let hints = hints(followed).into_iter().map(|(label, hint)| (Tone::Busy, labelled(label, &hint)));
    lines(followed, evidence_lines(followed).into_iter().chain(hints), page)
}

/// Why it did not end well, how it stands now, and what to do, each with the word that begins its line.
pub fn reasons(followed: &FollowedNode) -> Vec<(String, String)> {
    let mut all = vec![("why".to_owned(), headline(followed).1)];
    all.extend(now(followed).map(|text| ("now".to_owned(), text.to_owned())));
    all.extend(hints(followed).into_iter().map(|(label, text)| (label.to_owned(), text)));
    all
}

/// What the gateway does meanwhile with a node that it could not prove off.
fn now(followed: &FollowedNode) -> Option<&'static str> {
    let FollowEnd::Outcome(end) = &followed.end else { return None };
    let latest = followed.latest.as_ref();
    let phase = latest.map(FenceUpdate::phase);
    let is_kept = matches!(end.reason(), Reason::LevelsSpent | Reason::Deadline | Reason::Contradiction);
    let waits = end.kind() == OutcomeKind::NeedsOperator && phase == Some(Phase::NeedsOperator);
    let was_sent = latest.and_then(|update| update.off_sent) != Some(false);
    (waits && is_kept).then_some(match was_sent {
        true => "held; wherever a device reads on, its off is sent again",
        false => "no device took an off: this fence has switched nothing",
    })
}

fn lines(followed: &FollowedNode, all: impl Iterator<Item = (Tone, String)>, page: Page) -> String {
    let node = clean(&followed.node);
    let margin = node.chars().count() + 2;
    let mut out = String::new();
    for (index, (tone, text)) in all.enumerate() {
        let head = if index == 0 { format!("{node}  ") } else { " ".repeat(margin) };
        out += &page.beside(&head, margin, tone, &text);
    }
    out
}

fn labelled(label: &str, hint: &str) -> String {
    if label.is_empty() { hint.to_owned() } else { format!("{label}: {hint}") }
}

/// How it ended, in a sentence, without a time: of nodes that ended alike it is the same.
pub fn headline(followed: &FollowedNode) -> (Tone, String) {
    match &followed.end {
        FollowEnd::Outcome(end) => {
            let has_releases = followed.latest.as_ref().is_some_and(|update| !update.releases.is_empty());
            (words::outcome_tone(end.kind), outcome::sentence_of(end, has_releases))
        }
        FollowEnd::Refused(told) => (Tone::Bad, format!("refused: {}", told.message)),
        FollowEnd::Lost(why) => (Tone::Bad, format!("connection lost and not to be had again: {why}")),
        FollowEnd::TimedOut => (Tone::Busy, format!("not done in time; {}", goes_on(followed))),
        FollowEnd::Interrupted => (Tone::Busy, format!("left; {}", goes_on(followed))),
    }
}

/// The same with how long it took.
fn timed(followed: &FollowedNode) -> (Tone, String) {
    let (tone, text) = headline(followed);
    let took = duration::words(followed.took);
    let text = match &followed.end {
        FollowEnd::Outcome(_) => {
            let elapsed = followed.latest.as_ref().and_then(|update| update.elapsed);
            let after = elapsed.map_or(took, |span| duration::words(duration::of_wire(&span)));
            format!("{text} [{after}]")
        }
        FollowEnd::TimedOut => format!("not done within {took}; {}", goes_on(followed)),
        FollowEnd::Refused(_) | FollowEnd::Lost(_) | FollowEnd::Interrupted => text,
    };
    (tone, text)
}

/// Whether the newest message told that the fence waits in the queue, and is not begun.
fn waits(followed: &FollowedNode) -> bool {
    matches!(followed.motion, Motion::Fence(_)) && followed.latest.as_ref().is_some_and(update::is_queued)
}

/// What becomes of it without us.
fn goes_on(followed: &FollowedNode) -> String {
    match waits(followed) {
        true => "it waits in the queue".to_owned(),
        false => format!("the {} goes on", followed.motion.noun()),
    }
}

fn evidence_lines(followed: &FollowedNode) -> Vec<(Tone, String)> {
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

/// What to do next, each with the word that begins its line.
fn hints(followed: &FollowedNode) -> Vec<(&'static str, String)> {
    let node = &followed.node;
    let next = |text: String| vec![("next", text)];
    match &followed.end {
        FollowEnd::Outcome(end) => match end.kind() {
            OutcomeKind::NeedsOperator | OutcomeKind::PowerOnFailed => waiting(followed, end),
            OutcomeKind::Blocked => exits::of_outcome(node, end, followed.latest.as_ref()),
            OutcomeKind::StillHeld => next(format!("who holds it: picket status {node}")),
            OutcomeKind::Fenced | OutcomeKind::AlreadyFenced if !end.released => {
                next(format!("its releases go on: picket status {node}"))
            }
            OutcomeKind::Fenced | OutcomeKind::AlreadyFenced if followed.motion.powers_on() => {
                let phase = followed.latest.as_ref().map(|update| update.phase).unwrap_or_default();
                next(match Phase::try_from(phase) {
                    Ok(Phase::Released) => {
                        format!("it stays off: others hold it still: picket status {node}")
                    }
                    _ => format!(
                        "it is being powered on again, and is not to be taken for off: picket status {node}"
                    ),
                })
            }
            _ => Vec::new(),
        },
        FollowEnd::Refused(told) => told.details.iter().map(|line| ("", line.clone())).collect(),
        FollowEnd::Lost(_) => {
            let again = match &followed.motion {
                Motion::Fence(_) => format!("picket fence {node}"),
                Motion::Unfence(_) => format!("picket unfence {node}"),
                Motion::Retry(_) => format!("picket retry {node}"),
                Motion::StandDown(_) => format!("picket stand-down {node}"),
                Motion::Attest(_) => format!("picket attest {node}"),
                Motion::Drill(_) => format!("picket drill {node}"),
            };
            vec![
                ("now", format!("the {} may go on; whether it began is not known", followed.motion.noun())),
                (
                    "next",
                    format!("ask again with the same arguments: {again} --key {}", followed.motion.key()),
                ),
            ]
        }
        FollowEnd::TimedOut | FollowEnd::Interrupted if waits(followed) => {
            let holder = match &followed.motion {
                Motion::Fence(request) if !request.holder.is_empty() => {
                    format!(" --holder {}", request.holder)
                }
                _ => String::new(),
            };
            next(format!("how it fares: picket status {node}; to withdraw it: picket unfence {node}{holder}"))
        }
        FollowEnd::TimedOut | FollowEnd::Interrupted => next(format!("how it fares: picket status {node}")),
    }
}

/// What to do about a node that waits for a person. Where it does not, this caller alone asked for more, or for less time.
fn waiting(followed: &FollowedNode, end: &Outcome) -> Vec<(&'static str, String)> {
    let node = &followed.node;
    let phase = followed.latest.as_ref().map(FenceUpdate::phase);
    let waits = matches!(phase, None | Some(Phase::NeedsOperator | Phase::PowerOnFailed));
    if !waits && end.reason() != Reason::Orphaned {
        let text = format!("only what this call asked for was not met; how it fares: picket status {node}");
        return vec![("next", text)];
    }
    let mut lines = exits::of_outcome(node, end, followed.latest.as_ref());
    lines.push(("see", format!("with its releases and devices by name: picket status {node}")));
    lines
}

/// How several nodes ended, on one line.
pub fn summary(followed: &[&FollowedNode]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for one in followed {
        let word = match &one.end {
            FollowEnd::Outcome(end) => words::spoken(words::outcome(end.kind)),
            FollowEnd::Refused(_) => "refused".to_owned(),
            FollowEnd::Lost(_) => "lost".to_owned(),
            FollowEnd::TimedOut => "not done in time".to_owned(),
            FollowEnd::Interrupted => "left".to_owned(),
        };
        *counts.entry(word).or_insert(0_usize) += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    format!("{} nodes: {}\n", followed.len(), parts.join(", "))
}
