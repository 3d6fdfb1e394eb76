//! Remediation requests: what NodeHealthCheck asks for a Node. A request is no lock (K12).
//!
//! # Invariants
//!
//! - A remediation has asked for nothing before its finalizer stands, nor without a key. Once it timed out,
//!   is deleted or is fulfilled it asks for nothing. Shown by
//!   `without_its_finalizer_deleted_or_timed_out_it_asks_for_nothing`.
//! - Its metadata says under which key it asked, for which Node, and what came of it. What its status alone
//!   says frees nothing. Shown by
//!   `what_nothing_but_a_status_says_keeps_the_finalizer_until_a_person_says_otherwise`.
//! - It succeeded only where the fence said that the Node was proven off and all was released. One that
//!   powers on waits until the Node is Ready in another life of its kernel. Shown by
//!   `one_that_stays_off_has_succeeded_when_that_is_proven_and_released_and_not_before`,
//!   `one_is_asked_for_at_once_and_succeeds_when_its_node_is_back`.
//! - The finalizer goes with the hold, and only while the Node is Ready, or by a person's word alone. Shown
//!   by `the_finalizer_goes_with_the_hold_once_the_node_is_ready_or_by_a_person_s_word`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Decider;
use super::episode::{Episode, Stage};
use super::node::{Moment, Node};
use super::policy::{AfterFence, Grade};
use super::remediation_state::{
    FINISHED, Progress, RemediationState, STARTED, StatusClaim, UNPROVEN, is_of_this_life,
};
use super::verdict::{SkipReason, Verdict};

/// Which remediation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemediationId {
    /// Where it stands.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Another one of that name has another.
    pub uid: String,
    /// The NodeHealthCheck that made it, where it says so.
    pub health_check: Option<String>,
}

impl fmt::Display for RemediationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PicketRemediation {}/{}", self.namespace, self.name)
    }
}

/// A remediation, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemediationRequest {
    /// Which.
    pub id: RemediationId,
    /// When it was made, in seconds since 1970 on the API server's clock; `None`: that is not known.
    pub created: Option<i64>,
    /// Of its spec.
    pub generation: i64,
    /// The Node's name: as it was asked for, or as it is to be.
    pub node: String,
    /// What comes after the fence.
    pub then: AfterFence,
    /// The least grade.
    pub grade: Grade,
    /// From the intent to the confirmation.
    pub deadline: Option<Duration>,
    /// NodeHealthCheck says that its time is over.
    pub timed_out: bool,
    /// It is deleted, and stands for its finalizers alone.
    pub deleted: bool,
    /// Our finalizer stands.
    pub kept: bool,
    /// A person says that the finalizer goes, whatever becomes of the hold.
    pub freed: bool,
    /// Why nothing is asked by it: a word, and in words.
    pub wrong: Option<(&'static str, String)>,
    /// What its metadata says of what it has asked for, and its status in words.
    pub state: RemediationState,
    /// What its status says of that.
    pub status_claim: StatusClaim,
}

impl RemediationRequest {
    /// Nothing is asked by one of a namespace that the settings do not name. What hangs on it from before goes as ever.
    #[must_use]
    pub fn counting_in(self, namespaces: &[String]) -> Self {
        if namespaces.contains(&self.id.namespace) {
            return self;
        }
        let text =
            "its namespace is none of controller.remediation_namespaces, so that nobody is fenced by it";
        Self { wrong: Some((ELSEWHERE, text.to_owned())), ..self }
    }
}

/// What is to be done about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemediationAction {
    /// Nothing.
    Nothing,
    /// Place the finalizer.
    Keep,
    /// Take the finalizer away: nothing hangs on it, or a person said so.
    Free,
    /// Drop the hold, then take the finalizer away.
    LetGo {
        /// Its kubelet is heard now.
        lives: bool,
    },
    /// It is deleted while its Node is not Ready, or while nothing but its status says what it has asked for: the hold stays, and a person is told.
    Page,
}

/// One condition: type, status, reason, words.
pub type RemediationCondition = (&'static str, &'static str, String, String);

/// What is told of one, and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemediationUpdate {
    /// Of which.
    pub id: RemediationId,
    /// Of which spec.
    pub generation: i64,
    /// Of which Node.
    pub node: String,
    /// Where it stands.
    pub state: RemediationState,
    /// `Processing` and `Succeeded`.
    pub conditions: [RemediationCondition; 2],
    /// What is to be done.
    pub action: RemediationAction,
}

/// So long nobody is told that a Node cannot be looked at: a look comes every two seconds.
const LOOKED_AT: Duration = Duration::from_secs(10);

