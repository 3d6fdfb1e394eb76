//! Clocks that follow the runtime's time, so that a test with paused time owns all of it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use picket_core::time::{BootTime, Clock, WallTime};
use tokio::time::Instant;

/// The boot-time clock is the runtime's time since the clock was made; the wall clock goes with it from
/// 2026-01-01T00:00:00Z, and jumps when it is told to.
#[derive(Debug)]
pub struct SimClock {
    start: Instant,
    jumped_by: AtomicI64,
}

impl SimClock {
    const START: u64 = 1_767_225_600_000;

    /// A clock that starts now, at boot.
    pub fn new() -> Self {
        Self { start: Instant::now(), jumped_by: AtomicI64::new(0) }
    }

    /// Sets the wall clock forward (or back) by so many milliseconds; the boot-time clock does not notice.
    pub fn jump_wall(&self, millis: i64) {
        self.jumped_by.fetch_add(millis, Ordering::SeqCst);
    }

    fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(self.start)
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn boot(&self) -> BootTime {
        BootTime::from_boot(self.elapsed())
    }

    fn wall(&self) -> WallTime {
        let wall = WallTime::from_millis(Self::START).after(self.elapsed());
        WallTime::from_millis(wall.millis().saturating_add_signed(self.jumped_by.load(Ordering::SeqCst)))
    }
}
