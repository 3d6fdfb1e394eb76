//! Nodes, for people: the table, one in detail, the fleet in a few lines, one change.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_proto::v1::{Device, EffectKind, Node, OpenEffect, Pause, Phase, Power, Readiness, Reason, Wait};
use prost_types::Timestamp;

use super::node::scope;
use super::readiness::{problem_words, usable_of};
use super::{evidence, exits, readiness, restored, simulated, truth, words};
use crate::duration;
use crate::style::{Page, Tone, clean};
use crate::table::{Cell, Table};

/// A list of nodes. `wide`: with the moments at which they came to their phases, rather than how long ago that was.
pub fn table(nodes: &[Node], wide: bool, page: Page) -> String {
    let since = if wide { "SINCE" } else { "FOR" };
    let mut table = Table::new(&["NODE", "POWER", "PHASE", "DEVICES", "READ", since, "NOTE"])
        .spare(&["READ", "FOR", "DEVICES"]);
    let now = now(nodes);
    for node in nodes {
        let (power_tone, power) = truth::power(node);
        table.row(vec![
            node.name.as_str().into(),
            Cell::new(power_tone, &power),
            Cell::new(words::phase_tone(node.phase), &words::spoken(words::phase(node.phase))),
            devices(node),
            age(node).into(),
            since_when(node, wide, &now).into(),
            note(node).into(),
        ]);
    }
    table.render(if wide { page.wide() } else { page })
}

/// The moment at which the gateway told of them, by its own clock; ours where it told of no reading.
fn now(nodes: &[Node]) -> Timestamp {
    let told = |node: &Node| {
        let power = node.power.as_ref()?;
        Some(duration::after(power.asked_at.as_ref()?, duration::of_wire(power.age.as_ref()?)))
    };
    let latest = nodes.iter().filter_map(told).max_by_key(|at| (at.seconds, at.nanos));
    latest.unwrap_or_else(|| duration::ago(Duration::ZERO))
}

fn since_when(node: &Node, wide: bool, now: &Timestamp) -> String {
    match &node.phase_since {
        Some(since) if wide => duration::stamp_seconds(since),
        Some(since) => duration::whole(duration::between(since, now)),
        None => String::new(),
    }
}

