//! What devices answer, in words for people: no bytes, no secret.

use std::time::Duration;

use picket_core::power::{Power, Reading};
use picket_core::time::written;
use picket_driver::{Accepted, DriverError, ErrorKind, HoldFound, HoldReport, Identified};

/// The answer, or why there is none.
pub(super) fn heard<T>(result: &Result<T, DriverError>, words: impl FnOnce(&T) -> String) -> String {
    match result {
        Ok(answer) => words(answer),
        Err(error) => error.to_string(),
    }
}

/// Why a call failed; where a time limit of ours was what failed, the setting that it is, and how long its last answer took.
pub(super) fn fault(error: &DriverError, call: Option<Duration>, took: Option<Duration>) -> String {
    let Some(call) = call.filter(|_| error.kind == ErrorKind::TimedOut) else { return error.to_string() };
    let took = took.map(|took| format!(", and its last reading took {:.1} s", took.as_secs_f64()));
    let took = took.unwrap_or_default();
    format!("{error} (it has {} for a call, `call` in its settings{took})", written(call))
}

/// The words of a text but for its times: `5s`, `1.2 s`, `250ms`, and the stamps of a program's log: `2026-11-30 22:17:02,133`.
pub(super) fn without_times(text: &str) -> Vec<&str> {
    let is_unit = |word: &str| matches!(word, "ms" | "s" | "m" | "min" | "h");
    let bare = |word: &str| -> String { word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned() };
    let is_stamp = |word: &str| {
        let many = |mark| word.matches(mark).count() == 2;
        word.chars().all(|c| c.is_ascii_digit() || "-:.,TZ".contains(c)) && (many(':') || many('-'))
    };
    let words: Vec<&str> = text.split(' ').collect();
    let is_time = |at: usize, word: &str| {
        let bare_word = bare(word);
        let unit = bare_word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let next = words.get(at + 1).map(|next| bare(next)).unwrap_or_default();
        let is_span = unit.len() < bare_word.len() && (is_unit(unit) || unit.is_empty() && is_unit(&next));
        is_span || is_stamp(&bare_word)
    };
    words.iter().enumerate().filter(|(at, word)| !is_time(*at, word)).map(|(_, word)| *word).collect()
}

pub(super) fn identity(said: &Identified) -> String {
    let identity = &said.identity;
    let uuid = identity.uuid.as_ref().map(|uuid| format!("uuid {uuid}"));
    let serial = identity.serial.as_ref().map(|serial| format!("serial {serial}"));
    let known: Vec<String> = uuid.into_iter().chain(serial).collect();
    if known.is_empty() { "it does not say".to_owned() } else { known.join(", ") }
}

pub(super) fn found(found: &HoldFound) -> String {
    let found: Vec<String> = found.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    if found.is_empty() { "nothing".to_owned() } else { found.join(", ") }
}

pub(super) fn hold(report: &HoldReport) -> String {
    let engaged =
        if report.engaged.is_empty() { "engaged: none".to_owned() } else { report.engaged.join(", ") };
    if report.detail.is_empty() { engaged } else { format!("{engaged}; {}", report.detail) }
}

pub(super) fn reading(reading: &Reading) -> String {
    let power = match reading.power {
        Power::On => "on",
        Power::Off => "off",
        Power::Unknown => "unknown",
    };
    if reading.said.is_empty() { power.to_owned() } else { format!("{power} ({})", reading.said) }
}

pub(super) fn accepted(accepted: &Accepted) -> String {
    if accepted.already { "taken; it was so already".to_owned() } else { "taken".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::without_times;

    #[test]
    fn a_text_is_the_same_where_its_times_alone_differ() {
        let told = "bmc: timed out: no answer (it has 5s for a call, and its last reading took 1.2 s)";
        assert_eq!(
            without_times(told),
            without_times(&told.replace("1.2 s", "0.4 s").replace("5s", "250ms"))
        );
        for other in [told.replace("bmc", "pdu"), told.replace("no answer", "no session")] {
            assert_ne!(without_times(told), without_times(&other), "{other}");
        }
        let logged = |stamp: &str| format!("outlet: {stamp} ERROR: Failed: Timed out waiting to power OFF");
        let (first, next) = (logged("2026-11-30 22:17:02,133"), logged("2026-12-01 00:00:40,596"));
        assert_eq!(without_times(&first), without_times(&next));
        // A number alone is none: a status, a port.
        assert_ne!(without_times("it answers 503, sorry"), without_times("it answers 500, sorry"));
    }
}
