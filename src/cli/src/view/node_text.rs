//! Nodes, for people: the table, one in detail, the fleet in a few lines, one change.

use std::collections::BTreeMap;

use picket_proto::v1::{Device, Node, Pause, Phase, Power, Readiness, Reason, Wait};

use super::ability::{problem_words, usable_of};
use super::node::scope;
use super::{ability, evidence, exits, restored, simulated, words};
use crate::duration;
use crate::style::{Paint, Tone, clean};
use crate::table::{Cell, Table};

/// A list of nodes.
pub fn table(nodes: &[Node], paint: Paint) -> String {
    let mut table = Table::new(&["NODE", "PHASE", "POWER", "READ", "DEVICES", "HELD BY", "SINCE"]);
    for node in nodes {
        let holders: Vec<&str> = node.holds.iter().map(|hold| hold.holder.as_str()).collect();
        table.row(vec![
            node.name.as_str().into(),
            Cell::new(words::phase_tone(node.phase), &phase(node)),
            words::spoken(node.power.and_then(|power| words::power(power.power))).into(),
            age(node).into(),
            devices(node),
            holders.join(", ").into(),
            node.phase_since.as_ref().map(duration::stamp_seconds).unwrap_or_default().into(),
        ]);
    }
    table.render(paint)
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
        Some(age) => format!("{} ago", duration::words(duration::of_wire(&age))),
        None => "never".to_owned(),
    }
}

/// How many of a node's devices could be used.
fn devices(node: &Node) -> Cell {
    let ready = usable_of(&node.devices);
    let unchecked = node.devices.iter().all(|device| device.readiness == i32::from(Readiness::Unspecified));
    let text = if unchecked {
        format!("{} unchecked", node.devices.len())
    } else {
        format!("{ready}/{} {}", node.devices.len(), words::spoken(words::readiness(node.readiness)))
    };
    Cell::new(words::readiness_tone(node.readiness), &text)
}

/// What is waited for, in words that go on after "waits for".
pub fn wait(wait: &Wait) -> String {
    let mut text = wait.what.clone();
    if !wait.whose.is_empty() {
        text += &format!(" ({})", wait.whose);
    }
    if let Some(until) = &wait.until {
        text += &format!(" until {}", duration::stamp_seconds(until));
    }
    if !wait.otherwise.is_empty() {
        text += &format!(", else {}", wait.otherwise);
    }
    clean(&text).into_owned()
}

/// One node in detail.
pub fn detail(node: &Node, paint: Paint) -> String {
    let mut rows: Vec<(&str, Tone, String)> = Vec::new();
    let mut standing = phase(node);
    if let Some(since) = &node.phase_since {
        standing += &format!(" since {}", duration::stamp_seconds(since));
    }
    if node.simulated {
        rows.push(("simulated", Tone::Bad, simulated::NODE.to_owned()));
    }
    rows.push(("phase", words::phase_tone(node.phase), standing));
    rows.push(("detail", Tone::Plain, node.detail.clone()));
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
        rows.push((
            "held by",
            Tone::Plain,
            format!("{}: {} (by {}, {since}){dropped}", hold.holder, hold.reason, hold.by),
        ));
    }
    for effect in &node.open_effects {
        let life = match &effect.life {
            Some(life) => format!("may still act for {}", duration::words(duration::of_wire(life))),
            None => "nothing bounds it".to_owned(),
        };
        let kind = words::spoken(words::effect(effect.kind));
        rows.push(("open effect", Tone::Busy, format!("{kind} {}; {life}", effect.target)));
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
    let mut out = format!("{}\n", clean(&node.name));
    for (label, tone, text) in rows.into_iter().filter(|(_, _, text)| !text.is_empty()) {
        out += &format!(
            "  {} {}\n",
            paint.tone(Tone::Faint, &format!("{label:<14}")),
            paint.tone(tone, &clean(&text))
        );
    }
    for device in &node.devices {
        device_lines(device, node.orphaned, paint, &mut out);
    }
    out
}

