//! What the audit is told of a node: requests, steps, and every exchange with a device, in words.
//!
//! # Invariants
//!
//! - Nothing waits for it, and no secret and no bytes are in it: words of drivers' errors are made for
//!   people (S18).
//! - What a node that is merely watched says over and over is one entry, and a count every ten minutes.
//!   Shown by `a_node_that_is_merely_watched_is_one_entry_and_a_count`.
//! - The newest written entry stands in the fence's record with each of its phases. Shown by
//!   `each_phase_is_told_with_its_evidence_and_the_fence_knows_where_the_audit_stood`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use picket_audit::{Audit, GATEWAY, Told};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::record::{AuditHead, Fence, NodeRecord};
use picket_core::step::Step;
use picket_core::time::{BootTime, Clock, WallTime, written};
use picket_driver::DriverError;
use picket_liveness::Look;
use serde_json::{Map, Value, json};

use super::asked::Asked;
use super::measuring::{self, Measures};
use super::words;
use crate::parts::{NodePlan, Parts};
use crate::readiness::Readiness;

/// The same answer to the same question is told once, then counted for so long.
const COUNTED: Duration = Duration::from_secs(600);

/// Within what a device is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Scope {
    fence: Option<String>,
    generation: u64,
    /// A node that is merely watched gives the same answer for days.
    watched: bool,
}

#[derive(Debug)]
struct Repeat {
    scope: Scope,
    answered: String,
    since: BootTime,
    more: u64,
}

