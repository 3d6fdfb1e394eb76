//! How fences ended, for people: a table with power and volumes first, then what went wrong, and what to do about it.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_proto::v1::{DeviceReading, Evidence, FenceUpdate, Outcome, OutcomeKind, Phase, Power};

use super::{report, truth, words};
use crate::duration;
use crate::exit::Exit;
use crate::motion::{FollowEnd, FollowedNode};
use crate::style::{Page, Tone, clean};
use crate::table::{Cell, Table};

/// Of more nodes than this those that ended well are counted, and only the others are listed.
const LISTED: usize = 12;

/// A reading that is older says nothing of how the node is now.
const FRESH: Duration = Duration::from_secs(15);

/// All of them, failures last.
pub fn render(followed: &[&FollowedNode], page: Page) -> String {
    let (good, bad): (Vec<&FollowedNode>, Vec<&FollowedNode>) =
        followed.iter().partition(|one| one.exit() == Exit::Done);
    let mut out = String::new();
    let mut listed = [good.clone(), bad.clone()].concat();
    if followed.len() > LISTED {
        out += &counted(&good, followed.len(), page);
        listed = bad.clone();
    }
    if !listed.is_empty() {
        out += &table(&listed, page);
    }
    if let [one] = followed
        && bad.is_empty()
    {
        out.push('\n');
        out += &report::proof(one, page);
    }
    out + &blocks(&bad, page)
}

/// Those that ended well, on one line.
fn counted(good: &[&FollowedNode], all: usize, page: Page) -> String {
    let slowest = good.iter().filter_map(|one| proven_after(one)).max();
    let within = slowest.map(|span| format!(", proven within {}", duration::words(span))).unwrap_or_default();
    let tone = if good.len() == all { Tone::Good } else { Tone::Bad };
    let rest = if good.len() == all { "" } else { "; the others:" };
    page.text(tone, &format!("{} of {all} ended well{within}{rest}", good.len()))
}

fn table(listed: &[&FollowedNode], page: Page) -> String {
    let mut table =
        Table::new(&["NODE", "RESULT", "PROOF", "OFF SINCE", "PROVEN", "VOLUMES"]).spare(&["PROVEN"]);
    for one in listed {
        let (result_tone, result) = result(one);
        let (off_tone, off) = off_since(one);
        let proof = proof(one);
        let proof_tone = if proof == "none" { Tone::Bad } else { Tone::Plain };
        let (volumes_tone, volumes) = volumes(one);
        table.row(vec![
            one.node.as_str().into(),
            Cell::new(result_tone, &result),
            Cell::new(proof_tone, &proof),
            Cell::new(off_tone, &off),
            proven_after(one).map(duration::words).unwrap_or_default().into(),
            Cell::new(volumes_tone, &volumes),
        ]);
    }
    table.render(page)
}

fn kind(one: &FollowedNode) -> Option<OutcomeKind> {
    match &one.end {
        FollowEnd::Outcome(end) => Some(end.kind()),
        _ => None,
    }
}

fn is_proven(one: &FollowedNode) -> bool {
    matches!(kind(one), Some(OutcomeKind::Fenced | OutcomeKind::AlreadyFenced))
}

/// How it ended, in a word or two.
pub fn result(one: &FollowedNode) -> (Tone, String) {
    match &one.end {
        FollowEnd::Outcome(end) => {
            let tone = if one.exit() == Exit::Done { Tone::Good } else { words::outcome_tone(end.kind) };
            let word = match end.kind() {
                OutcomeKind::Fenced | OutcomeKind::AlreadyFenced if end.released && has_releases(one) => {
                    "released"
                }
                OutcomeKind::Fenced | OutcomeKind::AlreadyFenced => "fenced",
                OutcomeKind::AbortedRecovered => "recovered",
                OutcomeKind::NeedsOperator => "NEEDS OPERATOR",
                OutcomeKind::PowerOnFailed => "POWER-ON FAILED",
                _ => return (tone, words::spoken(words::outcome(end.kind))),
            };
            (tone, word.to_owned())
        }
        FollowEnd::Refused(_) => (Tone::Bad, "refused".to_owned()),
        FollowEnd::Lost(_) => (Tone::Bad, "NOT KNOWN".to_owned()),
        FollowEnd::TimedOut | FollowEnd::Interrupted => (Tone::Busy, "goes on".to_owned()),
    }
}

fn has_releases(one: &FollowedNode) -> bool {
    one.latest.as_ref().is_some_and(|update| !update.releases.is_empty())
}

/// The evidence that stands: none where the node reads on, or where nothing was confirmed.
fn evidence(one: &FollowedNode) -> Option<&Evidence> {
    let evidence = one.latest.as_ref()?.evidence.as_ref()?;
    (is_proven(one) || !reads(one, Power::On)).then_some(evidence)
}

fn proof(one: &FollowedNode) -> String {
    match (evidence(one), kind(one)) {
        (Some(evidence), _) => {
            let simulated = if evidence.simulated { ", simulated" } else { "" };
            words::spoken(words::grade(evidence.grade)) + simulated
        }
        (None, Some(OutcomeKind::NeedsOperator)) => "none".to_owned(),
        (None, _) => String::new(),
    }
}