/// What medik8s' remediators say.
const NO_NODE: &str = "RemediationFinishedNodeNotFound";
const INTERRUPTED: &str = "RemediationInterruptedByNHC";
/// What no other one says.
pub(crate) const MALFORMED: &str = "Malformed";
const ELSEWHERE: &str = "OtherNamespace";

impl Decider {
    /// The remediations, all of them. What is known of one here is younger than what it says itself.
    pub fn remediations(&mut self, mut remediations: Vec<RemediationRequest>) {
        remediations.sort_by(|a, b| a.id.cmp(&b.id));
        self.states.retain(|uid, state| {
            let Some(found) = remediations.iter().find(|remediation| remediation.id.uid == *uid) else {
                return false;
            };
            // The key is noted there before the gateway is asked.
            state.key = state.key.take().or_else(|| found.state.key.clone());
            if state.gateway_node.is_none() && state.key == found.state.key {
                state.gateway_node.clone_from(&found.state.gateway_node);
            }
            true
        });
        self.remediations = remediations;
    }

    /// What was asked for by that remediation has come so far.
    pub fn stands(&mut self, remediation: &RemediationId, mut state: RemediationState) {
        if let Some(known) = self.remediations.iter().find(|one| one.id.uid == remediation.uid) {
            // It is told once, and stays for that key: by another one another machine may be meant.
            let before = self.state(known);
            if state.gateway_node.is_none() && state.key == before.key {
                state.gateway_node.clone_from(&before.gateway_node);
            }
            self.states.insert(remediation.uid.clone(), state);
        }
    }

    /// A gateway has shown that it calls the node of that remediation so.
    pub fn shown(&mut self, remediation: &RemediationId, node: &str) {
        if let Some(known) = self.remediations.iter().find(|one| one.id.uid == remediation.uid) {
            let state = self.state(known).clone();
            let state = RemediationState { gateway_node: Some(node.to_owned()), ..state };
            self.states.insert(remediation.uid.clone(), state);
        }
    }

    pub(super) fn asks(&mut self, remediation: &RemediationId) {
        self.giving_way.remove(&remediation.uid);
        let known = self.remediations.iter().find(|one| one.id.uid == remediation.uid);
        let key = known.and_then(|known| self.state(known).key.clone());
        self.stands(remediation, RemediationState::asked(key, "the gateway is asked"));
    }

    /// Where a remediation stands.
    pub fn state<'a>(&'a self, remediation: &'a RemediationRequest) -> &'a RemediationState {
        self.states.get(&remediation.id.uid).unwrap_or(&remediation.state)
    }

    /// Those whose Node is back.
    pub(super) fn returned(&mut self) {
        let back = |remediation: &&RemediationRequest| {
            let (state, node) = (self.state(remediation), self.node(&remediation.node));
            // One that failed on its way back, and was proven off before, is a person's: who brings it back fulfils the request.
            let is_awaited = match state.progress {
                Progress::Returning => true,
                Progress::Failed => state.proven && remediation.wrong.is_none(),
                _ => false,
            };
            is_awaited && node.is_some_and(|node| node.is_ready() && !is_of_this_life(state, node))
        };
        let back: Vec<RemediationRequest> = self.remediations.iter().filter(back).cloned().collect();
        for remediation in back {
            let before = self.state(&remediation).clone();
            let (progress, reason, text) = match before.proven {
                true => (
                    Progress::Succeeded,
                    FINISHED,
                    "it was proven off, everything was released, and it is Ready again",
                ),
                false => (
                    Progress::Failed,
                    UNPROVEN,
                    "it is Ready again, and no fence has told that it was proven off before",
                ),
            };
            let state =
                RemediationState { progress, reason: reason.to_owned(), text: text.to_owned(), ..before };
            self.states.insert(remediation.id.uid.clone(), state);
        }
    }

    pub(super) fn tidings(
        &self,
        verdicts: &BTreeMap<String, Verdict>,
        now: Moment,
    ) -> Vec<RemediationUpdate> {
        self.remediations
            .iter()
            .map(|remediation| {
                let state = self.told(remediation, verdicts.get(&remediation.node), now);
                RemediationUpdate {
                    id: remediation.id.clone(),
                    generation: remediation.generation,
                    node: remediation.node.clone(),
                    conditions: conditions(&state),
                    state,
                    action: self.action(remediation, now),
                }
            })
            .collect()
    }

    /// Whether that Node is being fenced, kept off or brought back, whoever speaks: what it says of itself may be of before.
    fn is_worked_on(&self, node: &str) -> bool {
        self.episodes.get(node).is_some_and(Episode::is_fencing)
    }

    /// Whether its request is under way.
    fn is_asked(&self, remediation: &RemediationRequest) -> bool {
        let episode = self.episodes.get(&remediation.node).filter(|one| one.stage == Stage::Asking);
        episode.is_some_and(|one| one.remediation.as_ref() == Some(&remediation.id.uid))
    }

