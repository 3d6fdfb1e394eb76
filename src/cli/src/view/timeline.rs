//! What happened in a fence, as one timeline: its moments and its device exchanges, equal answers of a device folded.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_proto::v1::{Exchange, Fence, Phase};
use prost_types::Timestamp;

use super::{truth, words};
use crate::duration;
use crate::style::{Page, Tone, clean};

/// How the gateway asks for an off, in the words of the audit.
const OFF: &str = "power off, hard";

/// A device took a command: its answer begins so.
const TAKEN: &str = "taken";

/// One line.
#[derive(Debug)]
struct Entry {
    at: Timestamp,
    event: String,
    tone: Tone,
    device: String,
    text: String,
    /// How often the same came, and when it came last.
    times: usize,
    last: Timestamp,
}

impl Entry {
    fn new(at: Timestamp, event: &str, tone: Tone, device: &str, text: &str) -> Self {
        let (event, device, text) = (clean(event).into(), clean(device).into(), clean(text).into());
        Self { at, event, tone, device, text, times: 1, last: at }
    }

    fn words(&self) -> String {
        if self.times == 1 {
            return self.text.clone();
        }
        let span = duration::words(duration::between(&self.at, &self.last));
        let often = format!("{} times in {span}", self.times);
        if self.text.is_empty() { often } else { format!("{often}; {}", self.text) }
    }
}

/// The lines of a fence, by the time since it was opened.
pub fn render(fence: &Fence, page: Page) -> String {
    let entries = entries(fence);
    let opened = fence.opened_at.unwrap_or_default();
    let offset = |entry: &Entry| format!("+{}", duration::words(duration::between(&opened, &entry.at)));
    let widest = |cell: &dyn Fn(&Entry) -> usize| entries.iter().map(cell).max().unwrap_or(0);
    let times = widest(&|entry| offset(entry).len());
    let events = widest(&|entry| entry.event.chars().count());
    let devices = widest(&|entry| entry.device.chars().count());
    let margin = 2 + times + 2 + events + 2 + devices + 2;
    let line = |entry: &Entry| {
        let at = page.tone(Tone::Faint, &format!("{:>times$}", offset(entry)));
        let event = page.tone(entry.tone, &format!("{:<events$}", entry.event));
        let head = format!("  {at}  {event}  {:<devices$}  ", entry.device);
        page.beside(&head, margin, Tone::Plain, &entry.words())
    };
    entries.iter().map(line).collect()
}

fn entries(fence: &Fence) -> Vec<Entry> {
    let has_exchanges = !fence.exchanges.is_empty();
    let mut all: Vec<Entry> = moments(fence, has_exchanges).chain(exchanges(fence)).collect();
    // What was stored and what was asked at the same time stand in that order: the sort is stable.
    all.sort_by_key(|entry| (entry.at.seconds, entry.at.nanos));
    fold(all)
}

/// The moments: a word where the phase is another one from there on. Where the exchanges are known they tell of the offs.
fn moments(fence: &Fence, has_exchanges: bool) -> impl Iterator<Item = Entry> {
    let mut before = Phase::Unspecified;
    fence.moments.iter().filter_map(move |moment| {
        let phase = moment.phase();
        let is_new = std::mem::replace(&mut before, phase) != phase;
        let (event, text) = match (is_new, moment.what.strip_prefix("off: ")) {
            (_, Some(_)) if has_exchanges => return None,
            (_, Some(devices)) => ("OFF sent".to_owned(), format!("to {devices}")),
            (false, None) => (String::new(), words::happened(&moment.what).into_owned()),
            (true, None) if phase == Phase::NeedsOperator => ("FAILED".to_owned(), moment.what.clone()),
            (true, None) => (words::spoken(words::phase(moment.phase)), moment.what.clone()),
        };
        Some(Entry::new(moment.at.unwrap_or_default(), &event, words::phase_tone(moment.phase), "", &text))
    })
}

fn exchanges(fence: &Fence) -> impl Iterator<Item = Entry> {
    fence.exchanges.iter().map(|exchange| {
        let (event, tone, text) = event(exchange);
        Entry::new(exchange.at.unwrap_or_default(), event, tone, &exchange.device, &text)
    })
}

