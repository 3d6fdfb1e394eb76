//! Token buckets: how much may be asked of a cloud, each with a size and with tokens that come a second.
//! What others of the same account take is not seen here, and is told by refusals.
//!
//! # Invariants
//!
//! - Fences come first: what may only read leaves a reserve. Shown by
//!   `what_may_only_read_leaves_a_reserve`.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// How much a bucket holds, and how much comes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// So many tokens at once.
    pub size: f64,
    /// So many come a second.
    pub a_second: f64,
}

/// After the far side refused because of its limits nothing is sent for so long, doubling until it takes something.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Until when nothing is sent, because the far side refused by its limits.
#[derive(Debug)]
pub struct Pause {
    until: Option<Instant>,
    next: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self { until: None, next: FIRST_PAUSE }
    }
}

impl Pause {
    /// When it is over; `None`: there is none now.
    pub fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }

    /// The far side refused. Its own limits are full again after so long, where that is known: nothing waits longer.
    pub fn refused(&mut self, now: Instant, full: Option<Duration>) {
        self.until = Some(now + full.map_or(self.next, |full| full.min(self.next)));
        self.next = (self.next * 2).min(LONGEST_PAUSE);
    }

    /// The far side took something.
    pub fn accepted(&mut self) {
        self.next = FIRST_PAUSE;
    }
}

/// One bucket.
#[derive(Debug)]
pub struct Bucket {
    limit: Limit,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tokens: f64,
    at: Option<Instant>,
    pause: Pause,
}

impl Bucket {
    /// A full one.
    pub fn new(limit: Limit) -> Self {
        let state = State { tokens: limit.size, at: None, pause: Pause::default() };
        Self { limit, state: Mutex::new(state) }
    }

    /// Takes so many tokens where they are there with `reserve` besides; else says when they will be.
    fn try_take(&self, now: Instant, tokens: f64, reserve: f64) -> Result<(), Instant> {
        let mut state = self.state.lock();
        let passed = state.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        state.tokens = (state.tokens + passed.as_secs_f64() * self.limit.a_second).min(self.limit.size);
        state.at = Some(now);
        if let Some(until) = state.pause.until(now) {
            return Err(until);
        }
        let missing = tokens.min(self.limit.size) + reserve - state.tokens;
        if missing > 0.0 {
            // A hair more, so that rounding does not ask once more in vain.
            return Err(now
                + Duration::from_secs_f64(missing / self.limit.a_second)
                + Duration::from_millis(1));
        }
        state.tokens -= tokens;
        Ok(())
    }

    /// Takes one where it is there.
    pub fn take_now(&self) -> bool {
        self.try_take(Instant::now(), 1.0, 0.0).is_ok()
    }

    /// Takes so many, once they are there.
    pub async fn take(&self, tokens: usize) {
        while let Err(when) = self.try_take(Instant::now(), tokens as f64, 0.0) {
            sleep_until(when).await;
        }
    }

    /// The same, where they are there by then.
    pub async fn take_until(&self, tokens: usize, until: Instant) -> bool {
        while let Err(when) = self.try_take(Instant::now(), tokens as f64, 0.0) {
            if when > until {
                return false;
            }
            sleep_until(when).await;
        }
        true
    }

    /// Takes one, and leaves `reserve` for others. Meanwhile `hurried` may have come true: then it leaves none.
    pub async fn take_leaving(&self, reserve: f64, hurried: impl Fn() -> bool) {
        const LOOK: Duration = Duration::from_millis(50);
        let left = || if hurried() { 0.0 } else { reserve };
        while let Err(when) = self.try_take(Instant::now(), 1.0, left()) {
            sleep_until(when.min(Instant::now() + LOOK)).await;
        }
    }

    /// Waits until one is there besides `reserve`, as for taking it, and takes none.
    pub async fn room(&self, reserve: f64, hurried: impl Fn() -> bool) {
        const LOOK: Duration = Duration::from_millis(50);
        let left = || if hurried() { 1.0 } else { 1.0 + reserve };
        while let Err(when) = self.try_take(Instant::now(), 0.0, left()) {
            sleep_until(when.min(Instant::now() + LOOK)).await;
        }
    }

    /// Takes one until that moment, as [`Self::take_until`], and leaves `reserve` for others.
    pub async fn take_leaving_until(&self, reserve: f64, until: Instant) -> bool {
        while let Err(when) = self.try_take(Instant::now(), 1.0, reserve) {
            if when > until {
                return false;
            }
            sleep_until(when).await;
        }
        true
    }

    /// Takes one, which is there from that moment on: whoever asks later gets a later one.
    pub fn reserve(&self) -> Instant {
        self.reserve_at(Instant::now())
    }

    fn reserve_at(&self, now: Instant) -> Instant {
        let _ = self.try_take(now, 0.0, 0.0);
        let mut state = self.state.lock();
        state.tokens -= 1.0;
        let missing = Duration::from_secs_f64((-state.tokens).max(0.0) / self.limit.a_second);
        state.pause.until(now).unwrap_or(now) + missing
    }

