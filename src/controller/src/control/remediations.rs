//! Remediations: what was seen of them goes to the decider, and what the decider says of them is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::gateway_turns::GatewayTurns;
use super::{Control, WRITE_AGAIN};
use crate::decider::{
    FenceOrder, RemediationAction, RemediationId, RemediationRequest, RemediationState, RemediationUpdate,
};
use crate::event_recorder::EventRecorder;
use crate::events;
use crate::hold_release::{self, HoldReleaseResult, KeepReason};
use crate::measured::{SEEN, STUCK, WISHES};
use crate::object::SeenRemediation;
use crate::outcome::OutcomeReport;
use crate::remediation::{self, FinalizerState};
use crate::request_note::RequestNote;
use crate::retired;
use crate::watch::Remediations;

/// So often it is asked whether the machine of one that stands is retired.
const RETIRED_EVERY: Duration = Duration::from_secs(30);
/// So much of that, and of holds, is asked about at once: a gateway has so much room for one caller, and others ask it too.
const AT_ONCE: usize = 16;

/// What is known of them besides the decider; by their UIDs.
#[derive(Debug, Default)]
pub(super) struct RemediationIndex {
    seen: BTreeMap<String, Arc<SeenRemediation>>,
    written: BTreeMap<String, (Value, Instant)>,
    /// When its finalizer was last seen to.
    tried: BTreeMap<String, Instant>,
    turns: GatewayTurns,
    pub(super) hold_releases: JoinSet<(String, Result<HoldReleaseResult, KeepReason>)>,
    /// Since when no hold is found, and nothing is asked.
    holdless: BTreeMap<String, Instant>,
    /// Why those that are deleted still stand.
    stuck: BTreeMap<String, StuckReason>,
}

/// Why one stands, as a person was told.
#[derive(Debug)]
struct StuckReason {
    text: String,
    /// It is told because its Node is not Ready.
    is_paged: bool,
}

impl RemediationIndex {
    /// Another replica leads.
    pub(super) fn rest(&mut self) {
        self.written.clear();
        self.tried.clear();
        self.turns.rest();
        self.stuck.clear();
        self.holdless.clear();
        self.hold_releases.abort_all();
    }

    #[cfg(test)]
    pub(super) fn words(&self, uid: &str) -> String {
        self.stuck.get(uid).map(|told| told.text.clone()).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn stuck(&self) -> usize {
        self.stuck.len()
    }

    fn is_due(&self, uid: &str, every: Duration, now: Instant) -> bool {
        self.tried.get(uid).is_none_or(|last| now - *last >= every)
    }

    /// Its finalizer is seen to, if that is due. What found no place is due still: others may make many, and change them without a pause.
    fn keep(
        &mut self,
        recorder: &EventRecorder,
        remediation: &RemediationId,
        kept: FinalizerState,
        now: Instant,
    ) {
        if self.is_due(&remediation.uid, WRITE_AGAIN, now) && recorder.keep(remediation, kept) {
            self.tried.insert(remediation.uid.clone(), now);
        }
    }
}

impl Control {
    /// Those that there are, if they are others than before: once a tick, however often they change.
    pub(super) fn take_wishes(&mut self, latest: &mut watch::Receiver<Remediations>) {
        if latest.has_changed().unwrap_or(false) {
            self.metrics.count(&SEEN, &["picketremediations"]);
            let all = latest.borrow_and_update().clone();
            self.read_wishes(all);
        }
    }

    pub(super) fn read_wishes(&mut self, all: Remediations) {
        let namespaces = &self.requester.settings.remediation_namespaces;
        let uid = |one: &Arc<SeenRemediation>| one.metadata.uid.clone().unwrap_or_default();
        let remediations = all.iter().map(|one| remediation::read(one).counting_in(namespaces)).collect();
        self.remediations.seen = all.into_iter().map(|one| (uid(&one), one)).collect();
        let seen = &self.remediations.seen;
        self.remediations.tried.retain(|uid, _| seen.contains_key(uid));
        self.remediations.turns.retain(|uid| seen.contains_key(uid));
        self.remediations.stuck.retain(|uid, _| seen.contains_key(uid));
        self.remediations.written.retain(|uid, _| seen.contains_key(uid));
        self.remediations.holdless.retain(|uid, _| seen.contains_key(uid));
        self.decider.remediations(remediations);
    }

