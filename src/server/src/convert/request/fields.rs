//! The fields that requests have in common.

use std::time::Duration;

use picket_core::device::Identity;
use picket_core::ids::DeviceId;
use picket_core::time::WallTime;
use picket_proto::v1::ErrorReason;

use crate::convert::time::{span, wall};
use crate::digest::Digest;
use crate::fault::{Fault, Fields};

/// The longest reason, in bytes.
const REASON: usize = 1_024;
/// The longest key, in bytes.
const KEY: usize = 128;
/// The longest name of a holder, in bytes.
const HOLDER: usize = 253;
/// The deadlines that a caller may ask for.
const DEADLINE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(86_400));

/// Feeds a deadline, where there is one.
pub(super) fn with_deadline(digest: Digest, deadline: Option<Duration>) -> Digest {
    match deadline {
        Some(deadline) => digest.with("deadline", &deadline.as_millis().to_string()),
        None => digest,
    }
}

/// A field that was found wrong was not told; cannot be reached, and is an error all the same.
pub(super) fn lost(field: &str) -> Fault {
    let mut fields = Fields::default();
    fields.wrong(field, "is missing");
    fields.done().err().unwrap_or_else(|| Fault::new(ErrorReason::BadRequest, "a field is missing"))
}

/// Says why: required, and bounded, since it is stored and told. Line breaks and tabs, which people type, become blanks.
pub(super) fn reason(text: &str, fields: &mut Fields) -> String {
    if text.trim().is_empty() {
        fields.wrong("reason", "is empty: say why; it stands in the history");
    }
    sentence("reason", text, fields)
}

/// A text of at most [`REASON`] bytes on one line.
pub(super) fn sentence(field: &str, text: &str, fields: &mut Fields) -> String {
    let text = text.trim().replace(['\n', '\r', '\t'], " ");
    // One of these can be six bytes in the store: a record of many would be too large to be stored.
    let is_plain = !text.chars().any(char::is_control);
    if text.len() > REASON {
        fields.wrong(field, format!("has {} bytes: at most {REASON}", text.len()));
    } else if !is_plain {
        fields.wrong(field, "has control characters: plain text is wanted");
    }
    text
}

pub(super) fn key(text: &str, fields: &mut Fields) -> Option<String> {
    if text.len() > KEY {
        fields.wrong("idempotency_key", format!("has {} bytes: at most {KEY}; a UUID is good", text.len()));
    } else if text.chars().any(char::is_control) {
        fields
            .wrong("idempotency_key", "has control characters: letters and digits are good, a UUID is best");
    }
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn holder(text: &str, caller: &str, fields: &mut Fields) -> String {
    if text.is_empty() {
        return caller.to_owned();
    }
    if text.len() > HOLDER {
        fields.wrong("holder", format!("has {} bytes: at most {HOLDER}", text.len()));
    } else if text.trim() != text || text.chars().any(char::is_control) {
        fields.wrong("holder", "has blanks at an end, or control characters: a plain name is wanted");
    }
    text.to_owned()
}

/// A text that is stored and told: bounded, and nothing in it but what can be shown.
pub(crate) fn printable(field: &str, text: &str, most: usize, fields: &mut Fields) {
    if text.len() > most {
        fields.wrong(field, format!("has {} bytes: at most {most}", text.len()));
    } else if text.chars().any(char::is_control) {
        fields.wrong(field, "has control characters: a plain name is wanted");
    }
}

pub(super) fn deadline(given: Option<&prost_types::Duration>, fields: &mut Fields) -> Option<Duration> {
    let given = given?;
    let (least, most) = DEADLINE;
    match span(given) {
        Some(deadline) if deadline >= least && deadline <= most => Some(deadline),
        Some(deadline) => {
            fields.wrong("deadline", format!("{deadline:?} is out of range: 10 s to 24 h"));
            None
        }
        None => {
            fields.wrong("deadline", "is no span: 10 s to 24 h is wanted");
            None
        }
    }
}

pub(super) fn not_after(given: Option<&prost_types::Timestamp>, fields: &mut Fields) -> Option<WallTime> {
    let at = wall(given?);
    if at.is_none() {
        fields.wrong("not_after", "is no moment after 1970-01-01T00:00:00Z");
    }
    at
}

/// The name of a device within its node.
pub(crate) fn device(text: &str, fields: &mut Fields) -> Option<DeviceId> {
    DeviceId::new(text).map_err(|error| fields.wrong("device", error.to_string())).ok()
}

/// What a person expects a device to say; empty where they expect nothing.
pub(super) fn identity(uuid: &str, serial: &str, fields: &mut Fields) -> Identity {
    let known = Identity::usable_uuid(uuid);
    if !uuid.is_empty() && known.is_none() {
        fields.wrong("uuid", "is no UUID that identifies a machine: 32 hexadecimal digits, not all 0 or f");
    }
    printable("serial", serial, HOLDER, fields);
    Identity { uuid: known, serial: (!serial.is_empty()).then(|| serial.to_owned()) }
}

/// A value of an enum. Open on the wire, it is closed in a request: what is not known cannot be done.
pub(crate) fn choice<E: TryFrom<i32> + Default>(field: &str, value: i32, fields: &mut Fields) -> E {
    E::try_from(value).unwrap_or_else(|_| {
        fields.wrong(field, format!("{value} is not a value that this gateway knows"));
        E::default()
    })
}

/// How many entries a page may have.
pub(crate) fn page_size(given: i32, fields: &mut Fields) -> usize {
    match usize::try_from(given) {
        Ok(0) => 100,
        Ok(size @ 1..=1_000) => size,
        _ => {
            fields.wrong("page_size", format!("{given} is out of range: 1 to 1000, or 0 for 100"));
            100
        }
    }
}
