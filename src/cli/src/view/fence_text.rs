//! Fences as they were, for people.

use picket_proto::v1::{Fence, FenceCause};

use super::{evidence, outcome, truth, words};
use crate::duration;
use crate::style::{Page, Tone, clean};
use crate::table::{Cell, Table};

/// A list of fences, newest first.
pub fn table(fences: &[Fence], page: Page) -> String {
    let mut table = Table::new(&["OPENED", "NODE", "OUTCOME", "CONFIRMED", "GRADE", "BY", "REASON", "FENCE"]);
    for fence in fences {
        let first = fence.askers.first();
        let confirmed = fence.timings.and_then(|timings| timings.confirmed);
        let (by, why) = match first {
            _ if is_breach(fence) => ("nobody", "a breach: found on".to_owned()),
            Some(asker) => (asker.caller.as_str(), crate::style::clip(&asker.reason, 40)),
            None => ("", String::new()),
        };
        let grade = fence.evidence.as_ref().and_then(|evidence| {
            let simulated = if evidence.simulated { ", simulated" } else { "" };
            Some(words::grade(evidence.grade)? + simulated)
        });
        table.row(vec![
            fence.opened_at.as_ref().map(duration::stamp_seconds).unwrap_or_default().into(),
            fence.node.as_str().into(),
            ending(fence),
            confirmed.map(|span| duration::words(duration::of_wire(&span))).unwrap_or_default().into(),
            grade.unwrap_or_default().into(),
            by.into(),
            why.into(),
            fence.id.as_str().into(),
        ]);
    }
    table.render(page)
}

/// It was opened because the node was found on: nobody asked for it.
fn is_breach(fence: &Fence) -> bool {
    fence.cause == i32::from(FenceCause::Breach)
}

/// How a fence ended, in a few words.
fn ending(fence: &Fence) -> Cell {
    let open = if fence.ended_at.is_none() { ", open" } else { "" };
    match &fence.outcome {
        None => Cell::new(Tone::Busy, "under way"),
        Some(outcome) => {
            let mut text = words::spoken(words::outcome(outcome.kind));
            if outcome.released {
                text += ", released";
            }
            if let Some(reason) = words::reason(outcome.reason) {
                text += &format!(" ({})", reason.replace('_', " "));
            }
            Cell::new(words::outcome_tone(outcome.kind), &(text + open))
        }
    }
}

/// One fence in detail.
pub fn detail(fence: &Fence, page: Page) -> String {
    let (tone, truth) = truth::of_fence(fence);
    let name = clean(&fence.node);
    let mut out = page.beside(&format!("{name}  "), name.chars().count() + 2, tone, &truth);
    let mut row = |label: &str, tone: Tone, text: &str| {
        if !text.is_empty() {
            let margin = label.chars().count().max(14) + 3;
            let label = page.tone(Tone::Faint, &format!("{label:<14}"));
            out += &page.beside(&format!("  {label} "), margin, tone, text);
        }
    };
    row("fence", Tone::Plain, &fence.id);
    match &fence.outcome {
        Some(end) => row("outcome", words::outcome_tone(end.kind), &outcome::sentence(end)),
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
            &format!("{} for {} at {at}: {}", asker.caller, asker.holder, asker.reason),
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
        let engaged = if hold.engaged.is_empty() { "none".to_owned() } else { hold.engaged.join(", ") };
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
    history(fence, page, &mut out);
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

fn history(fence: &Fence, page: Page, out: &mut String) {
    if !fence.moments.is_empty() {
        *out += "\n";
        for moment in &fence.moments {
            let at = moment.at.as_ref().map(duration::stamp).unwrap_or_default();
            let phase = format!("{:<15}", words::spoken(words::phase(moment.phase)));
            *out += &format!(
                "  {}  {} {}\n",
                page.tone(Tone::Faint, &at),
                page.tone(words::phase_tone(moment.phase), &phase),
                clean(&moment.what)
            );
        }
    }
    if !fence.exchanges.is_empty() {
        *out += "\n";
        for exchange in &fence.exchanges {
            let at = exchange.at.as_ref().map(duration::stamp).unwrap_or_default();
            let took = exchange.took.as_ref().map(duration::of_wire).unwrap_or_default();
            let text = format!("{}: {} -> {}", exchange.device, exchange.asked, exchange.answered);
            let took = format!("({:.0} ms)", took.as_secs_f64() * 1_000.0);
            *out += &format!(
                "  {}  {} {}\n",
                page.tone(Tone::Faint, &at),
                clean(&text),
                page.tone(Tone::Faint, &took)
            );
        }
    }
    if fence.exchanges_cut {
        let command = format!("picket history --export --fence {}", clean(&fence.id));
        let more = format!("the audit may have more of them: {command}, where the gateway runs");
        *out += &format!("  {}\n", page.tone(Tone::Faint, &more));
    }
}
