//! What is asked, or told, of many instances at once: whatever comes within a few milliseconds goes in one request.
//!
//! **Invariant.** What AWS refuses of many because of one is asked again without that one: it says which, or is asked by halves.
//! **Invariant.** A command whose end is not known is not repeated here; one that was surely refused is, while its caller waits.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_sdk_ec2::config;
use picket_driver::{Call, DriverError, Effect, ErrorKind, Unclear};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::bucket::{Bucket, Limit};
use super::wire::{Fate, Stamps, Ticket};
use super::words::{self, Failure};
use super::{Cloud, Told, unheard};

/// The most that one request names.
const MOST: usize = 1_000;
/// Who comes within this goes along.
const GATHER: Duration = Duration::from_millis(5);
/// While more come, it is waited for them, but no longer than this.
const LONGEST_GATHER: Duration = Duration::from_millis(25);
/// What may only read leaves so many requests to the fences.
const RESERVE: f64 = 20.0;

/// What is asked, or told.
#[async_trait]
pub(crate) trait Action: Send + Sync + 'static {
    /// What comes of it, for each id.
    type Said: Clone + Send + 'static;

    /// AWS's name for it.
    const NAME: &'static str;

    /// Sends one request for all of them.
    async fn send(
        client: &aws_sdk_ec2::Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> Told<HashMap<String, Self::Said>>;
}

/// What came back of one id, and when.
pub(crate) type Outcome<S> = Result<(S, Stamps), Failure>;

struct Item<S> {
    id: String,
    until: Instant,
    /// A check's, which may only read.
    may_wait: bool,
    /// Of a command: as of when it is signed, and what lets it go.
    order: Option<(SystemTime, Arc<Ticket>)>,
    tell: oneshot::Sender<Result<Outcome<S>, DriverError>>,
}

impl<S> Item<S> {
    fn is_wanted(&self) -> bool {
        !self.tell.is_closed()
    }

    fn tell(self, outcome: Outcome<S>) {
        let _ = self.tell.send(Ok(outcome));
    }
}

struct Waiting<S> {
    items: VecDeque<Item<S>>,
    gathers: bool,
}

/// One action's queue.
pub(crate) struct Batch<A: Action> {
    waiting: Mutex<Waiting<A::Said>>,
    requests: Bucket,
    /// What it costs for each id.
    each: Option<Bucket>,
}

/// Its caller may go away at any time: what was not sent by then is not sent.
struct Leaving(Option<Arc<Ticket>>);