    /// The gateway's fence has come to another phase.
    pub(super) fn remediation_goes_on(&mut self, order: &FenceOrder, text: &str, node: Option<String>) {
        if let Some(remediation) = &order.remediation {
            let state = RemediationState::asked(Some(order.key.clone()), text);
            self.decider.stands(remediation, RemediationState { gateway_node: node, ..state });
        }
    }

    /// What was asked for has ended.
    pub(super) fn wish_ended(
        &mut self,
        order: &FenceOrder,
        ended: &OutcomeReport,
        noted: bool,
        node: Option<String>,
    ) {
        let Some(remediation) = &order.remediation else { return };
        let before = self.remediations.seen.get(&remediation.uid).map(|seen| remediation::read(seen));
        let key = match noted {
            true => Some(order.key.clone()),
            false => before.and_then(|remediation| self.decider.state(&remediation).key.clone()),
        };
        let said = (ended.proven, ended.reason, ended.text.as_str());
        let state = RemediationState::ended(key, &ended.end, order.then, said);
        self.decider.stands(remediation, RemediationState { gateway_node: node, ..state });
    }

    /// Each says in its status where it stands, and what is to be done about it is done.
    pub(super) fn serve_wishes(&mut self, mut tidings: Vec<RemediationUpdate>, now: Instant) {
        let still: BTreeSet<&String> = state(&tidings).map(|one| &one.id.uid).collect();
        self.remediations.stuck.retain(|uid, _| still.contains(uid));
        self.let_go_or_not(&tidings);
        for update in &mut tidings {
            let Some(seen) = self.remediations.seen.get(&update.id.uid).cloned() else { continue };
            self.serve(update, &seen, now);
            if let Some(told) = self.remediations.stuck.get(&update.id.uid) {
                update.conditions.iter_mut().for_each(|(.., text)| text.clone_from(&told.text));
            }
            let before = seen.status.clone().unwrap_or_default();
            self.write_wish(&seen, &update.id, remediation::status(update, &before), &before);
        }
        self.measure_wishes(&tidings);
        self.ask_about(&tidings, now);
    }

    pub(super) fn serve(&mut self, update: &RemediationUpdate, seen: &SeenRemediation, now: Instant) {
        if !matches!(update.action, RemediationAction::LetGo { .. }) {
            self.remediations.holdless.remove(&update.id.uid);
        }
        match update.action {
            RemediationAction::Nothing | RemediationAction::LetGo { .. } => {}
            // Whatever a gateway says of it, or does not say.
            RemediationAction::Page => {
                let is_hearsay = update.state.key.is_none();
                let why = if is_hearsay { retired::HEARSAY } else { retired::NOT_READY };
                self.says_stuck(&known(update, seen), why, true);
            }
            RemediationAction::Keep => {
                self.remediations.keep(&self.recorder, &update.id, FinalizerState::Stands, now)
            }
            RemediationAction::Free => {
                self.remediations.keep(&self.recorder, &update.id, FinalizerState::Not, now)
            }
        }
    }

    /// A gateway is asked about some of those that stand: whether the machine is retired, or to drop the hold.
    fn ask_about(&mut self, tidings: &[RemediationUpdate], now: Instant) {
        // What was sent may be let in still: that a machine is retired now says nothing of it.
        let asks = |one: &&RemediationUpdate| one.action != RemediationAction::Page || !self.is_asked(one);
        let every = |one: &RemediationUpdate| {
            if one.action == RemediationAction::Page { RETIRED_EVERY } else { WRITE_AGAIN }
        };
        let waiting = state(tidings).filter(asks).map(|one| (one.id.uid.clone(), every(one))).collect();
        let room = AT_ONCE.saturating_sub(self.remediations.hold_releases.len());
        let next = self.remediations.turns.next(&waiting, room, now);
        for update in tidings.iter().filter(|one| next.contains(&one.id.uid)) {
            let Some(seen) = self.remediations.seen.get(&update.id.uid).cloned() else { continue };
            let (requester, uid) = (self.requester.clone(), update.id.uid.clone());
            let none_since = self.remediations.holdless.get(&uid).copied();
            let (remediation, action) = (known(update, &seen), update.action);
            self.remediations.hold_releases.spawn(async move {
                let done = match action {
                    RemediationAction::LetGo { lives } => {
                        hold_release::release_hold(&requester, &remediation, lives, none_since).await
                    }
                    _ => retired::retired(&requester, &remediation).await,
                };
                (uid, done)
            });
        }
    }