    /// Whether a look at that Node, which nobody had reason to look at before, may be about to come.
    fn is_looked_at(&self, node: &str, now: Moment) -> bool {
        self.unseen.get(node).is_some_and(|since| now.saturating_sub(*since) < LOOKED_AT)
    }

    /// What is told of it.
    fn told(
        &self,
        remediation: &RemediationRequest,
        verdict: Option<&Verdict>,
        now: Moment,
    ) -> RemediationState {
        let state = self.state(remediation).clone();
        let told = |progress, reason: &str, text: String| RemediationState {
            progress,
            reason: reason.to_owned(),
            text,
            ..state.clone()
        };
        if let Some((reason, text)) = &remediation.wrong {
            return told(Progress::Failed, reason, text.clone());
        }
        // One that was proven off and failed then has come to its end before any time was over.
        let is_settled = matches!(state.progress, Progress::Returning | Progress::Succeeded)
            || state.progress == Progress::Failed && state.proven;
        if is_settled || self.is_asked(remediation) {
            return state;
        }
        if remediation.timed_out {
            let text = match state.key {
                None => "NodeHealthCheck's time was over before anything was asked",
                Some(_) => {
                    "NodeHealthCheck's time is over: nothing more is asked; what was sent runs to its end at the gateway"
                }
            };
            return told(Progress::Interrupted, INTERRUPTED, text.to_owned());
        }
        if !self.nodes.contains_key(&remediation.node) {
            return told(Progress::Failed, NO_NODE, format!("there is no Node {}", remediation.node));
        }
        // What the last request came to is told until there is another one.
        if state.progress == Progress::Failed && ![NO_NODE, MALFORMED, ELSEWHERE].contains(&&*state.reason) {
            return state;
        }
        let why = match verdict {
            Some(Verdict::Leave(SkipReason::Healthy)) => {
                "the Node is Ready, or has told nothing yet: nothing is asked while that is so".to_owned()
            }
            Some(Verdict::Leave(SkipReason::NotLeading | SkipReason::Nobody(_))) | None => {
                "it is taken up".to_owned()
            }
            Some(Verdict::Leave(SkipReason::Unseen)) if self.is_looked_at(&remediation.node, now) => {
                "it is taken up: its Node is looked at".to_owned()
            }
            Some(Verdict::Leave(why)) => format!("nothing is asked yet: {why}"),
            Some(Verdict::Follow(Stage::Waiting(_))) if !state.text.is_empty() => return state,
            Some(Verdict::Follow(stage)) => {
                format!("another request for this Node is followed ({})", stage.word())
            }
            Some(Verdict::Fence(_)) => "the gateway is asked".to_owned(),
        };
        told(Progress::Waiting, STARTED, why)
    }

    fn action(&self, remediation: &RemediationRequest, now: Moment) -> RemediationAction {
        let node = self.node(&remediation.node);
        let may_ask = !remediation.timed_out && remediation.wrong.is_none();
        match remediation.deleted {
            false if !remediation.kept && may_ask && node.is_some() => RemediationAction::Keep,
            false => RemediationAction::Nothing,
            true if !remediation.kept => RemediationAction::Nothing,
            true if remediation.freed => RemediationAction::Free,
            true if self.state(remediation).key.is_none() && self.is_asked(remediation) => {
                RemediationAction::Nothing
            }
            true if self.state(remediation).key.is_none() => match remediation.status_claim.key {
                None => RemediationAction::Free,
                Some(_) => RemediationAction::Page,
            },
            // The gateway says soon that it recovered; or somebody else's fence of it takes a hold of ours meanwhile.
            true if node.is_some_and(Node::is_ready) => match self.is_worked_on(&remediation.node) {
                true => RemediationAction::Nothing,
                false => RemediationAction::LetGo {
                    lives: self.leases.heard_since(&remediation.node, now).is_some(),
                },
            },
            true => RemediationAction::Page,
        }
    }
}

/// `Processing` while something may still come of it; `Succeeded` as it is known.
fn conditions(state: &RemediationState) -> [RemediationCondition; 2] {
    let (processing, succeeded) = match state.progress {
        Progress::Waiting | Progress::Fencing | Progress::Returning => ("True", "Unknown"),
        Progress::Failed | Progress::Interrupted => ("False", "False"),
        Progress::Succeeded => ("False", "True"),
    };
    let reason = if state.reason.is_empty() { STARTED } else { &state.reason };
    let said = |kind, status| (kind, status, reason.to_owned(), state.text.clone());
    [said("Processing", processing), said("Succeeded", succeeded)]
}
