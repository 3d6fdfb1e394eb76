//! Token buckets: how much may be asked of EC2 (Request throttling for the Amazon EC2 API). An account has them a region, each with
//! a size and with tokens that come a second; what others of the account take is not seen here, and told by refusals.
//!
//! **Invariant.** Fences come first: what may only read leaves a reserve.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How much a bucket holds, and how much comes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) size: f64,
    pub(crate) a_second: f64,
}

/// Questions (Describe*, each for itself).
pub(crate) const QUESTIONS: Limit = Limit { size: 100.0, a_second: 20.0 };
/// What changes something, each action for itself.
pub(crate) const COMMANDS: Limit = Limit { size: 50.0, a_second: 5.0 };
/// The instances of StopInstances.
pub(crate) const STOPPED: Limit = Limit { size: 1_000.0, a_second: 20.0 };
/// The requests of StartInstances.
pub(crate) const STARTS: Limit = Limit { size: 5.0, a_second: 2.0 };

/// After the far side refused because of its limits nothing is sent for so long, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// One bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    limit: Limit,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tokens: f64,
    at: Option<Instant>,
    /// Nothing is taken before this.
    paused_until: Option<Instant>,
    pause: Duration,
}

impl Bucket {
    pub(crate) fn new(limit: Limit) -> Self {
        let state = State { tokens: limit.size, at: None, paused_until: None, pause: FIRST_PAUSE };
        Self { limit, state: Mutex::new(state) }
    }

    /// Takes so many tokens where they are there with `reserve` besides; else says when they will be.
    fn try_take(&self, tokens: f64, reserve: f64) -> Result<(), Instant> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let passed = state.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        state.tokens = (state.tokens + passed.as_secs_f64() * self.limit.a_second).min(self.limit.size);
        state.at = Some(now);
        if let Some(until) = state.paused_until.filter(|until| *until > now) {
            return Err(until);
        }
        let missing = tokens.min(self.limit.size) + reserve - state.tokens;
        if missing > 0.0 {
            // A hair more, so that rounding does not ask once more in vain.
            return Err(now + Duration::from_secs_f64(missing / self.limit.a_second) + Duration::from_millis(1));
        }
        state.tokens -= tokens;
        Ok(())
    }

    /// Takes one where it is there.
    pub(crate) fn take_now(&self) -> bool {
        self.try_take(1.0, 0.0).is_ok()
    }

    /// Takes so many, once they are there.
    pub(crate) async fn take(&self, tokens: usize) {
        while let Err(when) = self.try_take(tokens as f64, 0.0) {
            sleep_until(when).await;
        }
    }

    /// Takes one, and leaves `reserve` for others. Meanwhile `hurried` may have come true: then it leaves none.
    pub(crate) async fn take_leaving(&self, reserve: f64, hurried: impl Fn() -> bool) {
        const LOOK: Duration = Duration::from_millis(50);
        while let Err(when) = self.try_take(1.0, if hurried() { 0.0 } else { reserve }) {
            sleep_until(when.min(Instant::now() + LOOK)).await;
        }
    }

    /// How many may be taken at once now, at least one.
    pub(crate) fn there(&self) -> usize {
        let _ = self.try_take(0.0, 0.0);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.tokens.floor().max(1.0)) as usize
    }

    /// The far side refused because of its limits: ours was fuller than its own.
    pub(crate) fn refused(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        (state.tokens, state.at) = (0.0, Some(now));
        state.paused_until = Some(now + state.pause);
        state.pause = (state.pause * 2).min(LONGEST_PAUSE);
    }

    /// The far side took one.
    pub(crate) fn accepted(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).pause = FIRST_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limit = Limit { size: 4.0, a_second: 2.0 };

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_what_it_has_and_then_what_comes() {
        let (bucket, began) = (Bucket::new(SMALL), Instant::now());
        for _ in 0..4 {
            bucket.take(1).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(!bucket.take_now());
        bucket.take(3).await;
        let waited = began.elapsed();
        assert!((1_500..1_520).contains(&waited.as_millis()), "{waited:?}");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(bucket.there(), 4, "it holds no more than its size");
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_only_read_leaves_a_reserve_unless_it_is_hurried() {
        let (bucket, began) = (Bucket::new(SMALL), Instant::now());
        bucket.take_leaving(2.0, || false).await;
        bucket.take_leaving(2.0, || false).await;
        assert_eq!((bucket.there(), began.elapsed()), (2, Duration::ZERO));
        bucket.take_leaving(2.0, || true).await;
        assert_eq!((bucket.there(), began.elapsed()), (1, Duration::ZERO));
        bucket.take_leaving(2.0, || false).await;
        assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_refusal_it_waits_longer_each_time_until_something_is_taken() {
        let bucket = Bucket::new(COMMANDS);
        let mut waits = Vec::new();
        for step in 0..4 {
            if step == 3 {
                bucket.accepted();
            }
            bucket.refused();
            let began = Instant::now();
            bucket.take(1).await;
            waits.push(began.elapsed().as_millis());
        }
        assert_eq!(waits, [500, 1_000, 2_000, 500]);
    }
}
