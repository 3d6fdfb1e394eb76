//! Answers of the gateway as scripts and people get them.
//!
//! The serde types here are a contract of their own: their keys are stable, words are snake_case, moments RFC 3339 in
//! UTC, spans seconds (`_s`); what is not known is null, and no key is ever left out.

pub mod ending;
pub mod evidence;
pub mod exits;
pub mod fence;
pub mod fence_text;
pub mod node;
pub mod node_text;
pub mod outcome;
pub mod plan;
pub mod readiness;
pub mod report;
pub mod restored;
pub mod result;
pub mod simulated;
pub mod timeline;
pub mod truth;
pub mod update;
pub mod words;

use prost_types::{Duration, Timestamp};

use crate::duration;

/// An optional moment.
pub fn stamp(at: &Option<Timestamp>) -> Option<String> {
    at.as_ref().map(duration::stamp)
}

/// An optional span in seconds.
pub fn seconds(span: &Option<Duration>) -> Option<f64> {
    span.as_ref().map(duration::seconds)
}

/// An empty text is nothing.
pub fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
