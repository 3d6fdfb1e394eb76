//! When a node was proven off, as `picket -o json` says of a fence.

use std::time::SystemTime;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// `None`: it was not.
pub fn proven_at(result: &Value) -> Option<SystemTime> {
    let said = result["evidence"]["confirmed_at"].as_str()?;
    OffsetDateTime::parse(said, &Rfc3339).ok().map(SystemTime::from)
}

/// The same in seconds since 1970, as some peers count.
pub fn proven_at_seconds(result: &Value) -> Option<f64> {
    let since = proven_at(result)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs_f64())
}
