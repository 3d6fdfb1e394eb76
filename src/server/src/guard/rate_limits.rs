//! How much each caller takes, so that none takes what others need.
//!
//! # Invariants
//!
//! - A caller's requests, slots and connections count against that caller alone (S14). Shown by
//!   `each_caller_has_a_bucket_of_their_own`, `places_are_each_callers_own_and_come_back`.
//! - What only looks takes no slot of what acts. Shown by `who_looks_takes_no_place_of_who_fences`.
//! - A caller who has nothing open and has rested is forgotten. Shown by `callers_who_rest_make_room`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use picket_core::roles::Role;
use picket_proto::v1::ErrorReason;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::calls::RequestTarget;
use crate::admission::Limits;
use crate::fault::Fault;

/// All callers of late.
#[derive(Debug)]
pub(crate) struct RateLimits {
    limits: RwLock<Limits>,
    all: Mutex<HashMap<String, CallerUsage>>,
}

/// What a caller takes a slot of. What only looks takes no slot of what acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    /// An answer to somebody who looks.
    Call,
    /// A stream of somebody who looks.
    Stream,
    /// An answer to somebody who acts, by the role of a controller or more.
    Act,
    /// A stream of somebody who acts.
    ActStream,
    /// Whatever another service than ours answers.
    Aside,
    /// A connection.
    Connection,
}

impl SlotKind {
    const ALL: [SlotKind; 6] = [
        SlotKind::Call,
        SlotKind::Stream,
        SlotKind::Act,
        SlotKind::ActStream,
        SlotKind::Aside,
        SlotKind::Connection,
    ];

    /// What a path asks for.
    pub(crate) fn by(target: RequestTarget) -> Self {
        match target {
            RequestTarget::Ours(call) => match (call.needs == Role::Viewer, call.stays) {
                (true, false) => SlotKind::Call,
                (true, true) => SlotKind::Stream,
                (false, false) => SlotKind::Act,
                (false, true) => SlotKind::ActStream,
            },
            RequestTarget::Aside(_) | RequestTarget::Unknown => SlotKind::Aside,
        }
    }

    /// In words, as callers are told.
    pub(crate) fn words(self) -> &'static str {
        match self {
            SlotKind::Call => "calls",
            SlotKind::Stream => "streams",
            SlotKind::Act => "calls that act",
            SlotKind::ActStream => "streams that act",
            SlotKind::Aside => "requests for health or reflection",
            SlotKind::Connection => "connections",
        }
    }
}

/// A slot of each kind.
#[derive(Debug)]
pub(crate) struct Slots([Arc<Semaphore>; SlotKind::ALL.len()]);

impl Slots {
    /// As many as `count` says of each.
    pub(crate) fn new(count: impl Fn(SlotKind) -> usize) -> Self {
        Self(SlotKind::ALL.map(|kind| Arc::new(Semaphore::new(count(kind).min(Semaphore::MAX_PERMITS)))))
    }

    /// One, if it is free.
    pub(crate) fn take(&self, kind: SlotKind) -> Option<OwnedSemaphorePermit> {
        self.0[kind as usize].clone().try_acquire_owned().ok()
    }

    /// How many are free.
    pub(crate) fn left(&self, kind: SlotKind) -> usize {
        self.0[kind as usize].available_permits()
    }

    fn are_free(&self, count: impl Fn(SlotKind) -> usize) -> bool {
        SlotKind::ALL.into_iter().all(|kind| self.left(kind) >= count(kind).min(Semaphore::MAX_PERMITS))
    }
}

/// One caller: a bucket of tokens, of which each request takes one, and slots.
#[derive(Debug)]
struct CallerUsage {
    tokens: f64,
    filled_at: Instant,
    slots: Slots,
}

impl CallerUsage {
    fn new(limits: &Limits, now: Instant) -> Self {
        Self { tokens: f64::from(limits.burst), filled_at: now, slots: Slots::new(|kind| limits.each(kind)) }
    }

    fn fill(&mut self, limits: &Limits, now: Instant) {
        let since = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + since * f64::from(limits.rate)).min(f64::from(limits.burst));
        self.filled_at = now;
    }

    fn has_rested(&mut self, limits: &Limits, now: Instant) -> bool {
        self.fill(limits, now);
        self.tokens >= f64::from(limits.burst) && self.slots.are_free(|kind| limits.each(kind))
    }
}

