//! Leadership as a permit (S6): sending runs under it, and it ends before the lease does.
//!
//! # Invariants
//!
//! - A jump between the boot-time clock and the wall clock ends leadership for good. Shown by
//!   `a_jump_of_the_wall_clock_ends_leadership_for_good`.
//! - Everything that is written compares the term and the store's life. Shown by
//!   `what_it_writes_compares_its_term_and_the_store_s_life`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::ids::{Incarnation, Term};
use crate::store::Guard;
use crate::time::{BootTime, Clock, WallTime};

mod known;

pub use known::{Digests, Known, Member};

/// Why nobody leads here.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ElectionError {
    /// Somebody else leads.
    #[error("another gateway leads: {0}")]
    Other(String),
    /// The election's store cannot be asked.
    #[error("the election cannot be held: {0}")]
    Unavailable(String),
}

/// Leadership has ended: nothing may be sent any more.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("leadership of term {term} has ended: {why}")]
pub struct Ended {
    /// The term that ended.
    pub term: Term,
    /// Why, in words.
    pub why: &'static str,
}

/// The validity of one leadership, shared by the elector that renews it and the permit that checks it.
#[derive(Debug, Default)]
pub struct Lease {
    /// Nanoseconds on the boot-time clock; `u64::MAX`: no end (a single gateway).
    until: AtomicU64,
    ended: AtomicBool,
}

impl Lease {
    /// A lease that ends only by [`Lease::end`] or a clock jump.
    pub fn endless() -> Arc<Self> {
        Arc::new(Self { until: AtomicU64::new(u64::MAX), ended: AtomicBool::new(false) })
    }

    /// A lease that ends at `until` unless it is renewed.
    pub fn until(until: BootTime) -> Arc<Self> {
        let lease = Self::default();
        lease.renew(until);
        Arc::new(lease)
    }

    /// Valid until then: the *send* time of the last successful keep-alive plus its life minus the margin.
    pub fn renew(&self, until: BootTime) {
        let nanos = u64::try_from(until.since_boot().as_nanos()).unwrap_or(u64::MAX - 1);
        self.until.store(nanos, Ordering::SeqCst);
    }

    /// Over, for good.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// How long it is still valid unless it is renewed; `None`: it has no end of its own.
    fn left(&self, now: BootTime) -> Option<Duration> {
        let until = self.until.load(Ordering::SeqCst);
        if self.is_over(now) {
            return Some(Duration::ZERO);
        }
        (until != u64::MAX).then(|| Duration::from_nanos(until).saturating_sub(now.since_boot()))
    }

    fn is_over(&self, now: BootTime) -> bool {
        let until = self.until.load(Ordering::SeqCst);
        self.ended.load(Ordering::SeqCst)
            || (until != u64::MAX && now.since_boot().as_nanos() >= u128::from(until))
    }
}

/// What an elector won.
#[derive(Clone, Debug)]
pub struct Won {
    /// The new term: greater than every one before.
    pub term: Term,
    /// The store's life in which it was won.
    pub incarnation: Incarnation,
    /// Its validity; the elector renews it.
    pub lease: Arc<Lease>,
}

/// Holds an election. Electors only implement this; [`lead`] makes the permit.
#[async_trait]
pub trait Election: Send + Sync + std::fmt::Debug {
    /// Waits until this gateway leads, and answers with the term it won. Whoever stops waiting resigns afterwards: it may
    /// have been won meanwhile.
    async fn campaign(&self) -> Result<Won, ElectionError>;

    /// Gives leadership up at once, so that another one need not wait for the lease.
    async fn resign(&self) -> Result<(), ElectionError>;

    /// The same, and this gateway takes part no more: it stops. The others see at once that it succeeds nobody.
    async fn leave(&self) -> Result<(), ElectionError> {
        self.resign().await
    }

    /// This gateway, as the others know it.
    fn me(&self) -> Member {
        Member::default()
    }

