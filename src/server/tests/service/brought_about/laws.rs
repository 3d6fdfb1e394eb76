//! What is judged whenever something was stored, and whenever somebody hears something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use picket_core::budget::Budget;
use picket_core::ids::{FenceId, NodeId};
use picket_core::parent::child_of;
use picket_core::record::{Fence, Hold, NodeRecord, Phase};
use picket_core::roles::Role;
use picket_core::store::Store;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::SimClock;
use picket_engine::{ChangeError, Hooks};

use super::SEED;
use super::acts::Asked;
use super::rights::{InForce, Rights};
use super::stage::{NODES, parent_of};

/// What a request may bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fence {
        sets_aside: bool,
    },
    Hold,
    /// A hold is dropped, by an unfence or by itself.
    Ends,
    StandsDown,
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) caller: &'static str,
    pub(super) node: &'static str,
    pub(super) holder: String,
    pub(super) kind: Kind,
    pub(super) at: BootTime,
}

/// How often what is worth judging happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub(super) opened: u64,
    pub(super) joined: u64,
    pub(super) for_children: u64,
    pub(super) dropped: u64,
    pub(super) set_aside: u64,
    pub(super) barred: u64,
    pub(super) waited: u64,
    pub(super) denied: u64,
    pub(super) lost: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.opened += other.opened;
        self.joined += other.joined;
        self.for_children += other.for_children;
        self.dropped += other.dropped;
        self.set_aside += other.set_aside;
        self.barred += other.barred;
        self.waited += other.waited;
        self.denied += other.denied;
        self.lost += other.lost;
    }

    /// Each of them happened.
    pub fn is_rich(&self) {
        let all = [
            self.opened,
            self.joined,
            self.for_children,
            self.dropped,
            self.set_aside,
            self.barred,
            self.waited,
            self.denied,
        ];
        assert!(all.iter().all(|count| *count >= 3), "too little happened: {self:?}");
    }
}

#[derive(Debug)]
pub(super) struct Book {
    pub(super) requests: Vec<Request>,
    pub(super) rights: InForce<Rights>,
    pub(super) budgets: InForce<Budget>,
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
            let all = self.store.load_all().await.expect("a store");
            let mut book = self.book();
            for stored in all {
                book.stored(stored.record, self.clock.boot());
            }
        }
    }
}

