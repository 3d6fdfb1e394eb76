//! One entry: what is told, how it stands in a line, and how it is read back.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::time::rfc3339;

/// The form that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u64 = 1;
/// The hash before the first entry of all.
pub(crate) const BEFORE_ALL: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// `,"hash":"`, 64 digits, `"}`.
const SEAL: usize = 9 + 64 + 2;
/// A text in an entry is cut after so many bytes: an entry is a line, not a store.
const LONGEST: usize = 2_048;

/// Who tells what nobody asked for.
pub const GATEWAY: &str = "gateway";
/// Who, where it is not known.
pub const NOBODY: &str = "unknown";

/// What is told to the audit. No secret, and no bytes of the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at: u64,
    /// The caller, or [`GATEWAY`].
    pub who: String,
    /// In which role; empty where there are none.
    pub role: String,
    /// What kind of entry: a stable word (`request`, `phase`, `step`, `exchange`, `denied`, ...).
    pub what: String,
    /// Of which node.
    pub node: Option<String>,
    /// Within which fence.
    pub fence: Option<String>,
    /// In which generation of the node.
    pub generation: Option<u64>,
    /// The rest, by kind: evidence, reasons, words. Texts of more than 2 KiB are cut.
    pub details: Value,
}

/// The newest entry of a chain: its number, from 1, and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number; 0: there is none yet.
    pub seq: u64,
    /// SHA-256 in hexadecimal digits.
    pub hash: String,
}

impl Head {
    /// Before the first entry.
    pub(crate) fn none() -> Self {
        Self { seq: 0, hash: BEFORE_ALL.to_owned() }
    }
}

/// An entry as it stands in a file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Entry {
    /// The form.
    pub v: u64,
    /// Its number, from 1.
    pub seq: u64,
    /// When, RFC 3339.
    pub at: String,
    /// The caller, or the gateway.
    pub who: String,
    /// In which role.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// What kind.
    pub what: String,
    /// Of which node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Within which fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<String>,
    /// In which generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The rest, by kind.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// The hash of the entry before.
    pub prev: String,
    /// Its own. Not written with the rest: it seals the line.
    #[serde(skip_serializing)]
    pub hash: String,
}

/// Why a line is no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoEntry {
    #[error("it is no entry: {0}")]
    Unreadable(String),
    #[error("its hash does not fit its text: it was changed")]
    Changed,
    #[error("it has form {0}, and this version reads forms up to {FORMAT}")]
    Newer(u64),
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What is told, as the line after `head`, with its newline; and the head that it makes.
pub(crate) fn encode(told: &Told, head: &Head) -> Result<(Vec<u8>, Head), serde_json::Error> {
    let mut details = told.details.clone();
    shorten(&mut details);
    let entry = Entry {
        v: FORMAT,
        seq: head.seq + 1,
        at: rfc3339(told.at),
        who: cut(&told.who),
        role: cut(&told.role),
        what: cut(&told.what),
        node: told.node.as_deref().map(cut),
        fence: told.fence.as_deref().map(cut),
        generation: told.generation,
        details,
        prev: head.hash.clone(),
        hash: String::new(),
    };
    let mut line = serde_json::to_vec(&entry)?;
    line.pop();
    let hash = sha256(&line);
    line.extend_from_slice(format!(",\"hash\":\"{hash}\"}}\n").as_bytes());
    Ok((line, Head { seq: entry.seq, hash }))
}

/// A line, without its newline, as an entry whose own hash fits.
pub(crate) fn decode(line: &[u8]) -> Result<Entry, NoEntry> {
    let entry: Entry =
        serde_json::from_slice(line).map_err(|error| NoEntry::Unreadable(error.to_string()))?;
    if entry.v > FORMAT {
        return Err(NoEntry::Newer(entry.v));
    }
    let seal = format!(",\"hash\":\"{}\"}}", entry.hash);
    let sealed = line.len().checked_sub(SEAL).map(|at| line.split_at(at));
    match sealed {
        Some((text, end)) if end == seal.as_bytes() && sha256(text) == entry.hash => Ok(entry),
        _ => Err(NoEntry::Changed),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST => *text = cut(text),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
