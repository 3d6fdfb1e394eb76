//! The controller's one task: what was seen goes to the decider, and what the decider says is done.

mod gateway_turns;
mod measure;
mod next;
mod remediations;
mod returning_nodes;
mod status_reports;
#[cfg(test)]
mod tests;
mod watch_failures;
mod withheld_fences;

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
use crate::decider::{Decider, FenceOrder, Moment, Phase, RequestOutcome, Stage, Verdict};
use crate::event_recorder::{ClusterWrite, EventRecorder};
use crate::fence_request::{FenceRequester, RequestProgress};
use crate::health::InitialSync;
use crate::kured;
use crate::leader_election::LeadershipWatch;
use crate::measured::{ASKED, BROKEN, ENDED, LOOKS, SEEN, SUSPECTED};
use crate::object::SeenPolicy;
use crate::outcome::OutcomeReport;
use crate::watch::{Remediations, WatchEvent, look_at};
use crate::{policy_events, spec};
use next::{Inbox, Next};
use remediations::RemediationIndex;
use returning_nodes::ReturningNodes;
use watch_failures::WatchFailures;
use withheld_fences::WithheldFences;

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
    pub requester: FenceRequester,
    /// What tells the cluster.
    pub recorder: EventRecorder,
    /// Whether this replica leads.
    pub leading: LeadershipWatch,
    /// What is counted.
    pub metrics: Metrics,
    /// What was told once.
    pub synced: Arc<InitialSync>,
    decider: Decider,
    start: Instant,
    leads: bool,
    policies: BTreeMap<String, SeenPolicy>,
    /// Those that cannot be read, and why.
    malformed: BTreeMap<String, String>,
    asks: JoinSet<()>,
    /// By a Node's name: what was ordered, and what asks.
    asking: BTreeMap<String, (FenceOrder, AbortHandle)>,
    looking: Option<AbortHandle>,
    looked: Option<Instant>,
    locks: Option<Instant>,
    renewed: Option<Instant>,
    written: BTreeMap<String, (Value, Instant)>,
    cleaned: BTreeMap<String, Instant>,
    withheld: WithheldFences,
    news: policy_events::NewsLog,
    breaks: WatchFailures,
    bringing: ReturningNodes,
    remediations: RemediationIndex,
}

impl Control {
    /// One that has seen nothing yet.
    pub fn new(
        requester: FenceRequester,
        recorder: EventRecorder,
        metrics: Metrics,
        synced: Arc<InitialSync>,
    ) -> Self {
        let decider = Decider::selecting(requester.settings.select);
        Self {
            api: requester.api.clone(),
            leading: requester.leading.clone(),
            requester,
            recorder,
            metrics,
            synced,
            decider,
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
            withheld: WithheldFences::default(),
            news: policy_events::NewsLog::default(),
            breaks: WatchFailures::default(),
            bringing: ReturningNodes::default(),
            remediations: RemediationIndex::default(),
        }
    }