impl Laws {
    pub fn new(
        clock: Arc<SimClock>,
        store: Arc<dyn Store>,
        rights: &Arc<Rights>,
        budget: &Arc<Budget>,
    ) -> Self {
        let book = Book {
            requests: Vec::new(),
            rights: InForce::new(rights),
            budgets: InForce::new(budget),
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

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("whole")
    }

    /// The number of a request, by which its reason is known again.
    pub fn asks(&self, asked: &Asked) -> u64 {
        let at = self.clock.boot();
        let Asked { caller, node, ref holder, kind } = *asked;
        let mut book = self.book();
        let request = Request { caller, node, holder: holder.clone(), kind, at };
        let number = book.requests.len() as u64;
        book.say(|| format!("r{number}: {request:?}"));
        book.requests.push(request);
        number
    }

    pub fn may_now(&self, caller: &str, role: Role, node: &str) -> bool {
        let book = self.book();
        book.rights.since(self.clock.boot()).any(|rights| rights.may(caller, role, node))
    }

    pub fn told(&self, rights: &Arc<Rights>, budget: &Arc<Budget>) {
        let now = self.clock.boot();
        let mut book = self.book();
        book.say(|| format!("{now:?}: {rights:?} {budget:?}"));
        book.rights.begin(rights, now);
        book.budgets.begin(budget, now);
    }

    pub fn taken(&self) {
        let now = self.clock.boot();
        let mut book = self.book();
        book.rights.taken(now);
        book.budgets.taken(now);
    }

    pub fn refused(&self, why: &ChangeError) {
        let now = self.clock.boot();
        let mut book = self.book();
        book.say(|| format!("{now:?}: {why}"));
        book.rights.refused(now);
        book.budgets.refused(now);
    }

    /// A caller hears that.
    pub fn hears(&self, number: u64, text: &str) {
        // A hold is dropped by its name, a child's as well.
        let text =
            NODES.iter().fold(text.to_owned(), |text, node| text.replace(&format!("child:{node}"), "child"));
        let mut book = self.book();
        let request = book.requests[number as usize].clone();
        book.seen.denied += u64::from(text.contains("PermissionDenied"));
        book.seen.lost += u64::from(text.contains("any more: it waited meanwhile"));
        book.seen.waited += u64::from(text.contains("waits in the queue"));
        book.seen.barred += u64::from(text.contains("limit: Some"));
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
        let book = self.book();
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
        self.placed(&was, &record, now);
        self.dropped(&was, &record);
        let of = |record: &NodeRecord| record.fence.as_ref().map(|fence| fence.id);
        if let Some(fence) = record.fence.as_ref().filter(|fence| of(&was) != Some(fence.id)) {
            self.opened(fence, now);
        }
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

    /// The request that gave this reason.
    pub(super) fn request(&self, reason: &str) -> Option<&Request> {
        self.requests.get(reason.strip_prefix('r')?.parse::<usize>().ok()?)
    }

    fn placed(&mut self, was: &NodeRecord, record: &NodeRecord, now: BootTime) {
        let is_new = |(name, hold): &(&String, &Hold)| {
            was.holds.get(*name).is_none_or(|old| (&old.by, &old.reason) != (&hold.by, &hold.reason))
        };
        let node = record.node.as_str();
        for (name, hold) in record.holds.iter().filter(is_new) {
            let told = match child_of(name) {
                Some(child) => self.is_placed_for(child, hold, was, record, now),
                None => self.is_asked_for(name, hold, node, now),
            };
            if let Err(why) = told {
                self.broken.push(format!("{name} holds {node}, by {:?} ({}): {why}", hold.by, hold.reason));
            }
            match child_of(name) {
                Some(_) => self.seen.for_children += 1,
                None => self.seen.joined += u64::from(was.phase != Phase::Normal),
            }
        }
    }

    fn is_asked_for(&self, name: &str, hold: &Hold, node: &str, now: BootTime) -> Result<(), &'static str> {
        let request = self.request(&hold.reason).ok_or("nobody asked for it")?;
        if (request.caller, request.node, request.holder.as_str()) != (hold.by.as_str(), node, name) {
            return Err("somebody else asked, or for something else");
        }
        // A hold is judged as it is asked for, a fence as it is let in.
        let since = match request.kind {
            Kind::Fence { .. } => now,
            Kind::Hold => request.at,
            _ => return Err("no fence and no hold was asked for"),
        };
        let mut rights = self.rights.since(since);
        rights
            .any(|rights| rights.may_hold(&hold.by, name, node))
            .then_some(())
            .ok_or("who has no role for that")
    }

    /// A machine is held for what runs on it by the right of those who asked for that, or by its own settings, or as it is off.
    fn is_placed_for(
        &self,
        child: &str,
        hold: &Hold,
        was: &NodeRecord,
        record: &NodeRecord,
        now: BootTime,
    ) -> Result<(), &'static str> {
        let node = record.node.as_str();
        let asked = |who: &str| {
            let of = |one: &&Request| one.caller == who && one.node == child;
            self.requests.iter().filter(of).any(|one| matches!(one.kind, Kind::Fence { .. } | Kind::Hold))
        };
        if parent_of(child) != Some(node) || !hold.by.split(", ").all(asked) {
            return Err("who did not ask for that child");
        }
        let is_same = |fence: &&Fence| record.fence.as_ref().is_some_and(|now| now.id == fence.id);
        let is_off = was.fence.as_ref().filter(is_same).is_some_and(|fence| fence.off_sent);
        let may = |rights: &Rights| {
            let named = rights
                .fenced_for
                .get(node)
                .is_some_and(|children| children.iter().any(|one| one.as_str() == child));
            named || hold.by.split(", ").all(|who| rights.may(who, Role::Controller, node))
        };
        (is_off || self.rights.since(now).any(may))
            .then_some(())
            .ok_or("who has no role for the machine itself")
    }

    fn dropped(&mut self, was: &NodeRecord, record: &NodeRecord) {
        let node = record.node.as_str();
        let gone = was.holds.iter().filter(|(name, _)| !record.holds.contains_key(*name));
        for (name, hold) in gone.filter(|(name, _)| child_of(name).is_none()) {
            self.seen.dropped += 1;
            let by = |one: &&Request| match one.kind {
                Kind::Ends => one.holder == *name,
                Kind::StandsDown => true,
                _ => false,
            };
            let may = |one: &Request| {
                self.rights.since(one.at).any(|rights| match one.kind {
                    Kind::StandsDown => rights.may(one.caller, Role::Operator, node),
                    _ => rights.may_hold(one.caller, name, node),
                })
            };
            let ended = self.requests.iter().filter(|one| one.node == node).filter(by).any(may);
            // What sent nothing and is given up takes back what it placed.
            let sent_nothing = record.fence.as_ref().is_some_and(|fence| !fence.off_sent);
            if !(ended || hold.drop_when_released || sent_nothing && !hold.placed_alone) {
                self.broken.push(format!("{name} holds {node} no more, and nobody ended that"));
            }
        }
    }
}

/// What happened in its fence, a line each.
fn told(record: &NodeRecord) -> String {
    let moments = record.fence.iter().flat_map(|fence| &fence.moments);
    moments.map(|moment| format!("\n  {}", moment.what)).collect()
}
