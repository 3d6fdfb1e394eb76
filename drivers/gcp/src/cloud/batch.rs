//! What is asked of many instances of a zone at once: whatever comes within a few milliseconds goes in one
//! request.
//!
//! # Invariants
//!
//! - The more instances are asked of, the less often a round begins. Requests that come meanwhile go along
//!   with the next round. Shown by `a_hundred_instances_are_read_by_one_question_and_a_thousand_by_ten`.
//! - A round begins when there is room for it among what may be asked, and is for those who wait then.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use picket_cloud::gather;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::rates::Group;
use super::words::Failure;
use super::{Cloud, Stamps, region_of};

/// For each that a round was of, the next one begins so much later.
const EACH: Duration = Duration::from_millis(5);
/// But no later than this: a reading is of three rounds.
const LONGEST_REST: Duration = Duration::from_millis(400);
/// A round that is not answered keeps the next one back for so long.
const UNANSWERED: Duration = Duration::from_secs(1);

/// What came of one instance, and when.
pub(super) type Outcome<S> = Result<Result<(S, Stamps), Failure>, DriverError>;

/// What is asked.
#[async_trait]
pub(super) trait Question: Send + Sync + 'static {
    /// What comes of it, for each instance.
    type Answer: Clone + Send + 'static;

    /// With what it counts together.
    const GROUP: Group;
    /// The most that one request is for.
    const MOST: usize;

    /// Asks of all of these.
    async fn ask(
        cloud: &Cloud,
        zone: &str,
        ids: &BTreeSet<String>,
        call: &Call,
    ) -> HashMap<String, Outcome<Self::Answer>>;
}

struct Item<S> {
    id: String,
    call: Call,
    tell: oneshot::Sender<Outcome<S>>,
}

struct Waiting<S> {
    items: VecDeque<Item<S>>,
    gathers: bool,
    /// The last round, while it may not be answered, and when the next one may begin.
    last: Option<JoinHandle<()>>,
    next_at: Option<Instant>,
}

/// One question's queue in one zone.
pub(super) struct Batch<Q: Question> {
    zone: String,
    waiting: Mutex<Waiting<Q::Answer>>,
}

impl<Q: Question> Batch<Q> {
    pub(super) fn new(zone: &str) -> Self {
        let waiting = Waiting { items: VecDeque::new(), gathers: false, last: None, next_at: None };
        Self { zone: zone.to_owned(), waiting: Mutex::new(waiting) }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Waiting<Q::Answer>> {
        self.waiting.lock()
    }

    /// Asks of one, with whoever else asks now.
    pub(super) async fn ask(
        self: &Arc<Self>,
        cloud: &Arc<Cloud>,
        id: &str,
        call: &Call,
    ) -> Outcome<Q::Answer> {
        let (tell, told) = oneshot::channel();
        let begins = {
            let mut waiting = self.lock();
            waiting.items.push_back(Item { id: id.to_owned(), call: call.clone(), tell });
            !std::mem::replace(&mut waiting.gathers, true)
        };
        if begins {
            tokio::spawn(self.clone().gather(cloud.clone()));
        }
        match timeout_at(call.deadline(), told).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, "no answer in time")),
        }
    }

    /// One for all who wait: takes them together.
    async fn gather(self: Arc<Self>, cloud: Arc<Cloud>) {
        gather(usize::MAX, || self.lock().items.len()).await;
        self.turn(&cloud).await;
        let items: Vec<Item<Q::Answer>> = {
            let mut waiting = self.lock();
            waiting.gathers = false;
            waiting.items.drain(..).filter(|item| !item.tell.is_closed()).collect()
        };
        let (mut parts, mut all) = (Vec::new(), 0);
        let mut part: Vec<Item<Q::Answer>> = Vec::new();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        for item in items {
            if ids.len() == Q::MOST && !ids.contains(&item.id) {
                all += ids.len();
                parts.push((std::mem::take(&mut part), std::mem::take(&mut ids)));
            }
            ids.insert(item.id.clone());
            part.push(item);
        }
        all += ids.len();
        parts.push((part, ids));
        let parts: Vec<_> =
            parts.into_iter().map(|(part, ids)| self.clone().resolve(cloud.clone(), part, ids)).collect();
        let rest = LONGEST_REST.min(EACH * u32::try_from(all).unwrap_or(u32::MAX));
        let mut waiting = self.lock();
        waiting.next_at = Some(Instant::now() + rest);
        waiting.last = Some(tokio::spawn(async move {
            join_all(parts.into_iter().map(tokio::spawn)).await;
        }));
    }

    /// Waits until another round may begin.
    async fn turn(&self, cloud: &Cloud) {
        let (last, next_at) = {
            let mut waiting = self.lock();
            (waiting.last.take(), waiting.next_at)
        };
        if let Some(last) = last {
            let _ = timeout(UNANSWERED, last).await;
        }
        if let Some(next_at) = next_at {
            sleep_until(next_at).await;
        }
        let hurried = || self.lock().items.iter().any(|item| !item.call.may_only_read());
        cloud.rates.room(region_of(&self.zone), Q::GROUP, hurried).await;
    }

    async fn resolve(self: Arc<Self>, cloud: Arc<Cloud>, items: Vec<Item<Q::Answer>>, ids: BTreeSet<String>) {
        // As one of a fence where there is one, and for as long as the last of those waits.
        let call = items.iter().max_by_key(|item| (!item.call.may_only_read(), item.call.deadline()));
        let Some(call) = call.map(|item| item.call.clone()) else { return };
        let told = Q::ask(&cloud, &self.zone, &ids, &call).await;
        for item in items {
            let outcome = told.get(&item.id).cloned();
            let none = || Ok(Err(Failure::senseless("list", 200, "it does not say what was asked for")));
            let _ = item.tell.send(outcome.unwrap_or_else(none));
        }
    }
}
