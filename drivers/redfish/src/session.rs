//! Sessions: a token that the service gave, and what it may have carried.

use std::time::Duration;

use picket_driver::Secret;
use tokio::time::Instant;

/// One session at the service.
#[derive(Clone, Debug)]
pub struct Session {
    /// Where it is deleted.
    pub path: String,
    /// What shows that a request belongs to it.
    pub token: Secret,
    /// When something was last sent in it, or an answer came: a service counts from when it is done with a request.
    pub last_used: Instant,
    /// It carried a request that changes something.
    pub carried: bool,
}

impl Session {
    /// When the service has surely ended it, if nothing more is sent in it.
    pub fn dead_at(&self, longest_idle: Duration) -> Instant {
        self.last_used + longest_idle
    }
}