/// Since when it is off; else what is known of its power.
fn off_since(one: &FollowedNode) -> (Tone, String) {
    let bad = |word: &str| (Tone::Bad, word.to_owned());
    let phase = one.latest.as_ref().map(FenceUpdate::phase);
    match &one.end {
        FollowEnd::Lost(_) => return bad("NOT KNOWN"),
        FollowEnd::Refused(_) => return (Tone::Plain, "no off sent".to_owned()),
        FollowEnd::Outcome(end) => match end.kind() {
            OutcomeKind::Blocked => return (Tone::Plain, "no off sent".to_owned()),
            OutcomeKind::AbortedRecovered => return bad("NOT OFF"),
            OutcomeKind::Fenced | OutcomeKind::AlreadyFenced if phase == Some(Phase::Unfencing) => {
                return (Tone::Busy, "COMING BACK".to_owned());
            }
            OutcomeKind::Fenced | OutcomeKind::AlreadyFenced | OutcomeKind::NeedsOperator => {}
            _ => return (Tone::Plain, String::new()),
        },
        FollowEnd::TimedOut | FollowEnd::Interrupted => {}
    }
    if reads(one, Power::On) && !is_proven(one) {
        return bad("STILL ON");
    }
    if let Some(since) = evidence(one).and_then(|evidence| evidence.off_since.as_ref()) {
        return (Tone::Plain, duration::clock(since));
    }
    match kind(one) {
        Some(OutcomeKind::Fenced | OutcomeKind::AlreadyFenced) => (Tone::Plain, "off".to_owned()),
        _ if all_read_off(one) => (Tone::Busy, "reads off".to_owned()),
        _ => bad("NOT KNOWN"),
    }
}

/// Readings of now: an older one is no news of the node.
fn fresh(one: &FollowedNode) -> impl Iterator<Item = &DeviceReading> {
    let now = one.latest.as_ref().and_then(|update| update.time);
    one.readings.values().filter(move |reading| match (&reading.asked_at, &now) {
        (Some(asked), Some(now)) => duration::between(asked, now) <= FRESH,
        _ => false,
    })
}

fn reads(one: &FollowedNode, power: Power) -> bool {
    fresh(one).any(|reading| reading.power() == power)
}

fn all_read_off(one: &FollowedNode) -> bool {
    reads(one, Power::Off) && fresh(one).all(|reading| reading.power() == Power::Off)
}

/// From its beginning to its proof.
fn proven_after(one: &FollowedNode) -> Option<Duration> {
    let update = one.latest.as_ref()?;
    let (now, confirmed) = (update.time.as_ref()?, evidence(one)?.confirmed_at.as_ref()?);
    let elapsed = duration::of_wire(update.elapsed.as_ref()?);
    elapsed.checked_sub(duration::between(confirmed, now))
}

/// Whether its volumes were let go; empty where nothing of the kind was asked.
pub fn volumes(one: &FollowedNode) -> (Tone, String) {
    let is_over = matches!(&one.end, FollowEnd::Outcome(Outcome { released: true, .. }));
    match (&one.end, &one.latest) {
        (FollowEnd::Outcome(end), Some(update)) => match end.kind() {
            OutcomeKind::Fenced | OutcomeKind::AlreadyFenced | OutcomeKind::NeedsOperator => {
                truth::volumes(&update.releases, is_over)
            }
            _ => (Tone::Plain, String::new()),
        },
        (FollowEnd::TimedOut | FollowEnd::Interrupted, Some(update)) if !update.fence_id.is_empty() => {
            truth::volumes(&update.releases, update.phase() == Phase::Released)
        }
        (FollowEnd::Lost(_), _) => (Tone::Bad, "NOT KNOWN".to_owned()),
        _ => (Tone::Plain, String::new()),
    }
}

/// What went wrong and what to do: once for all nodes of which the same is to be said.
fn blocks(bad: &[&FollowedNode], page: Page) -> String {
    let mut order: Vec<Vec<(String, String)>> = Vec::new();
    let mut nodes: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for one in bad {
        let lines: Vec<(String, String)> = report::reasons(one)
            .into_iter()
            .map(|(label, text)| (label, words::named(&text, &one.node, "\0")))
            .collect();
        let at = order.iter().position(|known| *known == lines).unwrap_or_else(|| {
            order.push(lines);
            order.len() - 1
        });
        nodes.entry(at).or_default().push(&one.node);
    }
    let mut out = String::new();
    for (lines, nodes) in order.iter().zip(nodes.values()) {
        let (title, typed) = match nodes.as_slice() {
            few if few.len() <= words::NAMED => (few.join(", "), few.join(",")),
            many => (words::some(many), "NODE".to_owned()),
        };
        out.push('\n');
        out += &block(
            &title,
            lines.iter().map(|(label, text)| (label.as_str(), text.replace('\0', &typed))),
            page,
        );
    }
    out
}

/// A title, and lines with labels beside it; a long title has a line of its own.
fn block<'a>(title: &str, lines: impl Iterator<Item = (&'a str, String)>, page: Page) -> String {
    let title = clean(title);
    let long = title.chars().count();
    let beside = long <= 12;
    let margin = if beside { long + 2 } else { 2 };
    let mut out = if beside { String::new() } else { page.text(Tone::Plain, &title) };
    for (index, (label, text)) in lines.enumerate() {
        let head = if index == 0 && beside { format!("{title}  ") } else { " ".repeat(margin) };
        let label = page.tone(Tone::Faint, &format!("{label:<5}"));
        let tone = if index == 0 { Tone::Bad } else { Tone::Plain };
        out += &page.beside(&format!("{head}{label} "), margin + 6, tone, &text);
    }
    out
}
