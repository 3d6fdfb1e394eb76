//! Until when an attempt may begin.
//!
//! A permit is worth nothing to a process that was stopped between taking it and sending. So the time is looked at once
//! more as the last thing before something leaves, on three clocks: the one of the caller's deadline, which stands still
//! while the machine sleeps; the boot-time clock, which does not; and the wall clock, by which the far side is told.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// The end of one attempt, or of one look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    end: Instant,
    /// The same on the boot-time clock.
    boot_end: Duration,
    /// In milliseconds since 1970-01-01 UTC; none for a look.
    not_after: Option<u64>,
}

fn boot_now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let (secs, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(secs.unwrap_or_default(), nanos.unwrap_or_default())
}

impl Allowed {
    /// An attempt that must have ended at `end`, and that nobody may begin after `not_after` by the wall clock.
    pub(crate) fn until(end: Instant, not_after: Option<u64>) -> Self {
        // This clock first: a stop between the two leaves less time, and not more.
        let now = boot_now();
        Self { end, boot_end: now + end.saturating_duration_since(Instant::now()), not_after }
    }

    /// When it must have ended.
    pub(crate) fn end(&self) -> Instant {
        self.end
    }

    /// Asked as the last thing before something is begun.
    ///
    /// # Errors
    /// Its time is over: nothing may be begun, and nothing was.
    pub(crate) fn may_begin(&self) -> Result<(), String> {
        let over = |what: &str| Err(format!("was not begun: {what} is over"));
        if Instant::now() >= self.end || boot_now() >= self.boot_end {
            return over("the attempt's time");
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        match self.not_after {
            Some(not_after) if wall.as_millis() > u128::from(not_after) => over("the permit's time"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn an_attempt_may_begin_until_its_end_on_each_clock() {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
        let wall = u64::try_from(wall).expect("a while yet");
        for (allowed, may) in [
            (Allowed::until(soon(), None), true),
            (Allowed::until(soon(), Some(wall + 60_000)), true),
            (Allowed::until(Instant::now(), None), false),
            (Allowed::until(soon(), Some(wall - 1)), false),
            // As after a sleep of the machine: the caller's clock stood still.
            (Allowed { boot_end: boot_now(), ..Allowed::until(soon(), None) }, false),
        ] {
            assert_eq!(allowed.may_begin().is_ok(), may, "{allowed:?}");
        }
    }
}