impl RateLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: RwLock::new(limits.clone()), all: Mutex::default() }
    }

    /// As much from now on. Slots that a caller has already do not count against it.
    pub(crate) fn change(&self, limits: &Limits) {
        let mut now = self.limits.write();
        if *now == *limits {
            return;
        }
        *now = limits.clone();
        for usage in self.all.lock().values_mut() {
            usage.tokens = usage.tokens.min(f64::from(limits.burst));
            usage.slots = Slots::new(|kind| limits.each(kind));
        }
    }

    fn with<T>(&self, caller: &str, act: impl FnOnce(&mut CallerUsage, &Limits) -> T) -> Result<T, Fault> {
        let now = Instant::now();
        let limits = self.limits.read();
        let mut all = self.all.lock();
        if !all.contains_key(caller) {
            if all.len() >= limits.callers {
                all.retain(|_, usage| !usage.has_rested(&limits, now));
            }
            if all.len() >= limits.callers {
                return Err(full("different callers", limits.callers, "", Duration::from_secs(1)));
            }
        }
        let usage = all.entry(caller.to_owned()).or_insert_with(|| CallerUsage::new(&limits, now));
        usage.fill(&limits, now);
        Ok(act(usage, &limits))
    }

    /// One request more.
    pub(crate) fn count(&self, caller: &str) -> Result<(), Fault> {
        self.with(caller, |usage, limits| {
            if usage.tokens >= 1.0 {
                usage.tokens -= 1.0;
                return Ok(());
            }
            let wait = (1.0 - usage.tokens) / f64::from(limits.rate.max(1));
            // A crowd that comes back at the same moment would only be refused again.
            let wait = Duration::from_secs_f64(wait).max(Duration::from_millis(100));
            let limit = format!("{} {RATE}", limits.rate);
            Err(limited(RATE, &limit, &format!("this gateway takes {limit} of each caller"), wait))
        })?
    }

    /// A slot for as long as it is kept. A caller has no more of them than are `left` for all: as in the queue, whoever comes next finds
    /// one, however many others hold theirs (S14).
    pub(crate) fn slot(
        &self,
        caller: &str,
        kind: SlotKind,
        left: usize,
    ) -> Result<OwnedSemaphorePermit, Fault> {
        let (words, wait) = (kind.words(), Duration::from_secs(1));
        self.with(caller, |usage, limits| {
            let each = limits.each(kind);
            let theirs = each.saturating_sub(usage.slots.left(kind));
            // Of none that are left all are told alike.
            if theirs >= left && left > 0 {
                let limit = format!("{theirs} {words}");
                let said = format!("you have {limit} at once, and the {left} that are left are for others");
                return Err(limited(words, &limit, &said, wait));
            }
            usage.slots.take(kind).ok_or_else(|| full(words, each, " of each caller", wait))
        })?
    }
}

/// How a rate is told.
const RATE: &str = "requests a second";

/// A limit that is reached.
pub(crate) fn full(what: &str, limit: usize, whose: &str, wait: Duration) -> Fault {
    let limit = format!("{limit} {what}");
    limited(what, &limit, &format!("this gateway takes {limit}{whose} at once, and all are taken"), wait)
}

fn limited(what: &str, limit: &str, said: &str, wait: Duration) -> Fault {
    let message = format!("{said}: ask again in {} ms", wait.as_millis());
    Fault::new(ErrorReason::Limit, message.clone())
        .with("limit", limit)
        .quota(what, &message)
        .retry_after(wait)
}

#[cfg(test)]
mod tests {
    use super::super::calls;
    use super::*;

    fn rate_limits(limits: Limits) -> RateLimits {
        RateLimits::new(&limits)
    }

    #[tokio::test(start_paused = true)]
    async fn each_caller_has_a_bucket_of_their_own() {
        let rate_limits = rate_limits(Limits { rate: 10, burst: 20, ..Limits::default() });
        let through = |caller: &str| (0..1_000).filter(|_| rate_limits.count(caller).is_ok()).count();
        assert_eq!((through("a"), through("b")), (20, 20));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(through("a"), 10);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(through("a"), 20, "rest is not saved beyond the burst");
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_each_callers_own_and_come_back() {
        let rate_limits = rate_limits(Limits { calls_each: 1, ..Limits::default() });
        let first = rate_limits.slot("a", SlotKind::Call, usize::MAX).expect("free");
        assert!(rate_limits.slot("a", SlotKind::Call, usize::MAX).is_err());
        let _other = rate_limits.slot("b", SlotKind::Call, usize::MAX).expect("another's");
        for other in SlotKind::ALL.into_iter().filter(|kind| *kind != SlotKind::Call) {
            drop(rate_limits.slot("a", other, usize::MAX).expect("another kind"));
        }
        drop(first);
        assert!(rate_limits.slot("a", SlotKind::Call, usize::MAX).is_ok(), "free again");
    }

    #[test]
    fn what_acts_is_told_from_what_looks() {
        let by = |call: &str| SlotKind::by(calls::of(&format!("/{}/{call}", picket_proto::SERVICE_NAME)));
        assert_eq!((by("GetNode"), by("WatchNodes")), (SlotKind::Call, SlotKind::Stream));
        assert_eq!(
            (by("Hold"), by("Fence"), by("Attest")),
            (SlotKind::Act, SlotKind::ActStream, SlotKind::ActStream)
        );
        assert_eq!(SlotKind::by(calls::of("/grpc.health.v1.Health/Watch")), SlotKind::Aside);
    }

    #[tokio::test(start_paused = true)]
    async fn other_limits_hold_at_once_and_what_is_open_stays() {
        let rate_limits = rate_limits(Limits { streams_each: 1, burst: 100, ..Limits::default() });
        let open = rate_limits.slot("a", SlotKind::Stream, usize::MAX).expect("free");
        assert!(rate_limits.slot("a", SlotKind::Stream, usize::MAX).is_err());
        rate_limits.change(&Limits { streams_each: 2, rate: 1, burst: 1, ..Limits::default() });
        let more = [(); 2]
            .map(|()| rate_limits.slot("a", SlotKind::Stream, usize::MAX).expect("places of the new limits"));
        assert!(rate_limits.slot("a", SlotKind::Stream, usize::MAX).is_err());
        rate_limits.count("a").expect("the first");
        assert!(rate_limits.count("a").is_err(), "no more than the new burst");
        drop((open, more));
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_rest_make_room() {
        let rate_limits = rate_limits(Limits { callers: 2, rate: 1, burst: 1, ..Limits::default() });
        let open = rate_limits.slot("a", SlotKind::Connection, usize::MAX).expect("room");
        rate_limits.count("b").expect("room");
        assert!(rate_limits.count("c").is_err(), "both are here");
        tokio::time::advance(Duration::from_secs(2)).await;
        rate_limits.count("c").expect("b has rested");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(rate_limits.count("a").is_ok(), "a was never forgotten");
        drop(open);
    }
}
