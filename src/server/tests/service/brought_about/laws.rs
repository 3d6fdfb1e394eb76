//! What is judged whenever something was stored, and whenever somebody hears something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ids::{FenceId, NodeId};
use picket_core::record::{NodeRecord, Phase};
use picket_core::roles::Role;
use picket_core::store::Store;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::SimClock;
use picket_engine::{ChangeError, Hooks};

use super::SEED;
use super::acts::Asked;
use super::bounds::Bounds;
use super::brake::Complaint;
use super::pauses::{Pauses, Scope};
use super::queue::Entry;
use super::rights::{InForce, Rights, id};
use super::seen::Seen;
use super::stage::{NODES, Settings};

/// What a request may bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fence {
        sets_aside: bool,
        /// At most for so long; `None`: it does not wait.
        waits: Option<Duration>,
    },
    Hold,
    /// A hold is dropped, by an unfence or by itself.
    Ends,
    StandsDown,
    Pause {
        scope: Scope,
        /// Seconds.
        lasts: u64,
    },
    Resume {
        scope: Scope,
    },
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) caller: &'static str,
    pub(super) node: &'static str,
    pub(super) holder: String,
    pub(super) kind: Kind,
    pub(super) at: BootTime,
    /// Once more, word for word.
    pub(super) asked_last: BootTime,
}

#[derive(Debug)]
pub(super) struct Book {
    pub(super) requests: Vec<Request>,
    pub(super) rights: InForce<Rights>,
    pub(super) bounds: InForce<Bounds>,
    /// On which machines each one ran so far.
    ran_on: BTreeSet<(String, String)>,
    pub(super) pauses: Pauses,
    pub(super) complaints: Vec<Complaint>,
    /// Of whom a person said that they are dead.
    pub(super) believed: BTreeSet<NodeId>,
    /// Since when nodes are not at work.
    pub(super) away: BTreeMap<NodeId, BootTime>,
    pub(super) queue: BTreeMap<String, Entry>,
    pub(super) queue_seen_at: BootTime,
    pub(super) records: BTreeMap<NodeId, NodeRecord>,
    /// When callers' fences were opened.
    pub(super) opened: Vec<(BootTime, FenceId, NodeId)>,
    pub(super) back: BTreeMap<NodeId, BootTime>,
    pub(super) off_sent: BTreeSet<(FenceId, NodeId)>,
    /// Those of them of which each off is known not to have happened.
    pub(super) taken_back: BTreeSet<(FenceId, NodeId)>,
    pub(super) broken: Vec<String>,
    pub(super) seen: Seen,
    pub(super) is_told: bool,
}

#[derive(Debug)]
pub struct Laws {
    clock: Arc<SimClock>,
    store: Arc<dyn Store>,
    book: Mutex<Book>,
}

#[async_trait]
impl Hooks for Laws {
    async fn reached(&self, point: &str) {
        if point.starts_with("saved ") {
            self.look().await;
            let all = self.store.load_all().await.expect("a store");
            let mut book = self.book.lock();
            for stored in all {
                book.stored(stored.record, self.clock.boot());
            }
        }
    }
}

impl Laws {
    pub fn new(clock: Arc<SimClock>, store: Arc<dyn Store>, settings: &Settings) -> Self {
        let book = Book {
            requests: Vec::new(),
            rights: InForce::new(&settings.rights),
            bounds: InForce::new(&settings.bounds),
            ran_on: BTreeSet::new(),
            pauses: Pauses::new(),
            complaints: Vec::new(),
            believed: BTreeSet::new(),
            away: BTreeMap::new(),
            queue: BTreeMap::new(),
            queue_seen_at: BootTime::default(),
            records: BTreeMap::new(),
            opened: Vec::new(),
            back: BTreeMap::new(),
            off_sent: BTreeSet::new(),
            taken_back: BTreeSet::new(),
            broken: Vec::new(),
            seen: Seen::default(),
            is_told: std::env::var_os(SEED).is_some(),
        };
        Self { clock, store, book: Mutex::new(book) }
    }