    /// Works for as long as it is polled.
    pub async fn run(
        mut self,
        seen: mpsc::Receiver<WatchEvent>,
        mut remediations: watch::Receiver<Remediations>,
        to_see: mpsc::Sender<WatchEvent>,
    ) {
        let (say, said) = mpsc::channel(256);
        let mut inbox = Inbox::new(said, seen);
        loop {
            let mut leading = self.leading.clone();
            tokio::select! {
                biased;
                () = leading.lost(), if self.leads => self.lead(),
                next = inbox.next() => match next {
                    Next::Progress(one) => self.said(*one),
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
        let leads = self.leading.now() && self.synced.missing().is_empty();
        if leads == self.leads {
            return;
        }
        self.leads = leads;
        self.decider.lead(leads);
        if !leads {
            // What is under way at the gateways goes on; who leads next joins it.
            self.asks.abort_all();
            self.asking.clear();
            self.written.clear();
            self.withheld = WithheldFences::default();
            self.news.rest();
            self.bringing.rest();
            self.remediations.rest();
        }
    }

    fn see(&mut self, seen: WatchEvent) {
        let is_there = |told: &std::sync::atomic::AtomicBool| told.store(true, Ordering::Relaxed);
        match seen {
            WatchEvent::Node(node, at) => {
                self.metrics.count(&SEEN, &["nodes"]);
                self.decider.see(*node, self.moment(at));
            }
            WatchEvent::Gone(name) => self.decider.gone(&name),
            WatchEvent::Nodes(names) => {
                self.decider.only(&names);
                is_there(&self.synced.nodes);
            }
            WatchEvent::Lease(name, renewal, at) => {
                self.metrics.count(&SEEN, &["leases"]);
                self.decider.lease(&name, &renewal, self.moment(at));
            }
            WatchEvent::Leases => is_there(&self.synced.leases),
            WatchEvent::Policies(policies) => {
                self.metrics.count(&SEEN, &["fencingpolicies"]);
                self.read(policies);
                is_there(&self.synced.policies);
            }
            WatchEvent::Broken(what, why) => {
                self.metrics.count(&BROKEN, &[what]);
                self.synced.broke(what, &why);
                if self.breaks.is_news(what, &why, Instant::now()) {
                    tracing::warn!(what, why, "a watch broke, it is begun again");
                }
            }
            WatchEvent::Looked => self.looking = None,
            WatchEvent::Rebooting(nodes) => self.decider.rebooting(nodes),
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
        self.decider.policies(right);
    }

    fn tick(&mut self, to_see: &mpsc::Sender<WatchEvent>, say: &mpsc::Sender<RequestProgress>) {
        self.lead();
        let now = Instant::now();
        let is_due = |last: Option<Instant>, every| last.is_none_or(|last| now - last >= every);
        let suspects = self.decider.suspects(self.moment(now));
        self.metrics.set(&SUSPECTED, &[], measure::count(suspects.len()));
        let asks_for_locks = !suspects.is_empty() || self.decider.is_rebooting();
        if asks_for_locks && is_due(self.locks, LOCKS_EVERY) {
            self.locks = Some(now);
            tokio::spawn(kured::look(
                self.api.clone(),
                self.requester.settings.kured.clone(),
                to_see.clone(),
            ));
        }
        let is_looking = self.looking.as_ref().is_some_and(|looking| !looking.is_finished());
        if !suspects.is_empty() && !is_looking && is_due(self.looked, LOOK_EVERY) {
            self.looked = Some(now);
            self.metrics.count(&LOOKS, &[]);
            let looking = tokio::spawn(look_at(self.api.clone(), suspects, to_see.clone()));
            self.looking = Some(looking.abort_handle());
        }
        let judgement = self.decider.judge(self.moment(now));
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
                    if let Some(node) = self.decider.policy_s(&name).cloned() {
                        self.recorder.tell(ClusterWrite::Renew(Box::new(node)));
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

    fn ask(&mut self, order: FenceOrder, say: &mpsc::Sender<RequestProgress>) {
        self.metrics.count(&ASKED, &[]);
        let kind = if order.remediation.is_some() { "" } else { "FencingPolicy " };
        let text = format!("the gateway is asked to fence it ({kind}{}, key {})", order.policy, order.key);
        self.recorder.event(&order.node, "FenceAsked", &text);
        self.withheld.forget(&order.node.name);
        let asking = self.asks.spawn(self.requester.clone().ask(order.clone(), say.clone()));
        self.asking.insert(order.node.name.clone(), (order, asking));
    }

    /// What ended without a word, by a defect, is decided again. What it had said is heard before.
    fn lost(&mut self, said: &mut mpsc::Receiver<RequestProgress>) {
        let lost = self.asking.values().filter(|(_, asking)| asking.is_finished());
        let lost: Vec<FenceOrder> = lost.map(|(order, _)| order.clone()).collect();
        while let Ok(one) = said.try_recv() {
            self.said(one);
        }
        for order in lost {
            if self.asking.contains_key(&order.node.name) {
                let ended = OutcomeReport::held("what asked the gateway ended without a word");
                self.said(RequestProgress::Ended { order: Box::new(order), ended, noted: true, node: None });
            }
        }
    }

    /// Whether that is under way: what another life of this leadership heard is not told any more.
    fn is_asking(&self, order: &FenceOrder) -> bool {
        self.asking.get(&order.node.name).is_some_and(|one| one.0.key == order.key)
    }

    fn said(&mut self, said: RequestProgress) {
        match said {
            RequestProgress::Phase { order, reason, text, node } => {
                if self.is_asking(&order) {
                    self.recorder.event(&order.node, reason, &text);
                    self.noted(&order, Phase::Fencing, &text);
                    self.remediation_goes_on(&order, &text, node);
                }
            }
            RequestProgress::Waits { order, told } => {
                if self.is_asking(&order) {
                    if told.is_event {
                        self.recorder.event(&order.node, "Waiting", &told.text);
                    }
                    self.noted(&order, Phase::Fencing, &told.text);
                    self.remediation_goes_on(&order, &told.text, None);
                }
            }
            RequestProgress::Ended { order, ended, noted, node } => {
                self.asking.remove(&order.node.name);
                let now = self.moment(Instant::now());
                if !self.decider.ended(&order.node.name, &order.key, &ended.end, now) {
                    return;
                }
                self.metrics.count(&ENDED, &[ended.reason]);
                self.recorder.event(&order.node, ended.reason, &ended.text);
                self.noted(&order, ended.phase, &ended.text);
                self.wish_ended(&order, &ended, noted, node);
                if !matches!(
                    ended.end,
                    RequestOutcome::Off | RequestOutcome::Superseded | RequestOutcome::Person
                ) {
                    self.recorder.tell(ClusterWrite::GiveBack(order.node.name.clone()));
                }
            }
        }
    }
}