impl Leaving {
    fn leave(&mut self) -> bool {
        self.0.take().is_some_and(|ticket| ticket.leave())
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<A: Action> Batch<A> {
    pub(super) fn new(requests: Limit, each: Option<Limit>) -> Self {
        let waiting = Mutex::new(Waiting { items: VecDeque::new(), gathers: false });
        Self { waiting, requests: Bucket::new(requests), each: each.map(Bucket::new) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting<A::Said>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks of one id, with whoever else asks now.
    pub(super) async fn ask(
        self: &Arc<Self>,
        cloud: &Arc<Cloud>,
        id: &str,
        call: &Call,
    ) -> Result<Outcome<A::Said>, DriverError> {
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
    ) -> Result<Outcome<A::Said>, DriverError> {
        self.join(cloud, id, Some((signed, Ticket::new(call, None, unclear))), call).await
    }

    async fn join(
        self: &Arc<Self>,
        cloud: &Arc<Cloud>,
        id: &str,
        order: Option<(SystemTime, Arc<Ticket>)>,
        call: &Call,
    ) -> Result<Outcome<A::Said>, DriverError> {
        let (tell, told) = oneshot::channel();
        let mut leaving = Leaving(order.as_ref().map(|(_, ticket)| ticket.clone()));
        let (until, may_wait) = (call.deadline(), call.may_only_read());
        let begins = {
            let mut waiting = self.lock();
            waiting.items.push_back(Item { id: id.to_owned(), until, may_wait, order, tell });
            !std::mem::replace(&mut waiting.gathers, true)
        };
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
        let mut seen = 0;
        let began = Instant::now();
        while began.elapsed() < LONGEST_GATHER {
            sleep(GATHER).await;
            let now = self.lock().items.len();
            if now == std::mem::replace(&mut seen, now) || now >= MOST {
                break;
            }
        }
        while self.has_any() {
            self.requests.take_leaving(RESERVE, || self.is_hurried()).await;
            let room = self.each.as_ref().map_or(MOST, |each| each.there().min(MOST));
            let items: Vec<_> = {
                let mut waiting = self.lock();
                let room = room.min(waiting.items.len());
                waiting.items.drain(..room).filter(Item::is_wanted).collect()
            };
            if let Some(each) = &self.each {
                each.take(items.len()).await;
            }
            tokio::spawn(self.clone().resolve(cloud.clone(), items));
        }
    }

    fn has_any(&self) -> bool {
        let mut waiting = self.lock();
        waiting.items.retain(Item::is_wanted);
        waiting.gathers = !waiting.items.is_empty();
        waiting.gathers
    }

    fn is_hurried(&self) -> bool {
        self.lock().items.iter().any(|item| !item.may_wait)
    }

    /// Sends until each of them has its answer. The first request's tokens are taken.
    async fn resolve(self: Arc<Self>, cloud: Arc<Cloud>, items: Vec<Item<A::Said>>) {
        let mut paid = true;
        let mut parts = vec![items];
        while let Some(part) = parts.pop() {
            let part: Vec<_> = part.into_iter().filter(Item::is_wanted).collect();
            if part.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut paid, false) {
                self.requests.take(1).await;
                if let Some(each) = &self.each {
                    each.take(part.len()).await;
                }
            }
            parts.extend(self.once(&cloud, part).await);
        }
    }

    /// One request. Those who have no answer yet are given back, in parts.
    async fn once(&self, cloud: &Arc<Cloud>, items: Vec<Item<A::Said>>) -> Vec<Vec<Item<A::Said>>> {
        let Some(until) = items.iter().map(|item| item.until).max() else { return Vec::new() };
        let client = match cloud.client(until).await {
            Ok(client) => client,
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
        let sent = timeout_at(until, unheard(A::send(&client, ids, sending.config(signed)))).await;
        match (sent, sending.fate()) {
            (Ok(Ok(said)), Fate::Answered(stamps)) => {
                self.requests.accepted();
                for item in items {
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
            (_, Fate::Barred(barred)) => {
                let mut barred: HashMap<usize, DriverError> = barred.into_iter().collect();
                let mut free = Vec::new();
                for (at, item) in items.into_iter().enumerate() {
                    match barred.remove(&at) {
                        Some(error) => drop(item.tell.send(Err(error))),
                        None => free.push(item),
                    }
                }
                vec![free]
            }
            (sent, fate) => {
                let failure = words::failure(A::NAME, fate, sent.ok().and_then(Result::err));
                if !failure.unclear {
                    tickets.iter().for_each(|ticket| ticket.unclaim());
                }
                self.failed(cloud, items, failure)
            }
        }
    }

    /// What is to be sent again of what was not done.
    fn failed(&self, cloud: &Cloud, items: Vec<Item<A::Said>>, failure: Failure) -> Vec<Vec<Item<A::Said>>> {
        cloud.note(&failure);
        if failure.kind == ErrorKind::Throttled && !failure.unclear {
            self.requests.refused();
            return vec![items];
        }
        if items.len() == 1 || !failure.is_of_one() {
            items.into_iter().for_each(|item| item.tell(Err(failure.clone())));
            return Vec::new();
        }
        let (named, mut others): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| failure.names(&item.id));
        if named.is_empty() {
            let second = others.split_off(others.len() / 2);
            return vec![second, others];
        }
        named.into_iter().for_each(|item| item.tell(Err(failure.clone())));
        vec![others]
    }
}
