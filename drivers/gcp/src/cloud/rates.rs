//! How much may be asked of Compute Engine. A project has quotas for groups of methods, a minute and a
//! region, which are its own and can be raised. 1,500 a minute are assumed here for each group, whoever of
//! the project asks.
//!
//! # Invariants
//!
//! - Fences come first: what may only read leaves a reserve. Shown by
//!   `what_may_only_read_leaves_a_reserve`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_cloud::bucket::{Bucket, Limit};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use time::OffsetDateTime;
use tokio::time::timeout_at;

use super::minute_quota::MinuteQuota;

/// What a minute sees at most: what is there, and what comes meanwhile.
const A_MINUTE: Limit = Limit { size: 500.0, a_second: 1_000.0 / 60.0 };
/// What may only read leaves so many requests to the fences.
const RESERVE: f64 = 100.0;
/// Once a minute begins questions wait so long, and up to so much longer: stops go first, and not all that wait there go at once.
const AFTER: Duration = Duration::from_millis(500);
const JITTER: u64 = 1_000;

/// Questions that count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// `get` and `list`.
    Reads,
    /// Of operations.
    Operations,
}

/// The limits of all regions of one project.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    questions: Mutex<HashMap<(String, Group), Arc<Bucket>>>,
    /// What changes something, each method by itself: how many operations of it are under way has a limit of its own, which keeps
    /// no other back.
    commands: Mutex<HashMap<(String, &'static str), Arc<MinuteQuota>>>,
}

impl Rates {
    pub(super) fn bucket(&self, region: &str, group: Group) -> Arc<Bucket> {
        let mut buckets = self.questions.lock();
        buckets.entry((region.to_owned(), group)).or_insert_with(|| Arc::new(Bucket::new(A_MINUTE))).clone()
    }

    pub(super) fn minute(&self, region: &str, method: &'static str) -> Arc<MinuteQuota> {
        let mut minutes = self.commands.lock();
        minutes.entry((region.to_owned(), method)).or_default().clone()
    }

    /// Takes one, once it is there.
    pub(super) async fn wait(&self, bucket: &Bucket, method: &str, call: &Call) -> Result<(), DriverError> {
        let hurried = !call.may_only_read();
        let late = |_| {
            let detail = format!("{method}: as many as Compute Engine takes were sent just now");
            DriverError::new(ErrorKind::Throttled, Effect::DidNotHappen, detail)
        };
        timeout_at(call.deadline(), bucket.take_leaving(RESERVE, || hurried)).await.map_err(late)
    }

    /// Waits until there is one, and takes none.
    pub(super) async fn room(&self, region: &str, group: Group, hurried: impl Fn() -> bool) {
        self.bucket(region, group).room(RESERVE, hurried).await;
    }
}

/// Compute Engine refused a question because of its limits, by its clock at that time.
pub(super) fn refused(bucket: &Bucket, date: Option<OffsetDateTime>) {
    let jitter = Duration::from_millis(RandomState::new().hash_one(0) % JITTER);
    bucket.refused_until(date.map(|date| next_minute(date) + AFTER + jitter));
}

/// How long it is until Google's quotas are whole again: at the beginning of its clock's next minute.
pub(super) fn next_minute(date: OffsetDateTime) -> Duration {
    Duration::from_secs(60 - u64::from(date.second()).min(59))
}
