//! What the clouds share.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;

/// What makes tests quick, and proves as much: the least that is allowed.
pub const QUICK: &str = "[rules]\ncloud_poll = \"1s\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"\n";
/// A level is given up soon.
pub const IMPATIENT: &str = "level_share = \"12s\"\ncloud_level_share = \"12s\"\nfence_deadline = \"30s\"\ncloud_fence_deadline = \"30s\"\n";

/// Asks until it is so: all tests of a cloud ask one peer, which has two cores.
pub async fn soon(what: &str, seen: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    until(what, Duration::from_secs(60), seen).await
}