/// Why it is in its phase, and who keeps it off.
fn note(node: &Node) -> String {
    let reason = words::reason(node.reason).filter(|_| node.reason != i32::from(Reason::Orphaned));
    let holders: Vec<&str> = node.holds.iter().map(words::holder).collect();
    let held = (!holders.is_empty()).then(|| format!("held by {}", holders.join(", ")));
    let orphaned = node.orphaned.then(|| "ORPHANED".to_owned());
    let all = [orphaned, reason.map(|reason| reason.replace('_', " ")), held];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A node's phase with its reason.
pub fn phase(node: &Node) -> String {
    let mut text = words::spoken(words::phase(node.phase));
    let reason = words::reason(node.reason).filter(|_| node.reason != i32::from(Reason::Orphaned));
    if let Some(reason) = reason {
        text += &format!(" ({})", reason.replace('_', " "));
    }
    if node.orphaned {
        text += ", ORPHANED";
    }
    text
}

/// How long ago the power was read.
fn age(node: &Node) -> String {
    match node.power.and_then(|power| power.age) {
        Some(age) => format!("{} ago", duration::whole(duration::of_wire(&age))),
        None => "never".to_owned(),
    }
}

/// How many of a node's devices could be used.
fn devices(node: &Node) -> Cell {
    let devices = readiness::devices_of(node);
    let ready = usable_of(&devices);
    let unchecked = devices.iter().all(|device| device.readiness == i32::from(Readiness::Unspecified));
    let ignores = node.devices.iter().any(|device| readiness::ignored(node, device));
    let readiness = if ignores { readiness::readiness_of(&devices).into() } else { node.readiness };
    let text = if unchecked {
        format!("{} unchecked", devices.len())
    } else {
        format!("{ready}/{} {}", devices.len(), words::spoken(words::readiness(readiness)))
    };
    Cell::new(words::readiness_tone(readiness), &text)
}

/// What is waited for, and of whom.
pub fn waited(wait: &Wait) -> String {
    match (wait.what.strip_prefix("a decision"), wait.whose.as_str()) {
        // Whose it is stands before what it is about, rather than behind it in another bracket.
        (Some(about), "an operator") => format!("an operator's decision{about}"),
        (_, "") => wait.what.clone(),
        (_, whose) => format!("{} ({whose})", wait.what),
    }
}

/// What is waited for, in words that go on after "waits for".
pub fn wait(wait: &Wait) -> String {
    let mut text = waited(wait);
    if let Some(until) = &wait.until {
        text += &format!(" until {}", duration::stamp_seconds(until));
    }
    if !wait.otherwise.is_empty() {
        text += &format!(", else {}", wait.otherwise);
    }
    duration::spoken(&clean(&text)).into_owned()
}

/// One node in detail.
pub fn detail(node: &Node, page: Page) -> String {
    let mut rows: Vec<(&str, Tone, String)> = Vec::new();
    let mut standing = phase(node);
    if let Some(since) = &node.phase_since {
        standing += &format!(" since {}", duration::stamp_seconds(since));
    }
    if node.simulated {
        rows.push(("simulated", Tone::Bad, simulated::NODE.to_owned()));
    }
    rows.push(("phase", words::phase_tone(node.phase), standing));
    rows.push(("detail", Tone::Plain, words::happened(&node.detail).into_owned()));
    rows.push(("waits for", Tone::Busy, node.wait.as_ref().map(wait).unwrap_or_default()));
    let power = words::spoken(node.power.and_then(|power| words::power(power.power)));
    let off = node.power.is_some_and(|power| power.power == i32::from(Power::Off));
    let proven = if node.proven {
        ", proven off"
    } else if off {
        ", which alone proves nothing"
    } else {
        ""
    };
    rows.push(("new settings", Tone::Bad, refused_settings(node)));
    rows.push(("next", Tone::Busy, restored::next(node).unwrap_or_default()));
    rows.extend(exits::of_node(node).into_iter().map(|(label, way)| (label, Tone::Busy, way)));
    rows.push(("power", Tone::Plain, format!("{power}, read {}{proven}", age(node))));
    rows.push(("generation", Tone::Plain, node.generation.to_string()));
    let bringing = words::bringing(node.bringing).map(|word| word.replace('_', " "));
    rows.push(("bringing back", Tone::Busy, bringing.unwrap_or_default()));
    let fence = match (node.fence_id.as_str(), &node.fence_opened_at) {
        ("", _) => String::new(),
        (id, Some(at)) => format!("{id}, opened {}", duration::stamp_seconds(at)),
        (id, None) => id.to_owned(),
    };
    rows.push(("fence", Tone::Plain, fence));
    for release in &node.releases {
        let (tone, text) = evidence::release_standing(release);
        rows.push(("release", tone, text.trim_start_matches("release ").to_owned()));
    }
    for hold in &node.holds {
        let since = hold.since.as_ref().map(duration::stamp_seconds).unwrap_or_default();
        let dropped = if hold.drop_when_released { "; dropped once released" } else { "" };
        let by = words::who(&hold.by, &hold.by_shown);
        rows.push((
            "held by",
            Tone::Plain,
            format!("{}: {} (by {by}, {since}){dropped}", hold.holder, hold.reason),
        ));
    }
    for effect in &node.open_effects {
        rows.push(("open effect", Tone::Busy, open_effect(effect, node.phase())));
    }
    for pause in &node.pauses {
        rows.push(("paused", Tone::Busy, paused_words(pause)));
    }
    if let Some(retired) = &node.retired {
        rows.push(("retired", Tone::Dark, format!("{} (by {})", retired.reason, retired.by)));
    }
    if node.breaches > 0 {
        rows.push(("breaches", Tone::Bad, format!("found on {} time(s) in a row", node.breaches)));
    }
    rows.push(("groups", Tone::Plain, node.groups.join(", ")));
    let name = clean(&node.name);
    let (tone, truth) = truth::of_node(node);
    let mut out = page.beside(&format!("{name}  "), name.chars().count() + 2, tone, &truth);
    for (label, tone, text) in rows.into_iter().filter(|(_, _, text)| !text.is_empty()) {
        out += &row(label, tone, &text, page);
    }
    for device in readiness::devices_of(node) {
        out += &device_lines(&device, node.orphaned, page);
    }
    out
}

/// That the settings which were read last do not hold, because of this node.
fn refused_settings(node: &Node) -> String {
    match node.refused_settings.as_str() {
        "" => String::new(),
        why => format!("refused as a whole, those of before are in force: {why}"),
    }
}

/// A pause, on one line.
pub fn paused_words(pause: &Pause) -> String {
    let until = pause.expires_at.as_ref().map(|at| format!(", until {}", duration::stamp_seconds(at)));
    let (what, until) = (scope(pause.scope.as_ref()), until.unwrap_or_default());
    format!("{what}{until}: {} (by {})", pause.reason, pause.by)
}

/// A label, and what is said under it.
fn row(label: &str, tone: Tone, text: &str, page: Page) -> String {
    let label = clean(label);
    let margin = label.chars().count().max(14) + 3;
    let head = page.tone(Tone::Faint, &format!("{label:<14}"));
    page.beside(&format!("  {head} "), margin, tone, text)
}

/// Something that was sent, and what may still come of it.
fn open_effect(effect: &OpenEffect, phase: Phase) -> String {
    let kind = words::spoken(words::effect(effect.kind));
    let life = match &effect.life {
        Some(life) => {
            format!("it may act for {} after it was sent", duration::set(duration::of_wire(life)))
        }
        None => "nothing bounds how late it may act".to_owned(),
    };
    let is_kept = matches!(phase, Phase::Fenced | Phase::Released | Phase::NeedsOperator);
    let why = match effect.kind() {
        EffectKind::Off if is_kept => "kept open for as long as the node is held off",
        // Also where nothing was engaged: an answer is no end (S5), as a late copy may be taken still.
        EffectKind::Hold if is_kept => {
            "a late copy of it may still arrive, so the unfence ends its session first; this is usual"
        }
        _ => "its end was not seen",
    };
    format!("{kind} {}: {why}; {life}", effect.target)
}

fn device_lines(device: &Device, is_orphans: bool, page: Page) -> String {
    let label = format!("device {}", device.id);
    let class = words::spoken(words::device_class(device.device_class));
    if is_orphans {
        let at = if device.driver.is_empty() {
            String::new()
        } else {
            format!("{} at {}, ", device.driver, device.address)
        };
        let text = format!("{at}{class}, level {}: not asked any more", device.level);
        return row(&label, Tone::Plain, &text, page);
    }
    let readiness =
        words::readiness(device.readiness).unwrap_or_else(|| "not_checked".to_owned()).replace('_', " ");
    let address = if device.address.is_empty() { "-" } else { &device.address };
    let mut text = format!("{readiness}; {} at {address}, {class}, level {}", device.driver, device.level);
    match &device.reading {
        Some(reading) => {
            let age = reading.age.as_ref().map(duration::of_wire).unwrap_or_default();
            text += &format!("; {} {} ago", words::spoken(words::power(reading.power)), duration::whole(age));
            if !reading.said.is_empty() {
                text += &format!(" ({})", reading.said);
            }
        }
        None => text += "; not read yet",
    }
    text += &format!("; identity {}", words::spoken(words::identity_match(device.identity_match)));
    let tone = match words::readiness_tone(device.readiness) {
        Tone::Bad => Tone::Bad,
        _ => Tone::Plain,
    };
    let problems = device.problems.iter().map(|problem| row("", Tone::Bad, &problem_words(problem), page));
    row(&label, tone, &text, page) + &problems.collect::<String>()
}

/// The fleet in a line, and a table of those that are not as usual.
pub fn overview(nodes: &[Node], page: Page) -> String {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for node in nodes {
        *counts.entry(node.phase).or_default() += 1;
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(phase, count)| format!("{count} {}", words::spoken(words::phase(*phase))))
        .collect();
    let mut out = match nodes.len() {
        0 => "The gateway has no nodes.\n".to_owned(),
        1 => page.text(Tone::Plain, &format!("1 node: {}", parts.join(", "))),
        all => page.text(Tone::Plain, &format!("{all} nodes: {}", parts.join(", "))),
    };
    out += &simulated::line_of(nodes, page);
    let mut paused: Vec<String> = Vec::new();
    for pause in nodes.iter().flat_map(|node| &node.pauses) {
        let line = paused_words(pause);
        if !paused.contains(&line) {
            paused.push(line);
        }
    }
    for line in paused {
        out += &page.text(Tone::Busy, &format!("paused: {line}"));
    }
    out += &readiness::of_fleet(nodes, page);
    let unusual = |node: &&Node| {
        node.phase != i32::from(Phase::Normal)
            || node.orphaned
            || node.wait.is_some()
            || node.power.is_some_and(|power| power.power() == Power::Off)
            || node.readiness == i32::from(Readiness::NotReady)
    };
    let rest: Vec<Node> = nodes.iter().filter(unusual).cloned().collect();
    if !rest.is_empty() {
        out += &format!("\n{}", table(&rest, page.width.is_none(), page));
    }
    out
}

/// One change, on one line.
pub fn change(node: &Node, at: &str, page: Page) -> String {
    let mut text = phase(node);
    if node.simulated {
        text += " (simulated)";
    }
    let (power_tone, power) = truth::power(node);
    text += &format!(", power {power}");
    if !node.detail.is_empty() {
        text += &format!(": {}", words::happened(&node.detail));
    }
    if let Some(waited) = &node.wait {
        text += &format!("; waits for {}", wait(waited));
    }
    let tone = if power_tone == Tone::Bad { Tone::Bad } else { words::phase_tone(node.phase) };
    page.text(tone, &format!("{at} {}  {text}", node.name))
}
