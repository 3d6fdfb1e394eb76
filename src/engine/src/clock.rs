//! The two clocks as the system has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use picket_core::time::{BootTime, Clock, WallTime};

/// `CLOCK_BOOTTIME` and the system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn boot(&self) -> BootTime {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let secs = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        BootTime::from_boot(Duration::new(secs, nanos))
    }

    fn wall(&self) -> WallTime {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
    }
}
