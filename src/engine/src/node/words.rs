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