/// A pause, on one line.
pub fn paused_words(pause: &Pause) -> String {
    let until = pause.expires_at.as_ref().map(|at| format!(", until {}", duration::stamp_seconds(at)));
    let (what, until) = (scope(pause.scope.as_ref()), until.unwrap_or_default());
    format!("{what}{until}: {} (by {})", pause.reason, pause.by)
}

fn device_lines(device: &Device, is_orphans: bool, paint: Paint, out: &mut String) {
    if is_orphans {
        let at = if device.driver.is_empty() {
            String::new()
        } else {
            format!("{} at {}, ", device.driver, device.address)
        };
        let class = words::spoken(words::device_class(device.device_class));
        let text = clean(&format!("{at}{class}, level {}: not asked any more", device.level)).into_owned();
        let label = paint.tone(Tone::Faint, &format!("{:<14}", format!("device {}", clean(&device.id))));
        *out += &format!("  {label} {text}\n");
        return;
    }
    let mut text = format!(
        "{} at {}, {}, level {}",
        device.driver,
        if device.address.is_empty() { "-" } else { &device.address },
        words::spoken(words::device_class(device.device_class)),
        device.level,
    );
    match &device.reading {
        Some(reading) => {
            let age = reading.age.as_ref().map(duration::of_wire).unwrap_or_default();
            text += &format!("; {} {} ago", words::spoken(words::power(reading.power)), duration::words(age));
            if !reading.said.is_empty() {
                text += &format!(" ({})", reading.said);
            }
        }
        None => text += "; not read yet",
    }
    text += &format!("; identity {}", words::spoken(words::identity_match(device.identity_match)));
    let readiness =
        words::readiness(device.readiness).unwrap_or_else(|| "not_checked".to_owned()).replace('_', " ");
    *out += &format!(
        "  {} {} {}\n",
        paint.tone(Tone::Faint, &format!("{:<14}", format!("device {}", clean(&device.id)))),
        paint.tone(words::readiness_tone(device.readiness), &format!("{readiness};")),
        clean(&text),
    );
    for problem in &device.problems {
        *out += &format!("  {:<14} {}\n", "", paint.tone(Tone::Bad, &clean(&problem_words(problem))));
    }
}

/// The fleet in a line, and a table of those that are not as usual.
pub fn overview(nodes: &[Node], paint: Paint) -> String {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for node in nodes {
        *counts.entry(node.phase).or_default() += 1;
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(phase, count)| {
            paint.tone(words::phase_tone(*phase), &format!("{count} {}", words::spoken(words::phase(*phase))))
        })
        .collect();
    let mut out = match nodes.len() {
        0 => "The gateway has no nodes.\n".to_owned(),
        1 => format!("1 node: {}\n", parts.join(", ")),
        all => format!("{all} nodes: {}\n", parts.join(", ")),
    };
    out += &simulated::line_of(nodes, paint);
    let mut paused: Vec<String> = Vec::new();
    for pause in nodes.iter().flat_map(|node| &node.pauses) {
        let line = paused_words(pause);
        if !paused.contains(&line) {
            paused.push(line);
        }
    }
    for line in paused {
        out += &format!("{} {}\n", paint.tone(Tone::Busy, "paused:"), clean(&line));
    }
    out += &ability::of_fleet(nodes, paint);
    let unusual = |node: &&Node| {
        node.phase != i32::from(Phase::Normal)
            || node.orphaned
            || node.wait.is_some()
            || node.readiness == i32::from(Readiness::NotReady)
    };
    let rest: Vec<Node> = nodes.iter().filter(unusual).cloned().collect();
    if !rest.is_empty() {
        out += &format!("\n{}", table(&rest, paint));
    }
    out
}

/// One change, on one line.
pub fn change(node: &Node, at: &str, paint: Paint) -> String {
    let mut text = paint.tone(words::phase_tone(node.phase), &phase(node));
    if node.simulated {
        text += " (simulated)";
    }
    text += &format!(", power {}", words::spoken(node.power.and_then(|power| words::power(power.power))));
    if !node.detail.is_empty() {
        text += &format!(": {}", clean(&node.detail));
    }
    if let Some(waited) = &node.wait {
        text += &format!("; waits for {}", wait(waited));
    }
    format!("{} {}  {text}\n", paint.tone(Tone::Faint, at), clean(&node.name))
}
