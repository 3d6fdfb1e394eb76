//! Clocks that follow the runtime's time, so that a test with paused time owns all of it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::time::{BootTime, Clock, WallTime};
use tokio::time::Instant;

/// The boot-time clock is the runtime's time since the clock was made; the wall clock goes with it from
/// 2026-01-01T00:00:00Z, and jumps when it is told to. Both stand still while the whole machine does.
#[derive(Debug)]
pub struct SimClock {
    start: Instant,
    jumped_by: AtomicI64,
    still: Mutex<Still>,
}

/// How long the whole machine stood still, as a virtual machine does that its host stops.
#[derive(Debug, Default)]
struct Still {
    since: Option<Instant>,
    before: Duration,
    /// Of that so much the wall clock is still behind.
    behind: Duration,
}

impl SimClock {
    const START: u64 = 1_767_225_600_000;

    /// A clock that starts now, at boot.
    pub fn new() -> Self {
        Self { start: Instant::now(), jumped_by: AtomicI64::new(0), still: Mutex::default() }
    }

    /// The machine is stopped: neither clock goes on.
    pub fn stand_still(&self) {
        self.still.lock().since.get_or_insert_with(Instant::now);
    }

    /// It goes on, and its clocks from where they stood.
    pub fn go_on(&self) {
        let mut still = self.still.lock();
        let lost = still.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        still.before += lost;
        still.behind += lost;
    }

    /// How far the wall clock is behind because its machine stood still.
    pub fn behind(&self) -> Duration {
        self.still.lock().behind
    }

    /// Somebody sets the wall clock right by what it is behind: it jumps.
    pub fn set_right(&self) {
        let behind = std::mem::take(&mut self.still.lock().behind);
        self.jump_wall(i64::try_from(behind.as_millis()).unwrap_or(i64::MAX));
    }

    /// Sets the wall clock forward (or back) by so many milliseconds; the boot-time clock does not notice.
    pub fn jump_wall(&self, millis: i64) {
        self.jumped_by.fetch_add(millis, Ordering::SeqCst);
    }

    fn elapsed(&self) -> Duration {
        let still = self.still.lock();
        let now = still.since.unwrap_or_else(Instant::now);
        now.saturating_duration_since(self.start).saturating_sub(still.before)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn both_clocks_stand_still_with_their_machine() {
        let clock = SimClock::new();
        let (boot, wall) = (clock.boot(), clock.wall());
        clock.stand_still();
        tokio::time::sleep(Duration::from_secs(20)).await;
        clock.stand_still();
        assert_eq!((clock.boot(), clock.wall()), (boot, wall));
        clock.go_on();
        clock.go_on();
        assert_eq!(clock.behind(), Duration::from_secs(20));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(clock.boot().since(boot), Duration::from_secs(3));
        assert_eq!(clock.wall(), wall.after(Duration::from_secs(3)));
        clock.set_right();
        assert_eq!(clock.behind(), Duration::ZERO);
        assert_eq!(clock.wall(), wall.after(Duration::from_secs(23)));
    }
}
