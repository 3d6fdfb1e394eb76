//! How much may be asked of Compute Engine. A project has quotas for groups of methods, a minute and a region, which are its own and
//! can be raised; what is assumed here is 1,500 a minute for each group, of which no minute sees more.
//!
//! **Invariant.** Fences come first: what may only read leaves a reserve.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use picket_driver::bucket::{Bucket, Limit};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use tokio::time::timeout_at;

/// What a minute sees at most: what is there, and what comes meanwhile.
const A_MINUTE: Limit = Limit { size: 500.0, a_second: 1_000.0 / 60.0 };
/// What may only read leaves so many requests to the fences.
const RESERVE: f64 = 100.0;

/// Methods that count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// `get` and `list`.
    Reads,
    /// Of operations.
    Operations,
    /// What changes something, each method by itself: how many operations of it are under way has a limit of its own, which keeps
    /// no other back.
    Command(&'static str),
}

/// The buckets of all regions.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<(String, Group), Arc<Bucket>>>);

impl Rates {
    pub(super) fn bucket(&self, region: &str, group: Group) -> Arc<Bucket> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.entry((region.to_owned(), group)).or_insert_with(|| Arc::new(Bucket::new(A_MINUTE))).clone()
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
}