    pub(super) fn let_go_or_not(&mut self, tidings: &[RemediationUpdate]) {
        while let Some(done) = self.remediations.hold_releases.try_join_next() {
            let Ok((uid, done)) = done else { continue };
            let update = tidings.iter().find(|one| one.id.uid == uid);
            if let Some(update) = update {
                self.answered(update, done);
            }
        }
    }

    fn answered(&mut self, update: &RemediationUpdate, done: Result<HoldReleaseResult, KeepReason>) {
        let uid = &update.id.uid;
        let stays = match done {
            Ok(HoldReleaseResult::Gone) => return,
            Ok(HoldReleaseResult::NoHold) => {
                self.remediations.holdless.entry(uid.clone()).or_insert_with(Instant::now);
                return;
            }
            Ok(HoldReleaseResult::NotRetired(node)) => {
                if let Some(node) = node {
                    self.decider.shown(&update.id, &node);
                }
                return;
            }
            Err(stays) => stays,
        };
        self.remediations.holdless.remove(uid);
        // Of one whose Node is not Ready it is told already.
        let is_back = matches!(update.action, RemediationAction::LetGo { .. });
        if !is_back {
            return;
        }
        let is_told = self.remediations.stuck.get(uid).is_some_and(|told| !told.is_paged);
        let why = match stays {
            KeepReason::Said(why) => why,
            // A gateway that answers now and then has nobody told in turns.
            KeepReason::Unknown(_) if is_told => return,
            KeepReason::Unknown(why) => why,
        };
        if let Some(seen) = self.remediations.seen.get(uid).cloned() {
            self.says_stuck(&known(update, &seen), &why, false);
        }
    }

    /// Whether the gateway is asked for it now.
    fn is_asked(&self, update: &RemediationUpdate) -> bool {
        let order = self.asking.get(&update.node).and_then(|(order, _)| order.remediation.as_ref());
        order.is_some_and(|remediation| remediation.uid == update.id.uid)
    }

    /// Told once, and for as long as it is so in the metrics.
    fn says_stuck(&mut self, remediation: &RemediationRequest, why: &str, is_paged: bool) {
        let text =
            stuck(remediation, retired::gateway_node(self.requester.settings.select, remediation), why);
        let before = self
            .remediations
            .stuck
            .insert(remediation.id.uid.clone(), StuckReason { text: text.clone(), is_paged });
        if before.is_some_and(|before| before.text == text) {
            return;
        }
        tracing::error!(node = remediation.node, text, "a remediation is deleted, and stays");
        if let Some(node) = self.decider.node(&remediation.node) {
            self.recorder.event(node, "RemediationStuck", &text);
        }
    }

    fn write_wish(
        &mut self,
        seen: &SeenRemediation,
        remediation: &RemediationId,
        status: Value,
        before: &Value,
    ) {
        let last = self.remediations.written.get(&remediation.uid);
        // A status that others have written beforehand would else keep it from being noted.
        let is_noted = RequestNote::of(&seen.metadata) == RequestNote::to_note(&seen.metadata, &status);
        if is_noted && is_known(&status, before, last.map(|(written, _)| written)) {
            return;
        }
        if last.is_some_and(|(same, at)| events::is_same(same, &status) && at.elapsed() < WRITE_AGAIN) {
            return;
        }
        // What found no place is told the next time.
        if self.recorder.status(remediation, &status) {
            self.remediations.written.insert(remediation.uid.clone(), (status, Instant::now()));
        }
    }