    /// Sees what waits.
    pub async fn look(&self) {
        let notes = self.store.notes("queue/").await.expect("a store");
        self.book.lock().waits(notes, self.clock.boot());
    }

    /// The number of a request, by which its reason is known again.
    pub fn asks(&self, asked: &Asked) -> u64 {
        let at = self.clock.boot();
        let Asked { caller, node, ref holder, kind } = *asked;
        let mut book = self.book.lock();
        let request = Request { caller, node, holder: holder.clone(), kind, at, asked_last: at };
        let number = book.requests.len() as u64;
        book.say(|| format!("{at:?}, r{number}: {request:?}"));
        book.asks_about_a_pause(kind);
        book.resumes(&request, at);
        if kind == Kind::Ends {
            book.asks_for_an_end(&request);
        }
        book.requests.push(request);
        number
    }

    /// The same once more, for the same reason.
    pub fn asks_again(&self, asked: &Asked, number: u64) -> u64 {
        let mut book = self.book.lock();
        book.seen.repeated += 1;
        book.requests[number as usize].asked_last = self.clock.boot();
        drop(book);
        self.asks(asked)
    }

    /// That machine runs there from now on.
    pub fn runs_on(&self, machine: &str, parent: &str) {
        self.book.lock().ran_on.insert((machine.to_owned(), parent.to_owned()));
    }

    /// Another gateway takes over.
    pub fn is_led_anew(&self) {
        let now = self.clock.boot();
        let mut book = self.book.lock();
        book.say(|| format!("{now:?}: another gateway leads"));
        book.seen.led_anew += 1;
        book.loses_complaints(now);
    }

    pub fn may_now(&self, caller: &str, role: Role, node: &str) -> bool {
        let book = self.book.lock();
        book.rights.since(self.clock.boot()).any(|rights| rights.may(caller, role, node))
    }

    /// What is known to be paused.
    pub fn paused(&self) -> Vec<Scope> {
        self.book.lock().pauses.keys().copied().collect()
    }

    /// The nodes whose fences have sent nothing.
    pub fn unsent(&self) -> Vec<Scope> {
        let book = self.book.lock();
        let is_unsent = |node: &&str| {
            let record = book.records.get(&id(node)).filter(|record| record.phase == Phase::Fencing);
            record.is_some_and(|record| record.fence.as_ref().is_some_and(|fence| !fence.off_sent))
        };
        NODES.iter().copied().filter(is_unsent).map(Scope::Node).collect()
    }

    pub fn may_pause_now(&self, caller: &str, scope: Scope) -> bool {
        let book = self.book.lock();
        let now = self.clock.boot();
        let mut pairs = book.rights.since(now).zip(book.bounds.since(now));
        pairs.any(|(rights, bounds)| scope.is_for(rights, bounds, caller))
    }

    pub fn told(&self, settings: &Settings) {
        let now = self.clock.boot();
        let mut book = self.book.lock();
        book.say(|| format!("{now:?}: {settings:?}"));
        book.rights.begin(&settings.rights, now);
        book.bounds.begin(&settings.bounds, now);
    }

    pub fn taken(&self) {
        let now = self.clock.boot();
        let mut book = self.book.lock();
        book.rights.taken(now);
        book.bounds.taken(now);
    }

    pub fn refused(&self, why: &ChangeError) {
        let now = self.clock.boot();
        let mut book = self.book.lock();
        book.say(|| format!("{now:?}: {why}"));
        book.rights.refused(now);
        book.bounds.refused(now);
    }

