//! Prometheus' own word on the alerts: its promtool.

use std::path::PathBuf;

use crate::debian;
use crate::failure::Failure;

/// Debian's. `tests/src/peers/promtool.rs` looks for it there.
pub fn promtool() -> Result<PathBuf, Failure> {
    match std::env::var_os("PICKET_TEST_PROMTOOL") {
        Some(given) => Ok(given.into()),
        None => debian::program("prometheus", "promtool", "name a promtool in PICKET_TEST_PROMTOOL"),
    }
}