    /// How long nothing is taken, after a refusal.
    pub fn pause(&self) -> Option<Duration> {
        let state = self.state.lock();
        let now = Instant::now();
        state.pause.until(now).map(|until| until - now)
    }

    /// How many may be taken at once now, at least one.
    pub fn there(&self) -> usize {
        let _ = self.try_take(Instant::now(), 0.0, 0.0);
        let state = self.state.lock();
        (state.tokens.floor().max(1.0)) as usize
    }

    /// The far side refused because of its limits: ours was fuller than its own.
    pub fn refused(&self) {
        self.refused_until(None);
    }

    /// The same; its own is full again after so long, where that is known: nothing waits longer.
    pub fn refused_until(&self, full: Option<Duration>) {
        self.refused_at(Instant::now(), full);
    }

    fn refused_at(&self, now: Instant, full: Option<Duration>) {
        let mut state = self.state.lock();
        // What is promised to others is promised still.
        (state.tokens, state.at) = (state.tokens.min(0.0), Some(now));
        state.pause.refused(now, full);
    }

    /// The far side took one.
    pub fn accepted(&self) {
        self.state.lock().pause.accepted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limit = Limit { size: 4.0, a_second: 2.0 };

    /// How long it is waited for tokens from that moment on.
    fn wait(bucket: &Bucket, now: Instant, tokens: f64, reserve: f64) -> u128 {
        let when = bucket.try_take(now, tokens, reserve).err();
        when.map_or(0, |when| when.duration_since(now).as_millis())
    }

    #[test]
    fn a_bucket_gives_what_it_has_and_then_what_comes() {
        let (bucket, now) = (Bucket::new(SMALL), Instant::now());
        for _ in 0..4 {
            assert_eq!(wait(&bucket, now, 1.0, 0.0), 0);
        }
        assert_eq!(wait(&bucket, now, 3.0, 0.0), 1_501);
        assert_eq!(wait(&bucket, now + Duration::from_millis(1_501), 3.0, 0.0), 0);
        let later = now + Duration::from_secs(60);
        assert_eq!(
            (wait(&bucket, later, 4.0, 0.0), wait(&bucket, later, 1.0, 0.0)),
            (0, 501),
            "no more than its size"
        );
        assert_eq!(
            wait(&Bucket::new(SMALL), now, 1_000.0, 0.0),
            0,
            "what is more than its size takes all of it"
        );
    }

    /// Who asks first is served first, and who takes what is there now comes after those who were promised theirs.
    #[test]
    fn what_is_promised_is_there_in_the_order_of_asking() {
        let (bucket, now) = (Bucket::new(SMALL), Instant::now());
        let promised: Vec<_> =
            (0..7).map(|_| bucket.reserve_at(now).duration_since(now).as_millis()).collect();
        assert_eq!(promised, [0, 0, 0, 0, 500, 1_000, 1_500]);
        assert_eq!(wait(&bucket, now, 1.0, 0.0), 2_001);
        let later = now + Duration::from_secs(2);
        assert_eq!(bucket.reserve_at(later), later);
        bucket.refused_at(later, None);
        let after = bucket.reserve_at(later).duration_since(later).as_millis();
        assert_eq!(after, 1_000, "not before the pause is over");
    }

    #[test]
    fn what_may_only_read_leaves_a_reserve() {
        let (bucket, now) = (Bucket::new(SMALL), Instant::now());
        assert_eq!((wait(&bucket, now, 1.0, 2.0), wait(&bucket, now, 1.0, 2.0)), (0, 0));
        assert_eq!(wait(&bucket, now, 1.0, 2.0), 501);
        assert_eq!(wait(&bucket, now, 1.0, 0.0), 0, "a fence takes of it");
    }

    #[test]
    fn after_a_refusal_it_waits_longer_each_time_until_something_is_taken() {
        let (bucket, mut now) = (Bucket::new(SMALL), Instant::now());
        let mut waits = Vec::new();
        for step in 0..4 {
            if step == 3 {
                bucket.accepted();
            }
            bucket.refused_at(now, None);
            waits.push(wait(&bucket, now, 1.0, 0.0));
            now += Duration::from_secs(30);
        }
        assert_eq!(waits, [500, 1_000, 2_000, 500]);
        bucket.refused_at(now, Some(Duration::from_millis(300)));
        assert_eq!(wait(&bucket, now, 1.0, 0.0), 300, "its own is full again then");
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_waited_for_and_not_taken() {
        let (bucket, began) = (Bucket::new(SMALL), Instant::now());
        bucket.take(4).await;
        bucket.room(1.0, || false).await;
        assert_eq!(began.elapsed().as_millis() / 10, 100, "two come in a second");
        assert_eq!(wait(&bucket, Instant::now(), 2.0, 0.0), 0);
    }
}