    /// A caller hears that; whether it was granted.
    pub fn hears(&self, number: u64, text: &str, is_granted: bool) {
        let now = self.clock.boot();
        // A hold is dropped by its name, a child's as well.
        let text =
            NODES.iter().fold(text.to_owned(), |text, node| text.replace(&format!("child:{node}"), "child"));
        let mut book = self.book.lock();
        let request = book.requests[number as usize].clone();
        book.seen.denied += u64::from(text.contains("PermissionDenied"));
        book.seen.waited += u64::from(text.contains("waits in the queue"));
        book.seen.braked += u64::from(text.contains("look dead or are kept off"));
        book.seen.pause_bars += u64::from(text.contains("is paused by"));
        book.seen.crowded += u64::from(text.contains("that are left are for others"));
        if text.contains("limit: Some") {
            book.seen.barred += 1;
            book.is_barred(&request, now);
        }
        if is_granted {
            book.hears_of_a_pause(&request, now);
            book.resumes(&request, now);
        }
        let shown = |node: &str| {
            let mut rights = book.rights.since(request.at);
            rights.any(|rights| rights.may(request.caller, Role::Viewer, node))
        };
        let hidden = NODES.iter().filter(|node| **node != request.node && !shown(node));
        let named: Vec<&&str> = hidden.filter(|node| text.contains(**node)).collect();
        if !named.is_empty() {
            let at = text.find(*named[0]).unwrap_or_default();
            let around =
                String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(200)..text.len().min(at + 100)]);
            let broken = format!("{named:?} is hidden from the caller of {request:?}, who hears: {around}");
            book.broken.push(broken);
        }
    }

    /// What was broken, once all is over; `off`: the machines to which an off was sent.
    pub fn end(&self, off: &[&str]) -> (Vec<String>, Seen) {
        let book = self.book.lock();
        let mut broken = book.broken.clone();
        for node in off.iter().filter(|node| !book.off_sent.iter().any(|(_, sent)| sent.as_str() == **node)) {
            broken.push(format!("{node} was sent an off that no record knows"));
        }
        (broken, book.seen)
    }
}

impl Book {
    /// What happens, where one history alone is looked at.
    fn say(&self, words: impl FnOnce() -> String) {
        if self.is_told {
            eprintln!("{}", words());
        }
    }

    fn stored(&mut self, record: NodeRecord, now: BootTime) {
        let blank = || NodeRecord::new(record.node.clone());
        let was = self.records.get(&record.node).cloned().unwrap_or_else(blank);
        if was == record {
            return;
        }
        self.say(|| format!("{now:?}: {} is {}", record.node, record.phase.label()));
        let before = self.broken.len();
        self.is_away_or_well(&was, &record, now);
        self.placed(&was, &record, now);
        self.dropped(&was, &record);
        let of = |record: &NodeRecord| record.fence.as_ref().map(|fence| fence.id);
        if let Some(fence) = record.fence.as_ref().filter(|fence| of(&was) != Some(fence.id)) {
            self.opened(fence, &record, now);
        }
        self.sends(&was, &record, now);
        if record.back_since.is_some() && was.back_since != record.back_since {
            self.back.insert(record.node.clone(), now);
        }
        if let Some(fence) = &record.fence {
            let one = (fence.id, record.node.clone());
            if fence.off_sent {
                self.taken_back.remove(&one);
                self.off_sent.insert(one);
            } else if self.off_sent.contains(&one) {
                self.taken_back.insert(one);
            }
        }
        for broken in &mut self.broken[before..] {
            let (was, told) = (was.phase.label(), told(&record));
            broken.push_str(&format!(
                "\n{now:?}, from {was} to {}: {:?}{told}",
                record.phase.label(),
                record.holds
            ));
        }
        self.records.insert(record.node.clone(), record);
    }

    /// Whether that machine ran there at any time.
    pub(super) fn ran_on(&self, machine: &str, parent: &str) -> bool {
        self.ran_on.contains(&(machine.to_owned(), parent.to_owned()))
    }

    /// The request that gave this reason.
    pub(super) fn request(&self, reason: &str) -> Option<&Request> {
        self.requests.get(reason.strip_prefix('r')?.parse::<usize>().ok()?)
    }
}

/// What happened in its fence, a line each.
fn told(record: &NodeRecord) -> String {
    let moments = record.fence.iter().flat_map(|fence| &fence.moments);
    moments.map(|moment| format!("\n  {}", moment.what)).collect()
}