/// Tells of one node.
#[derive(Debug)]
pub(crate) struct Teller {
    audit: Audit,
    clock: Arc<dyn Clock>,
    node: NodeId,
    scope: Mutex<Scope>,
    repeats: Mutex<BTreeMap<DeviceId, Repeat>>,
    pub(super) measures: Measures,
    plan: Arc<NodePlan>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Teller {
    pub(crate) fn new(parts: &Parts, plan: &Arc<NodePlan>) -> Self {
        Self {
            audit: parts.audit.clone(),
            clock: parts.clock.clone(),
            node: plan.id.clone(),
            scope: Mutex::default(),
            repeats: Mutex::default(),
            measures: Measures::new(&parts.metrics),
            plan: plan.clone(),
        }
    }

    /// The record's fence, generation and phase are those within which devices are asked from now on.
    pub(crate) fn moved(&self, record: &NodeRecord) {
        let scope = Scope {
            fence: record.fence.as_ref().map(|fence| fence.id.to_string()),
            generation: record.generation.0,
            watched: !matches!(record.phase.label(), "fencing" | "unfencing"),
        };
        if *locked(&self.scope) != scope {
            self.count_all();
            *locked(&self.scope) = scope;
        }
    }

    /// Where the audit stands, to be stored with a fence.
    pub(crate) fn head(&self) -> Option<AuditHead> {
        self.audit.head().map(|head| AuditHead { seq: head.seq, hash: head.hash })
    }

    fn told(&self, what: &str, at: WallTime, scope: &Scope, details: Value) -> Told {
        Told {
            at: at.millis(),
            who: GATEWAY.to_owned(),
            role: String::new(),
            what: what.to_owned(),
            node: Some(self.node.to_string()),
            fence: scope.fence.clone(),
            generation: Some(scope.generation),
            details,
        }
    }

    /// A request, and what became of it.
    ///
    /// What was refused or only repeats what was so changes nothing, and a caller may do it as often as it likes: it is
    /// told once, and then counted.
    pub(crate) fn request(
        &self,
        asked: Asked,
        record: &NodeRecord,
        became: Result<String, String>,
        repeats: bool,
    ) {
        let fence = record.fence.as_ref().map(|fence| fence.id.to_string());
        let scope = Scope { fence, generation: record.generation.0, watched: false };
        let told = self.told("request", self.clock.wall(), &scope, Value::Null);
        let counts = repeats || became.is_err();
        let told = asked.told(told, became);
        if counts { self.audit.tell_counted(told) } else { self.audit.tell(told) }
    }

    /// A check found a device to be otherwise than the one before. That all is well at first is no news.
    pub(crate) fn readiness(&self, device: &DeviceId, was: Readiness, is: Readiness, problems: &[String]) {
        let (from, to, words) = (was.label(), is.label(), problems.join("; "));
        match is {
            Readiness::NotReady => {
                tracing::error!(node = %self.node, %device, from, to, words, "the device cannot be used for a fence now");
            }
            Readiness::Degraded => {
                tracing::warn!(node = %self.node, %device, from, to, words, "the device could be used for a fence, and not as well as it might");
            }
            Readiness::Ready | Readiness::Unchecked if was == Readiness::Unchecked => {
                tracing::debug!(node = %self.node, %device, to, "the device could be used for a fence");
                return;
            }
            Readiness::Ready | Readiness::Unchecked => {
                tracing::info!(node = %self.node, %device, from, to, "the device could be used for a fence again");
            }
        }
        let scope = locked(&self.scope).clone();
        let details = json!({ "device": device, "from": from, "to": to, "problems": problems });
        self.audit.tell(self.told("readiness", self.clock.wall(), &scope, details));
    }

    /// What a stored step changed: to be told once it is stored.
    pub(crate) fn step(&self, before: &NodeRecord, step: &Step, event: &str) -> Vec<Told> {
        if !self.audit.is_kept() {
            return Vec::new();
        }
        let after = step.record();
        let moved = (before.phase != after.phase) || before.generation != after.generation;
        let mut told = Vec::new();
        for fence in step.fences() {
            let old = before.fence.as_ref().filter(|old| old.id == fence.id);
            // The entry of the request has who asked for a hold, and why, in full.
            let words = if event == HOLD { held(before, after) } else { new_words(old, fence) };
            if words.is_empty() && !moved {
                continue;
            }
            let mut details = Map::new();
            details.insert("event".to_owned(), event.into());
            details.insert("from".to_owned(), before.phase.label().into());
            details.insert("to".to_owned(), after.phase.label().into());
            details.insert("words".to_owned(), words.into());
            let proven = old.and_then(|old| old.evidence.as_ref()) != fence.evidence.as_ref();
            if let Some(evidence) = fence.evidence.as_ref().filter(|_| proven) {
                details.insert("evidence".to_owned(), serde_json::to_value(evidence).unwrap_or_default());
                // Whoever reads the audit alone must not take a rehearsal for a real machine (S1).
                if fence.topology.is_simulated() {
                    details.insert("simulated".to_owned(), true.into());
                }
            }
            if let Some(outcome) = fence.outcome.as_ref().filter(|_| fence.ended_at.is_some()) {
                details.insert("outcome".to_owned(), outcome.label().into());
            }
            let scope = Scope {
                fence: Some(fence.id.to_string()),
                generation: fence.generation.0.max(before.generation.0),
                watched: false,
            };
            let what = if moved { "phase" } else { "step" };
            told.push(self.told(what, self.clock.wall(), &scope, Value::Object(details)));
        }
        let learned = after.learned.iter().filter(|(device, is)| before.learned.get(device) != Some(is));
        for (device, identity) in learned {
            let identity = serde_json::to_value(identity).unwrap_or_default();
            let details = json!({ "event": event, "device": device, "identity": identity });
            let scope = Scope { fence: None, generation: after.generation.0, watched: false };
            told.push(self.told("step", self.clock.wall(), &scope, details));
        }
        let proofs = &before.identity_proofs;
        for (device, proof) in
            after.identity_proofs.iter().filter(|(device, is)| proofs.get(device) != Some(is))
        {
            let details = json!({ "event": event, "device": device, "identity_proven_by": proof.by });
            let scope = Scope { fence: None, generation: after.generation.0, watched: false };
            told.push(self.told("step", self.clock.wall(), &scope, details));
        }
        told
    }

    pub(crate) fn tell(&self, told: Vec<Told>) {
        told.into_iter().for_each(|told| self.audit.tell(told));
    }

    /// A device is asked now: what it answers is to be told, and is told as unanswered if nobody waits for it.
    pub(crate) fn ask(self: &Arc<Self>, device: &DeviceId, asked: &'static str) -> Asking {
        Asking {
            scope: locked(&self.scope).clone(),
            teller: self.clone(),
            device: device.clone(),
            asked,
            at: self.clock.wall(),
            from: self.clock.boot(),
            answered: false,
            unheard: false,
        }
    }

    fn exchange(&self, asking: &Asking, answered: String) {
        if !self.audit.is_kept() || asking.unheard {
            return;
        }
        let now = self.clock.boot();
        if asking.scope.watched && asking.asked == POWER {
            let mut repeats = locked(&self.repeats);
            if let Some(repeat) = repeats.get_mut(&asking.device)
                && repeat.answered == answered
                && repeat.scope == asking.scope
            {
                repeat.more += 1;
                if now.since(repeat.since) >= COUNTED {
                    self.count(&asking.device, repeat, now);
                }
                return;
            }
            let (scope, heard) = (asking.scope.clone(), answered.clone());
            let repeat = Repeat { scope, answered: heard, since: now, more: 0 };
            if let Some(mut old) = repeats.insert(asking.device.clone(), repeat) {
                self.count(&asking.device, &mut old, now);
            }
        }
        let took = u64::try_from(now.since(asking.from).as_millis()).unwrap_or(u64::MAX);
        let details = json!({
            "device": asking.device, "asked": asking.asked, "answered": answered, "took_ms": took,
        });
        self.audit.tell(self.told("exchange", asking.at, &asking.scope, details));
    }

    /// What a liveness source said of the node (S15), as an exchange within its fence.
    pub(super) fn looked(&self, asked_at: BootTime, look: &Look) {
        let took = self.clock.boot().since(asked_at);
        let answered = match look {
            Look::Recovered(words) | Look::NotRecovered(words) => words.clone(),
            Look::Unanswered(why) | Look::Away(why) => format!("no answer: {why}"),
        };
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let details = json!({
            "device": "liveness source", "asked": "did the node recover", "answered": answered, "took_ms": took_ms,
        });
        let at = WallTime::from_millis(self.clock.wall().millis().saturating_sub(took_ms));
        let scope = locked(&self.scope).clone();
        self.audit.tell(self.told("exchange", at, &scope, details));
    }

    /// Tells how often the same answer came since it was told.
    fn count(&self, device: &DeviceId, repeat: &mut Repeat, now: BootTime) {
        if repeat.more > 0 {
            let seconds = Duration::from_secs(now.since(repeat.since).as_secs());
            let answered = format!("{}, {} more times in {}", repeat.answered, repeat.more, written(seconds));
            let details =
                json!({ "device": device, "asked": POWER, "answered": answered, "more": repeat.more });
            self.audit.tell(self.told("exchange", self.clock.wall(), &repeat.scope, details));
        }
        (repeat.since, repeat.more) = (now, 0);
    }

    fn count_all(&self) {
        let now = self.clock.boot();
        for (device, mut repeat) in std::mem::take(&mut *locked(&self.repeats)) {
            self.count(&device, &mut repeat, now);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.count_all();
    }
}

/// The question after a device's power, in words.
pub(crate) const POWER: &str = "is it on or off";

/// A question under way.
#[derive(Debug)]
pub(crate) struct Asking {
    teller: Arc<Teller>,
    scope: Scope,
    device: DeviceId,
    asked: &'static str,
    at: WallTime,
    from: BootTime,
    answered: bool,
    unheard: bool,
}

impl Asking {
    /// It is not told: of a check only what changed is.
    pub(crate) fn unheard(mut self) -> Self {
        self.unheard = true;
        self
    }

    /// What came back; `in_words` for what is no error.
    pub(crate) fn answered<T>(
        mut self,
        result: &Result<T, DriverError>,
        in_words: impl FnOnce(&T) -> String,
    ) {
        self.answered = true;
        self.measure(measuring::result(result));
        self.teller.exchange(&self, words::heard(result, in_words));
    }

    /// The same of what is told in other words: how it ended, in one and in some.
    pub(crate) fn ended(mut self, result: &str, words: String) {
        self.answered = true;
        self.measure(result);
        self.teller.exchange(&self, words);
    }

    fn measure(&self, result: &str) {
        // What it is made by is the first word of where it is.
        let driver = self.teller.plan.drivers.get(&self.device);
        let driver = driver.map(|driver| driver.traits().endpoint.split(' ').next().unwrap_or_default());
        let driver = driver.unwrap_or("gone");
        let took = self.teller.clock.boot().since(self.from);
        self.teller.measures.call(driver, verb(self.asked), result, took);
    }
}

/// The word of a question for metrics.
fn verb(asked: &str) -> &'static str {
    match asked {
        POWER => "read",
        "what machine is it" => "identify",
        "what would a hold change" => "inspect_hold",
        "stay off" => "hold",
        "power off, hard" => "off",
        "put back what the hold changed" => "unhold",
        "power on" => "on",
        "end the session" => "close",
        "what volumes are attached" => "volumes",
        "how far is a volume" => "standing",
        "let a volume go" => "detach",
        _ => "other",
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if !self.answered {
            self.measure("unheard");
            self.teller.exchange(self, "its answer was not waited for".to_owned());
        }
    }
}

/// The event of a hold that is placed without a fence.
const HOLD: &str = "hold";

/// The holds that the step placed, or renewed, by their names.
fn held(before: &NodeRecord, after: &NodeRecord) -> Vec<String> {
    let new = after.holds.iter().filter(|(name, hold)| before.holds.get(*name) != Some(hold));
    new.map(|(name, _)| format!("held for {name}")).collect()
}

/// The moments that the step added. The oldest may have been dropped for them, the newest never.
fn new_words(old: Option<&Fence>, fence: &Fence) -> Vec<String> {
    let last = old.and_then(|old| old.moments.last());
    let new = fence.moments.iter().rev().take_while(|moment| Some(*moment) != last);
    let mut words: Vec<String> = new.map(|moment| moment.what.clone()).collect();
    words.reverse();
    words
}
