//! So many commands of one method a minute. Google's quota is of each minute by its own clock, and is whole
//! again when the next one begins: what was not used in the last minute may go at once.
//!
//! # Invariants
//!
//! - No minute sees more than the quota, whenever it begins. Shown by
//!   `a_minute_s_quota_may_go_at_once_and_no_minute_sees_more`.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use picket_cloud::bucket::Pause;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep_until};

use super::rates::next_minute;

/// What is assumed of each method (Compute Engine API rate quotas: 1,500 a minute of most groups).
const MOST: u32 = 1_500;
/// A minute, and by how much longer one request may be on its way than another.
const WINDOW: Duration = Duration::from_secs(61);
/// What is sent within this counts as sent at once.
const GRAIN: Duration = Duration::from_millis(100);

/// What was sent in the last minute.
#[derive(Debug, Default)]
pub(super) struct MinuteQuota(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    sent: VecDeque<(Instant, u32)>,
    count: u32,
    /// Never beyond the next minute's beginning.
    pause: Pause,
}

impl MinuteQuota {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Takes one where there is one; else says when there may be.
    fn try_take(&self, now: Instant) -> Result<(), Instant> {
        let mut state = self.state();
        while let Some((at, count)) = state.sent.front().copied().filter(|(at, _)| now >= *at + WINDOW) {
            debug_assert!(now >= at, "time goes on");
            state.sent.pop_front();
            state.count -= count;
        }
        if let Some(until) = state.pause.until(now) {
            return Err(until);
        }
        if let Some((at, _)) = state.sent.front().filter(|_| state.count >= MOST) {
            return Err(*at + WINDOW);
        }
        state.count += 1;
        match state.sent.back_mut() {
            Some((at, count)) if now < *at + GRAIN => (*at, *count) = (now, *count + 1),
            _ => state.sent.push_back((now, 1)),
        }
        Ok(())
    }

    /// Takes one, once it is there.
    pub(super) async fn wait(&self, method: &str, call: &Call) -> Result<(), DriverError> {
        while let Err(when) = self.try_take(Instant::now()) {
            if when >= call.deadline() {
                sleep_until(call.deadline()).await;
                return Err(late(method));
            }
            sleep_until(when).await;
        }
        Ok(())
    }

    /// Takes one where it is there.
    pub(super) fn take_now(&self, method: &str) -> Result<(), DriverError> {
        self.try_take(Instant::now()).map_err(|_when| late(method))
    }

    /// Google took one.
    pub(super) fn accepted(&self) {
        self.state().pause.accepted();
    }

    /// Google refused one because of its limits, by its clock at that time: others use them, too. It is tried again, and at the next
    /// minute's beginning at the latest.
    pub(super) fn refused(&self, date: Option<OffsetDateTime>) {
        self.refused_at(Instant::now(), date);
    }

    fn refused_at(&self, now: Instant, date: Option<OffsetDateTime>) {
        self.state().pause.refused(now, date.map(next_minute));
    }
}

fn late(method: &str) -> DriverError {
    let detail = format!("{method}: as many as Compute Engine takes were sent just now");
    DriverError::new(ErrorKind::Throttled, Effect::DidNotHappen, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(minute: &MinuteQuota, now: Instant, most: u32) -> u32 {
        (0..most).take_while(|_| minute.try_take(now).is_ok()).count().try_into().expect("not so many")
    }

    #[test]
    fn a_minute_s_quota_may_go_at_once_and_no_minute_sees_more() {
        let (minute, now) = (MinuteQuota::default(), Instant::now());
        assert_eq!(taken(&minute, now, 1_000), 1_000);
        let later = now + Duration::from_secs(30);
        assert_eq!(taken(&minute, later, 1_000), 500);
        assert_eq!(minute.try_take(later), Err(now + WINDOW));
        assert_eq!(
            taken(&minute, now + Duration::from_secs(60), 1),
            0,
            "one of the first may have taken long"
        );
        assert_eq!(taken(&minute, now + WINDOW, 2_000), 1_000);
        assert_eq!(minute.try_take(now + WINDOW), Err(later + WINDOW));
    }

    #[test]
    fn a_refusal_is_waited_for_longer_each_time_but_not_beyond_the_next_minute() {
        let (minute, mut now) = (MinuteQuota::default(), Instant::now());
        let at = |second: i64| OffsetDateTime::from_unix_timestamp(1_800_000_000 + second).ok();
        let mut waits = Vec::new();
        for date in [at(10), at(20), at(58), None, at(30), at(30), at(59)] {
            minute.refused_at(now, date);
            let until = minute.try_take(now).expect_err("paused");
            waits.push((until - now).as_millis());
            now = until;
            if date == at(59) {
                minute.accepted();
            }
        }
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 8_000, 1_000]);
        minute.refused_at(now, None);
        let first = Err(now + Duration::from_millis(500));
        assert_eq!(minute.try_take(now), first, "something was taken since");
    }
}
