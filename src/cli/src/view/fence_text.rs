//! Fences as they were, for people.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_proto::v1::{Fence, FenceCause, OutcomeKind};
use prost_types::Timestamp;

use super::{evidence, outcome, timeline, truth, words};
use crate::duration;
use crate::style::{Page, Tone, clean};
use crate::table::{Cell, Table};

/// A list of fences, newest first. `wide`: with moments and whole ids, rather than ages and the ends of ids.
pub fn table(fences: &[Fence], wide: bool, page: Page) -> String {
    let opened = if wide { "OPENED" } else { "AGE" };
    let mut table = Table::new(&["FENCE", opened, "NODE", "RESULT", "PROOF", "PROVEN", "WHY"])
        .spare(&["PROVEN", "PROOF", "AGE"]);
    let ids: Vec<&str> = fences.iter().map(|fence| fence.id.as_str()).collect();
    let long = short(&ids);
    let now = duration::ago(Duration::ZERO);
    for fence in fences {
        let confirmed = fence.timings.and_then(|timings| timings.confirmed);
        let grade = fence.evidence.as_ref().and_then(|evidence| {
            let simulated = if evidence.simulated { ", simulated" } else { "" };
            Some(words::grade(evidence.grade)? + simulated)
        });
        let age = |at: &Timestamp| match wide {
            true => duration::stamp_seconds(at),
            false => duration::whole(duration::between(at, &now)),
        };
        table.row(vec![
            if wide { fence.id.as_str().into() } else { end(&fence.id, long).into() },
            fence.opened_at.as_ref().map(age).unwrap_or_default().into(),
            fence.node.as_str().into(),
            ending(fence),
            grade.unwrap_or_default().into(),
            confirmed.map(|span| duration::words(duration::of_wire(&span))).unwrap_or_default().into(),
            why(fence).into(),
        ]);
    }
    table.render(if wide { page.wide() } else { page })
}

/// So many characters from the end tell these ids apart; at least eight.
fn short(ids: &[&str]) -> usize {
    let is_unique = |long: &usize| {
        let mut seen = BTreeSet::new();
        ids.iter().all(|id| seen.insert(end(id, *long)))
    };
    (8..36).find(is_unique).unwrap_or(36)
}

fn end(id: &str, long: usize) -> &str {
    id.get(id.len().saturating_sub(long)..).unwrap_or(id)
}