/// An exchange in a word or two, and what is left of the answer.
fn event(exchange: &Exchange) -> (&str, Tone, String) {
    let answered = exchange.answered.as_str();
    match exchange.asked.as_str() {
        truth::ASKS_POWER => {
            // `off (chassis status 0x00), 3 more times in 25s`: what stands behind the bracket is said without it.
            let said = answered.split_once(" (").map_or("", |(_, said)| said);
            let said = said.rsplit_once(')').map_or(said.to_owned(), |(said, more)| format!("{said}{more}"));
            match truth::power_word(answered) {
                "on" => ("reads ON", Tone::Busy, said),
                "off" => ("reads off", Tone::Dark, said),
                "unknown" => ("no on or off", Tone::Busy, said),
                _ => ("no reading", Tone::Bad, answered.to_owned()),
            }
        }
        OFF if answered.starts_with(TAKEN) => ("OFF sent", Tone::Busy, answered.to_owned()),
        OFF => ("OFF tried", Tone::Bad, answered.to_owned()),
        "power on" => ("on sent", Tone::Busy, answered.to_owned()),
        "what machine is it" => ("identity", Tone::Plain, answered.to_owned()),
        "what would a hold change" => ("before hold", Tone::Plain, answered.to_owned()),
        "stay off" => ("hold", Tone::Plain, answered.to_owned()),
        "put back what the hold changed" => ("hold undone", Tone::Plain, answered.to_owned()),
        "end the session" => ("session end", Tone::Faint, answered.to_owned()),
        other => (other, Tone::Plain, answered.to_owned()),
    }
}

/// One line for a device's answers that follow one another and are equal, wherever other devices answer in between.
fn fold(all: Vec<Entry>) -> Vec<Entry> {
    let mut folded: Vec<Entry> = Vec::new();
    let mut last_of: BTreeMap<String, usize> = BTreeMap::new();
    for entry in all {
        if entry.device.is_empty() {
            // What happened in between is between them in the timeline as well.
            last_of.clear();
            folded.push(entry);
            continue;
        }
        let last = last_of.get(&entry.device).and_then(|at| folded.get_mut(*at));
        match last {
            Some(last) if last.event == entry.event && last.text == entry.text => {
                last.times += 1;
                last.last = entry.at;
            }
            _ => {
                last_of.insert(entry.device.clone(), folded.len());
                folded.push(entry);
            }
        }
    }
    folded
}

/// Everything as it was told: each moment, then each exchange, with its moment and how long it took.
pub fn raw(fence: &Fence, page: Page) -> String {
    let mut out = String::new();
    let stamp = |at: &Option<Timestamp>| {
        page.tone(Tone::Faint, &at.as_ref().map(duration::stamp).unwrap_or_default())
    };
    for moment in &fence.moments {
        let phase = format!("{:<15}", words::spoken(words::phase(moment.phase)));
        let phase = page.tone(words::phase_tone(moment.phase), &phase);
        let head = format!("  {}  {phase} ", stamp(&moment.at));
        out += &page.beside(&head, 44, Tone::Plain, &moment.what);
    }
    if !fence.moments.is_empty() && !fence.exchanges.is_empty() {
        out.push('\n');
    }
    for exchange in &fence.exchanges {
        let took: Duration = exchange.took.as_ref().map(duration::of_wire).unwrap_or_default();
        let text = format!(
            "{}: {} -> {} ({:.0} ms)",
            exchange.device,
            exchange.asked,
            exchange.answered,
            took.as_secs_f64() * 1_000.0
        );
        out += &page.beside(&format!("  {}  ", stamp(&exchange.at)), 28, Tone::Plain, &text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_said_has_no_stray_bracket() {
        let said = |answered: &str| {
            let asked = truth::ASKS_POWER.to_owned();
            let exchange = Exchange { asked, answered: answered.to_owned(), ..Exchange::default() };
            event(&exchange).2
        };
        assert_eq!(said("off (chassis status 0x00)"), "chassis status 0x00");
        assert_eq!(
            said("off (chassis status 0x00), 3 more times in 25s"),
            "chassis status 0x00, 3 more times in 25s"
        );
        assert_eq!(said("on (state (old) On)"), "state (old) On");
        assert_eq!(said("on"), "");
    }
}
