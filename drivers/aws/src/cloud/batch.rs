//! What is asked, or told, of many instances at once: whatever comes within a few milliseconds goes in one
//! request.
//!
//! # Invariants
//!
//! - What AWS refuses of many because of one is asked again without that one: AWS names it, or the request
//!   is split into halves. The others pay one request for it. Shown by
//!   `one_that_is_not_there_keeps_none_of_the_others_from_its_end`.
//! - A command is told to no instance whose caller has left. Shown by
//!   `what_nobody_waits_for_any_more_is_not_sent`.
//! - A command whose end is not known is not repeated here. One that was surely refused is, while its
//!   caller waits (S10). Shown by `of_whom_the_answer_is_lost_nothing_is_known_and_nothing_is_repeated`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_sdk_ec2::config;
use parking_lot::Mutex;
use picket_cloud::{Unclear, gather};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::bucket::{Bucket, Limit};
use super::queue::{Item, Queue};
use super::wire::{SendOutcome, Stamps, Ticket};
use super::words::{self, Failure};
use super::{AuthenticatedClient, Cloud, SdkResult, unheard};

/// The most that one request names.
pub(super) const MOST: usize = 1_000;
/// What may only read leaves so many requests to the fences.
const RESERVE: f64 = 20.0;

/// What is asked, or told.
#[async_trait]
pub(crate) trait Action: Send + Sync + 'static {
    /// What comes of it, for each id.
    type Answer: Clone + Send + 'static;

    /// AWS's name for it.
    const NAME: &'static str;

    /// The most that one request names.
    const MOST: usize = MOST;

    /// Where many wait, requests follow each other no faster.
    const GRID: Duration = Duration::ZERO;

    /// Sends one request for all of them.
    async fn send(
        client: &aws_sdk_ec2::Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> SdkResult<HashMap<String, Self::Answer>>;
}

/// What came back of one id, and when.
pub(crate) type Outcome<S> = Result<(S, Stamps), Failure>;

/// One action's queue.
pub(crate) struct Batch<A: Action> {
    waiting: Mutex<Queue<A::Answer>>,
    requests: Arc<Bucket>,
    /// What it costs for each id.
    each: Option<Bucket>,
}

/// Those who go in one request.
struct Part<S> {
    items: Vec<Item<S>>,
    /// A request's token is taken for it.
    is_paid: bool,
    /// How often what they are of was refused because of one of them.
    refusals: usize,
    /// It was refused by limits before.
    was_throttled: bool,
    /// Its signature's time was not AWS's, which is known since.
    is_retimed: bool,
}

/// Its caller may go away at any time: what was not sent by then is not sent.
pub(super) struct AbandonGuard(Option<Arc<Ticket>>);

impl AbandonGuard {
    pub(super) fn of(ticket: Option<Arc<Ticket>>) -> Self {
        Self(ticket)
    }