    fn measure_wishes(&mut self, tidings: &[RemediationUpdate]) {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for update in tidings {
            *counts.entry(remediation::word(update.state.progress)).or_default() += 1.0;
        }
        self.metrics.clear(&WISHES);
        for (word, count) in counts {
            self.metrics.set(&WISHES, &[word], count);
        }
        let stuck = u32::try_from(self.remediations.stuck.len()).unwrap_or(u32::MAX);
        self.metrics.set(&STUCK, &[], f64::from(stuck));
    }
}

/// Whether there is nothing to be written. A definition of before it had `gatewayNode` drops that: it is written once, and not again and again.
fn is_known(status: &Value, before: &Value, written: Option<&Value>) -> bool {
    let was_written =
        |key: &str| key == "gatewayNode" && written.is_some_and(|one| events::is_same(one, status));
    status
        .as_object()
        .is_some_and(|all| all.iter().all(|(key, value)| before[key] == *value || was_written(key)))
}

/// Those that are deleted, and stand for what hangs on them.
fn state(tidings: &[RemediationUpdate]) -> impl Iterator<Item = &RemediationUpdate> {
    tidings
        .iter()
        .filter(|one| matches!(one.action, RemediationAction::Page | RemediationAction::LetGo { .. }))
}

/// One as it was seen, with what is known of it since.
fn known(update: &RemediationUpdate, seen: &SeenRemediation) -> RemediationRequest {
    RemediationRequest { state: update.state.clone(), ..remediation::read(seen) }
}

/// What a person can do about one that is deleted and stands. `node`: as the gateway calls it.
fn stuck(remediation: &RemediationRequest, node: Option<String>, why: &str) -> String {
    let node = node.unwrap_or_else(|| "NODE".to_owned());
    let first = match why {
        retired::HEARSAY => {
            format!("a hold may stand, and the finalizer stays. `picket status {node}` says whether one does")
        }
        _ => "the hold stays, and the finalizer. Bring the Node back".to_owned(),
    };
    format!(
        "{}: {why}: {first}; where its hardware is gone for good, `picket retire {node} --reason TEXT` lets both go; or annotate the remediation with {}=true, and \
         drop the hold by hand",
        remediation.id,
        remediation::FREED
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_definition_drops_is_written_once() {
        let status = serde_json::json!({ "phase": "Fencing", "gatewayNode": "n1" });
        let (dropped, other) =
            (serde_json::json!({ "phase": "Fencing" }), serde_json::json!({ "phase": "Waiting" }));
        for (before, written, known) in [
            (&status, None, true),
            (&dropped, None, false),
            (&dropped, Some(&status), true),
            (&dropped, Some(&dropped), false),
            (&other, Some(&status), false),
        ] {
            assert_eq!(is_known(&status, before, written), known, "{before} {written:?}");
        }
    }

    #[test]
    fn one_that_stands_says_how_its_machine_is_retired() {
        let seen = serde_json::from_value(serde_json::json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "metadata": { "name": "n1", "namespace": "ns" }, "spec": {},
        }));
        let remediation = remediation::read(&seen.expect("a remediation"));
        let told = stuck(&remediation, Some("rack1-n1".to_owned()), retired::NOT_READY);
        assert!(
            told.starts_with("PicketRemediation ns/n1: it is deleted, and its Node is not Ready: "),
            "{told}"
        );
        assert!(
            told.contains("`picket retire rack1-n1 --reason") && told.contains("Bring the Node back"),
            "{told}"
        );
        assert!(told.contains("picket.dev/free-remediation=true"), "{told}");
    }
    use crate::event_recorder::ClusterWrite;

    /// K12: a finalizer that found no place is not forgotten for ten seconds while others come before it.
    #[tokio::test]
    async fn a_finalizer_that_found_no_place_is_due_still() {
        let (recorder, mut waiting) =
            EventRecorder::telling(&["a-ns".to_owned()], crate::measured::metrics());
        let remediation = |n: usize| {
            let (namespace, name) = ("a-ns".to_owned(), n.to_string());
            RemediationId { namespace, uid: name.clone(), name, health_check: None }
        };
        let (mut remediations, now) = (RemediationIndex::default(), Instant::now());
        let all = 0..100;
        all.clone().for_each(|n| remediations.keep(&recorder, &remediation(n), FinalizerState::Stands, now));
        let mut kept = remediations.tried.len();
        assert!(kept > 0 && kept < all.len(), "{kept}");
        // A place that is free is taken by one that has not had any.
        while kept < all.len() {
            assert!(matches!(waiting.next().await, Some((ClusterWrite::Keep(..), _))));
            all.clone()
                .for_each(|n| remediations.keep(&recorder, &remediation(n), FinalizerState::Stands, now));
            kept += 1;
            assert_eq!(remediations.tried.len(), kept);
        }
    }
}
