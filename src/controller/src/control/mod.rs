//! The controller's one task: what was seen goes to the mind, and what the mind says is done.

mod breaks;
mod bringing;
mod measure;
mod next;
mod telling;
#[cfg(test)]
mod tests;
mod turns;
mod wishes;
mod withheld;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use picket_metrics::Metrics;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::api::Api;
use crate::ask::{Asker, Said};
use crate::health::Told;
use crate::kured;
use crate::lead::Leading;
use crate::measured::{ASKED, BROKEN, ENDED, LOOKS, SEEN, SUSPECTED};
use crate::mind::{End, Mind, Moment, Order, Phase, Stage, Verdict};
use crate::object::SeenPolicy;
use crate::outcome::Ended;
use crate::teller::{Tell, Teller};
use crate::watch::{Remediations, Seen, look_at};
use crate::{news, spec};
use breaks::Breaks;
use bringing::Bringing;
use next::{Inbox, Next};
use wishes::Wishes;
use withheld::Withheld;

const TICK: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOCKS_EVERY: Duration = Duration::from_secs(5);
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// A status, or a note, that was not seen to be written is written again after so long.
const WRITE_AGAIN: Duration = Duration::from_secs(10);

/// What the controller works with.
#[derive(Debug)]
pub struct Control {
    /// The API server.
    pub api: Api,
    /// What asks the gateways.
    pub asker: Asker,
    /// What tells the cluster.
    pub teller: Teller,
    /// Whether this replica leads.
    pub leading: Leading,
    /// What is counted.
    pub metrics: Metrics,
    /// What was told once.
    pub told: Arc<Told>,
    mind: Mind,
    start: Instant,
    leads: bool,
    policies: BTreeMap<String, SeenPolicy>,
    /// Those that cannot be read, and why.
    malformed: BTreeMap<String, String>,
    asks: JoinSet<()>,
    /// By a Node's name: what was ordered, and what asks.
    asking: BTreeMap<String, (Order, AbortHandle)>,
    looking: Option<AbortHandle>,
    looked: Option<Instant>,
    locks: Option<Instant>,
    renewed: Option<Instant>,
    written: BTreeMap<String, (Value, Instant)>,
    cleaned: BTreeMap<String, Instant>,
    withheld: Withheld,
    news: news::Told,
    breaks: Breaks,
    bringing: Bringing,
    wishes: Wishes,
}

impl Control {
    /// One that has seen nothing yet.
    pub fn new(asker: Asker, teller: Teller, metrics: Metrics, told: Arc<Told>) -> Self {
        let mind = Mind::selecting(asker.settings.select);
        Self {
            api: asker.api.clone(),
            leading: asker.leading.clone(),
            asker,
            teller,
            metrics,
            told,
            mind,
            start: Instant::now(),
            leads: false,
            policies: BTreeMap::new(),
            malformed: BTreeMap::new(),
            asks: JoinSet::new(),
            asking: BTreeMap::new(),
            looking: None,
            looked: None,
            locks: None,
            renewed: None,
            written: BTreeMap::new(),
            cleaned: BTreeMap::new(),
            withheld: Withheld::default(),
            news: news::Told::default(),
            breaks: Breaks::default(),
            bringing: Bringing::default(),
            wishes: Wishes::default(),
        }
    }

    /// Works for as long as it is polled.
    pub async fn run(
        mut self,
        seen: mpsc::Receiver<Seen>,
        mut remediations: watch::Receiver<Remediations>,
        to_see: mpsc::Sender<Seen>,
    ) {
        let (say, said) = mpsc::channel(256);
        let mut inbox = Inbox::new(said, seen);
        loop {
            let mut leading = self.leading.clone();
            tokio::select! {
                biased;
                () = leading.lost(), if self.leads => self.lead(),
                next = inbox.next() => match next {
                    Next::Said(one) => self.said(*one),
                    Next::Seen(one) => self.see(one),
                    Next::Tick => {
                        self.lost(&mut inbox.said);
                        self.take_wishes(&mut remediations);
                        self.tick(&to_see, &say);
                    }
                }
            }
            while self.asks.try_join_next().is_some() {}
        }
    }

    fn moment(&self, at: Instant) -> Moment {
        at.saturating_duration_since(self.start)
    }

    /// Whether it leads may have changed.
    fn lead(&mut self) {
        let leads = self.leading.now() && self.told.missing().is_empty();
        if leads == self.leads {
            return;
        }
        self.leads = leads;
        self.mind.lead(leads);
        if !leads {
            // What is under way at the gateways goes on; who leads next joins it.
            self.asks.abort_all();
            self.asking.clear();
            self.written.clear();
            self.withheld = Withheld::default();
            self.news.rest();
            self.bringing.rest();
            self.wishes.rest();
        }
    }

    fn see(&mut self, seen: Seen) {
        let is_there = |told: &std::sync::atomic::AtomicBool| told.store(true, Ordering::Relaxed);
        match seen {
            Seen::Node(node, at) => {
                self.metrics.count(&SEEN, &["nodes"]);
                self.mind.see(*node, self.moment(at));
            }
            Seen::Gone(name) => self.mind.gone(&name),
            Seen::Nodes(names) => {
                self.mind.only(&names);
                is_there(&self.told.nodes);
            }
            Seen::Lease(name, renewal, at) => {
                self.metrics.count(&SEEN, &["leases"]);
                self.mind.lease(&name, &renewal, self.moment(at));
            }
            Seen::Leases => is_there(&self.told.leases),
            Seen::Policies(policies) => {
                self.metrics.count(&SEEN, &["fencingpolicies"]);
                self.read(policies);
                is_there(&self.told.policies);
            }
            Seen::Broken(what, why) => {
                self.metrics.count(&BROKEN, &[what]);
                self.told.broke(what, &why);
                if self.breaks.is_news(what, &why, Instant::now()) {
                    tracing::warn!(what, why, "a watch broke, it is begun again");
                }
            }
            Seen::Looked => self.looking = None,
            Seen::Rebooting(nodes) => self.mind.rebooting(nodes),
        }
    }