    /// True if it may have been sent.
    pub(super) fn leave(&mut self) -> bool {
        self.0.take().is_some_and(|ticket| ticket.leave())
    }
}

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<A: Action> Batch<A> {
    pub(super) fn new(requests: Arc<Bucket>, each: Option<Limit>) -> Self {
        let waiting = Mutex::new(Queue::new());
        Self { waiting, requests, each: each.map(Bucket::new) }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Queue<A::Answer>> {
        self.waiting.lock()
    }

    /// Asks of one id, with whoever else asks now.
    pub(super) async fn ask(
        self: &Arc<Self>,
        cloud: &Arc<Cloud>,
        id: &str,
        call: &Call,
    ) -> Result<Outcome<A::Answer>, DriverError> {
        self.join(cloud, id, None, call).await
    }

    /// Tells one, signed as of that time, with whoever else is told now.
    pub(super) async fn order(
        self: &Arc<Self>,
        cloud: &Arc<Cloud>,
        id: &str,
        signed: SystemTime,
        unclear: &Unclear,
        call: &Call,
    ) -> Result<Outcome<A::Answer>, DriverError> {
        let ticket = Ticket::new(call, cloud.life, None, unclear);
        self.join(cloud, id, Some((signed, ticket)), call).await
    }

    async fn join(
        self: &Arc<Self>,
        cloud: &Arc<Cloud>,
        id: &str,
        order: Option<(SystemTime, Arc<Ticket>)>,
        call: &Call,
    ) -> Result<Outcome<A::Answer>, DriverError> {
        let (tell, told) = oneshot::channel();
        let mut leaving = AbandonGuard::of(order.as_ref().map(|(_, ticket)| ticket.clone()));
        let (until, may_wait) = (call.deadline(), call.may_only_read());
        let begins = self.lock().push(Item { id: id.to_owned(), until, may_wait, order, tell });
        if begins {
            tokio::spawn(self.clone().gather(cloud.clone()));
        }
        match timeout_at(until, told).await {
            Ok(Ok(outcome)) => outcome,
            _ => {
                let effect = if leaving.leave() { Effect::Unknown } else { Effect::DidNotHappen };
                Err(DriverError::new(ErrorKind::TimedOut, effect, format!("{}: no answer in time", A::NAME)))
            }
        }
    }

    /// One for all who wait: takes them together, as often as the buckets let it.
    async fn gather(self: Arc<Self>, cloud: Arc<Cloud>) {
        gather(A::MOST, || self.lock().len()).await;
        while self.lock().has_any() {
            self.requests.take_leaving(RESERVE, || self.lock().is_hurried()).await;
            let held = self.lock().held_until(A::GRID);
            if let Some(until) = held {
                sleep_until(until).await;
            }
            let room = self.each.as_ref().map_or(A::MOST, Bucket::there).min(A::MOST);
            let items = self.lock().take(room, Instant::now());
            if let Some(each) = &self.each {
                each.take(items.len()).await;
            }
            tokio::spawn(self.clone().resolve(cloud.clone(), items));
        }
    }

    /// Sends until each of them has its answer, or nobody waits for one. What is sent again because of somebody else costs a request,
    /// and no instances: these are paid for.
    async fn resolve(self: Arc<Self>, cloud: Arc<Cloud>, items: Vec<Item<A::Answer>>) {
        let mut parts =
            vec![Part { items, is_paid: true, refusals: 0, was_throttled: false, is_retimed: false }];
        while let Some(mut part) = parts.pop() {
            part.items.retain(Item::is_wanted);
            let Some(until) = part.items.iter().map(|item| item.until).max() else { continue };
            if !part.is_paid {
                // Those who are dropped here are told by their own clocks.
                let reserve = if part.items.iter().all(|item| item.may_wait) { RESERVE } else { 0.0 };
                if !self.requests.take_leaving_until(reserve, until).await {
                    continue;
                }
                part.items.retain(Item::is_wanted);
                part.is_paid = true;
            }
            parts.extend(self.once(&cloud, part, until).await);
        }
    }

    /// One request. Those who have no answer yet are given back, in parts.
    async fn once(&self, cloud: &Arc<Cloud>, part: Part<A::Answer>, until: Instant) -> Vec<Part<A::Answer>> {
        let Part { items, refusals, was_throttled, is_retimed, .. } = part;
        if items.is_empty() {
            return Vec::new();
        }
        let AuthenticatedClient { number, client } = match cloud.client(until).await {
            Ok(held) => held,
            Err(error) => {
                items.into_iter().for_each(|item| drop(item.tell.send(Err(error.clone()))));
                return Vec::new();
            }
        };
        // The earliest bounds them all.
        let signed = items.iter().filter_map(|item| item.order.as_ref()).map(|(signed, _)| *signed).min();
        let tickets: Vec<_> =
            items.iter().filter_map(|item| item.order.as_ref()).map(|(_, ticket)| ticket.clone()).collect();
        let sending = cloud.sending(until, tickets.clone());
        // Two may ask of the same one.
        let ids: BTreeSet<String> = items.iter().map(|item| item.id.clone()).collect();
        let ids = ids.into_iter().collect();
        let sent = timeout_at(
            until,
            unheard(A::send(&client, ids, sending.config(signed.or_else(|| cloud.far_now())))),
        )
        .await;
        match (sent, sending.fate()) {
            (Ok(Ok(said)), SendOutcome::Answered(stamps)) => {
                cloud.hear(stamps);
                self.requests.accepted();
                for item in items {
                    self.lock().note(&item.id, false, Instant::now());
                    let of_it = said.get(&item.id).cloned();
                    if let Some((_, ticket)) = item.order.as_ref().filter(|_| of_it.is_some()) {
                        ticket.ended();
                    }
                    item.tell(of_it.map(|said| (said, stamps)).ok_or_else(|| {
                        Failure::protocol(A::NAME, "its answer does not name what was asked for")
                    }));
                }
                Vec::new()
            }
            (_, SendOutcome::Barred(barred)) => {
                let mut barred: HashMap<usize, DriverError> = barred.into_iter().collect();
                let mut free = Vec::new();
                for (at, item) in items.into_iter().enumerate() {
                    match barred.remove(&at) {
                        Some(error) => drop(item.tell.send(Err(error))),
                        None => free.push(item),
                    }
                }
                // Nothing was sent, and nothing is spent.
                vec![Part { items: free, is_paid: true, refusals, was_throttled, is_retimed }]
            }
            (sent, fate) => {
                let asked = cloud.asked();
                let failure = words::failure(A::NAME, &asked, fate, sent.ok().and_then(Result::err));
                cloud.note(&failure, number);
                if !failure.unclear {
                    tickets.iter().for_each(|ticket| ticket.unclaim());
                }
                self.failed(Part { items, is_paid: false, refusals, was_throttled, is_retimed }, failure)
            }
        }
    }

    /// What is to be sent again of what was not done.
    fn failed(&self, part: Part<A::Answer>, failure: Failure) -> Vec<Part<A::Answer>> {
        if failure.kind == ErrorKind::Throttled {
            self.requests.refused();
            if !failure.unclear {
                return self.throttled(part);
            }
        }
        let is_question = part.items.iter().all(|item| item.order.is_none());
        if failure.is_of_time() && is_question && !part.is_retimed {
            return vec![Part { is_retimed: true, ..part }];
        }
        let Part { items, refusals, is_retimed, .. } = part;
        let is_of_one = failure.is_of_one();
        if items.len() == 1 || !is_of_one {
            for item in items {
                self.lock().note(&item.id, is_of_one, Instant::now());
                item.tell(Err(failure.clone()));
            }
            return Vec::new();
        }
        let (named, others): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| failure.names(&item.id));
        let is_first = refusals == 0 && !named.is_empty();
        for item in named {
            self.lock().note(&item.id, true, Instant::now());
            item.tell(Err(failure.clone()));
        }
        let of =
            |items| Part { items, is_paid: false, refusals: refusals + 1, was_throttled: false, is_retimed };
        // Some say which all of them are, some only one at a time: from the second time on the others do not wait for the last.
        if is_first { vec![of(others)] } else { halved(others).map(of).into() }
    }

    /// It is sent again after a pause. Where that does not help either there may be too many instances in one request.
    fn throttled(&self, part: Part<A::Answer>) -> Vec<Part<A::Answer>> {
        let Part { items, refusals, was_throttled, is_retimed, .. } = part;
        let of = |items| Part { items, is_paid: false, refusals, was_throttled: true, is_retimed };
        if was_throttled && self.each.is_some() { halved(items).map(of).into() } else { vec![of(items)] }
    }
}

/// Both halves; the first goes first.
fn halved<S>(mut items: Vec<Item<S>>) -> [Vec<Item<S>>; 2] {
    let second = items.split_off(items.len().div_ceil(2));
    [second, items]
}