    /// Who leads, as last seen. Asks nobody, and answers at once.
    fn known(&self) -> Known {
        Known::Away(WallTime::from_millis(0), "this election does not tell who leads".to_owned())
    }

    /// The others that take part, as last seen, by name. Asks nobody, and answers at once.
    fn others(&self) -> Vec<Member> {
        Vec::new()
    }

    /// The digest of this gateway's settings of nodes, devices, rules and roles: a gateway whose own differs from the leader's does
    /// not stand. Set before the first campaign, and whenever the settings change; whoever leads stores it at once.
    async fn set_fleet(&self, _digest: &str) -> Result<(), ElectionError> {
        Ok(())
    }

    /// By which settings each gateway works, as last seen. Asks nobody, and answers at once.
    fn digests(&self) -> Digests {
        Digests::default()
    }

    /// Says to the others why this gateway does not stand, or (`None`) that it does.
    fn set_aside(&self, _why: Option<String>) {}
}

/// The permit to send. Checked before every control packet, also after a login.
#[derive(Debug)]
pub struct Leadership {
    incarnation: Incarnation,
    tenure: Tenure,
}

/// How long a leadership lasts: what is asked before each packet, also by a task that outlives the call that began it.
#[derive(Clone, Debug)]
pub(crate) struct Tenure {
    term: Term,
    lease: Arc<Lease>,
    clock: Arc<dyn Clock>,
    /// Wall minus boot-time clock at the start, in milliseconds.
    offset: i128,
    jump: Duration,
}

/// Campaigns and, once won, makes the permit. The only maker of [`Leadership`].
///
/// `jump`: a change of the wall clock against the boot-time clock by more than this ends leadership.
pub async fn lead(
    election: &dyn Election,
    clock: Arc<dyn Clock>,
    jump: Duration,
) -> Result<Arc<Leadership>, ElectionError> {
    let won = election.campaign().await?;
    let offset = offset(&*clock);
    let tenure = Tenure { term: won.term, lease: won.lease, clock, offset, jump };
    Ok(Arc::new(Leadership { incarnation: won.incarnation, tenure }))
}

fn offset(clock: &dyn Clock) -> i128 {
    i128::from(clock.wall().millis())
        - i128::try_from(clock.boot().since_boot().as_millis()).unwrap_or(i128::MAX)
}

impl Tenure {
    /// Now, on the clock by which it lasts.
    pub(crate) fn now(&self) -> BootTime {
        self.clock.boot()
    }

    /// See [`Leadership::check`].
    pub(crate) fn check(&self) -> Result<(), Ended> {
        let ended = |why| Err(Ended { term: self.term, why });
        if self.lease.is_over(self.clock.boot()) {
            return ended("its lease is over");
        }
        let moved = (offset(&*self.clock) - self.offset).unsigned_abs();
        if moved > self.jump.as_millis() {
            self.lease.end();
            return ended("the wall clock jumped against the boot-time clock");
        }
        Ok(())
    }
}

impl Leadership {
    /// Whether something may be sent now. A jump between the clocks ends leadership for good.
    pub fn check(&self) -> Result<(), Ended> {
        self.tenure.check()
    }

    /// What of it is asked before each packet.
    pub(crate) fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// How long something may still be sent unless the lease is renewed; `None`: no lease bounds it. For people: nothing is
    /// sent on its word, but on that of [`Leadership::check`].
    pub fn left(&self) -> Option<Duration> {
        self.tenure.lease.left(self.tenure.now())
    }

    /// Its term.
    pub fn term(&self) -> Term {
        self.tenure.term
    }

    /// What every store write of it compares.
    pub fn guard(&self) -> Guard {
        Guard { term: self.tenure.term, incarnation: self.incarnation }
    }

    /// Now, on the clock by which it holds.
    pub(crate) fn now(&self) -> BootTime {
        self.tenure.now()
    }

    /// Ends it here and now.
    pub fn end(&self) {
        self.tenure.lease.end();
    }
}

#[cfg(test)]
mod tests;