    fn read(&mut self, policies: Vec<SeenPolicy>) {
        let mut right = Vec::new();
        let before = std::mem::take(&mut self.policies);
        self.malformed.clear();
        for policy in policies {
            let name = policy.metadata.name.clone().unwrap_or_default();
            match spec::of(&policy) {
                Ok(read) => right.push(read),
                Err(why) => drop(self.malformed.insert(name.clone(), why.to_string())),
            }
            self.policies.insert(name, policy);
        }
        self.forget_others(&before);
        self.mind.policies(right);
    }

    fn tick(&mut self, to_see: &mpsc::Sender<Seen>, say: &mpsc::Sender<Said>) {
        self.lead();
        let now = Instant::now();
        let is_due = |last: Option<Instant>, every| last.is_none_or(|last| now - last >= every);
        let suspects = self.mind.suspects(self.moment(now));
        self.metrics.set(&SUSPECTED, &[], measure::count(suspects.len()));
        let asks_for_locks = !suspects.is_empty() || self.mind.is_rebooting();
        if asks_for_locks && is_due(self.locks, LOCKS_EVERY) {
            self.locks = Some(now);
            tokio::spawn(kured::look(self.api.clone(), self.asker.settings.kured.clone(), to_see.clone()));
        }
        let is_looking = self.looking.as_ref().is_some_and(|looking| !looking.is_finished());
        if !suspects.is_empty() && !is_looking && is_due(self.looked, LOOK_EVERY) {
            self.looked = Some(now);
            self.metrics.count(&LOOKS, &[]);
            let looking = tokio::spawn(look_at(self.api.clone(), suspects, to_see.clone()));
            self.looking = Some(looking.abort_handle());
        }
        let judgement = self.mind.judge(self.moment(now));
        self.measure(&judgement);
        if !self.leads {
            return;
        }
        let renews = is_due(self.renewed, RENEW_EVERY);
        if renews {
            self.renewed = Some(now);
        }
        for (name, verdict) in judgement.verdicts {
            match verdict {
                Verdict::Fence(order) => self.ask(*order, say),
                Verdict::Follow(Stage::Waiting(_)) => {}
                Verdict::Follow(_) if renews => {
                    // NodeHealthCheck renews its own.
                    if let Some(node) = self.mind.policy_s(&name).cloned() {
                        self.teller.tell(Tell::Renew(Box::new(node)));
                    }
                }
                Verdict::Follow(_) => {}
                Verdict::Leave(why) => self.leave(&name, &why, now),
            }
        }
        self.follow_back(now);
        self.write_all(judgement.reports);
        self.serve_wishes(judgement.tidings, now);
    }

    fn ask(&mut self, order: Order, say: &mpsc::Sender<Said>) {
        self.metrics.count(&ASKED, &[]);
        let kind = if order.wish.is_some() { "" } else { "FencingPolicy " };
        let text = format!("the gateway is asked to fence it ({kind}{}, key {})", order.policy, order.key);
        self.teller.event(&order.node, "FenceAsked", &text);
        self.withheld.forget(&order.node.name);
        let asking = self.asks.spawn(self.asker.clone().ask(order.clone(), say.clone()));
        self.asking.insert(order.node.name.clone(), (order, asking));
    }

    /// What ended without a word, by a defect, is decided again. What it had said is heard before.
    fn lost(&mut self, said: &mut mpsc::Receiver<Said>) {
        let lost = self.asking.values().filter(|(_, asking)| asking.is_finished());
        let lost: Vec<Order> = lost.map(|(order, _)| order.clone()).collect();
        while let Ok(one) = said.try_recv() {
            self.said(one);
        }
        for order in lost {
            if self.asking.contains_key(&order.node.name) {
                let ended = Ended::held("what asked the gateway ended without a word");
                self.said(Said::Ended { order: Box::new(order), ended, noted: true, node: None });
            }
        }
    }

    /// Whether that is under way: what another life of this leadership heard is not told any more.
    fn is_asking(&self, order: &Order) -> bool {
        self.asking.get(&order.node.name).is_some_and(|one| one.0.key == order.key)
    }

    fn said(&mut self, said: Said) {
        match said {
            Said::Phase { order, reason, text, node } => {
                if self.is_asking(&order) {
                    self.teller.event(&order.node, reason, &text);
                    self.noted(&order, Phase::Fencing, &text);
                    self.wish_goes_on(&order, &text, node);
                }
            }
            Said::Waits { order, told } => {
                if self.is_asking(&order) {
                    if told.is_event {
                        self.teller.event(&order.node, "Waiting", &told.text);
                    }
                    self.noted(&order, Phase::Fencing, &told.text);
                    self.wish_goes_on(&order, &told.text, None);
                }
            }
            Said::Ended { order, ended, noted, node } => {
                self.asking.remove(&order.node.name);
                let now = self.moment(Instant::now());
                if !self.mind.ended(&order.node.name, &order.key, &ended.end, now) {
                    return;
                }
                self.metrics.count(&ENDED, &[ended.reason]);
                self.teller.event(&order.node, ended.reason, &ended.text);
                self.noted(&order, ended.phase, &ended.text);
                self.wish_ended(&order, &ended, noted, node);
                if !matches!(ended.end, End::Off | End::Superseded | End::Person) {
                    self.teller.tell(Tell::GiveBack(order.node.name.clone()));
                }
            }
        }
    }
}