/// Whether its volumes were let go, why it stands as it does, who asked for it, and why.
fn why(fence: &Fence) -> String {
    let reason = fence.outcome.as_ref().and_then(|outcome| match outcome.kind() {
        OutcomeKind::Fenced | OutcomeKind::AlreadyFenced => {
            let word = match (outcome.released, fence.releases.is_empty()) {
                (true, false) => "released",
                (true, true) => "nothing to let go",
                (false, _) => "NOT released",
            };
            Some(word.to_owned())
        }
        _ => words::reason(outcome.reason),
    });
    let asked = match fence.askers.first() {
        _ if is_breach(fence) => Some("nobody: a breach: found on".to_owned()),
        Some(asker) => {
            let who = words::who(&asker.caller, &asker.caller_shown);
            Some(format!("{who}: {}", crate::style::clip(&asker.reason, 60)))
        }
        None => None,
    };
    let all = [reason.map(|reason| reason.replace('_', " ")), asked];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// It was opened because the node was found on: nobody asked for it.
fn is_breach(fence: &Fence) -> bool {
    fence.cause == i32::from(FenceCause::Breach)
}

/// How a fence ended, in a word or two.
fn ending(fence: &Fence) -> Cell {
    let Some(outcome) = &fence.outcome else { return Cell::new(Tone::Busy, "under way") };
    let word = words::spoken(words::outcome(outcome.kind));
    let word = if outcome.kind() == OutcomeKind::NeedsOperator { word.to_uppercase() } else { word };
    Cell::new(words::outcome_tone(outcome.kind), &word)
}

/// One fence in detail. `raw`: with every moment and exchange as it was told, rather than a timeline.
pub fn detail(fence: &Fence, raw: bool, page: Page) -> String {
    let (tone, truth) = truth::of_fence(fence);
    let name = clean(&fence.node);
    let mut out = page.beside(&format!("{name}  "), name.chars().count() + 2, tone, &truth);
    if !raw {
        out += &timeline::render(fence, page);
        out.push('\n');
    }
    let mut row = |label: &str, tone: Tone, text: &str| {
        if !text.is_empty() {
            let margin = label.chars().count().max(14) + 3;
            let label = page.tone(Tone::Faint, &format!("{label:<14}"));
            out += &page.beside(&format!("  {label} "), margin, tone, text);
        }
    };
    row("fence", Tone::Plain, &fence.id);
    match &fence.outcome {
        Some(end) => row(
            "outcome",
            words::outcome_tone(end.kind),
            &outcome::sentence_of(end, !fence.releases.is_empty()),
        ),
        None => row("outcome", Tone::Busy, "none yet: it is under way"),
    }
    row("generation", Tone::Plain, &fence.generation.to_string());
    let mut cause = words::spoken(words::cause(fence.cause));
    if is_breach(fence) {
        cause += ": found on although nobody unfenced it; nobody asked for this fence";
    }
    row("cause", Tone::Plain, &cause);
    for asker in &fence.askers {
        let at = asker.at.as_ref().map(duration::stamp).unwrap_or_default();
        row(
            if is_breach(fence) { "joined by" } else { "asked by" },
            Tone::Plain,
            &format!(
                "{} for {} at {at}: {}",
                words::who(&asker.caller, &asker.caller_shown),
                asker.holder,
                asker.reason
            ),
        );
    }
    row("opened", Tone::Plain, &fence.opened_at.as_ref().map(duration::stamp).unwrap_or_default());
    row(
        "ended",
        Tone::Plain,
        &fence.ended_at.as_ref().map_or_else(|| "it is open".to_owned(), duration::stamp),
    );
    row("timings", Tone::Plain, &timings(fence));
    let levels: Vec<String> = fence
        .levels
        .iter()
        .enumerate()
        .map(|(i, level)| format!("{}: {}", i + 1, level.devices.join(" + ")))
        .collect();
    row("levels", Tone::Plain, &format!("{} (now {})", levels.join("; "), fence.level));
    row("off sent to", Tone::Plain, &fence.switched_off.join(", "));
    row("lost sessions", Tone::Busy, &fence.lost_sessions.join(", "));
    for hold in &fence.holds {
        let engaged =
            if hold.engaged.is_empty() { "not held off".to_owned() } else { hold.engaged.join(", ") };
        let detail = if hold.detail.is_empty() { String::new() } else { format!(" ({})", hold.detail) };
        row("hold", Tone::Plain, &format!("{}: {engaged}{detail}", hold.device));
    }
    for line in fence.evidence.as_ref().map(evidence::lines).unwrap_or_default() {
        let (label, text) = line.split_once(": ").unwrap_or(("", &line));
        row(label, Tone::Plain, text);
    }
    for release in &fence.releases {
        let (tone, text) = evidence::release_line(release);
        row("release", tone, text.trim_start_matches("release "));
    }
    if raw {
        out.push('\n');
        out += &timeline::raw(fence, page);
    }
    if fence.exchanges_cut {
        let command = format!("picket history --export --fence {}", fence.id);
        let more = format!("the audit may have more exchanges: {command}, where the gateway runs");
        out += &page.text(Tone::Faint, &more);
    }
    out
}

fn timings(fence: &Fence) -> String {
    let Some(timings) = &fence.timings else { return String::new() };
    [
        ("off sent", &timings.off_sent),
        ("off seen", &timings.off_seen),
        ("confirmed", &timings.confirmed),
        ("released", &timings.released),
        ("back", &timings.back),
    ]
    .into_iter()
    .filter_map(|(what, span)| {
        span.as_ref().map(|span| format!("{what} after {}", duration::words(duration::of_wire(span))))
    })
    .collect::<Vec<_>>()
    .join(", ")
}
