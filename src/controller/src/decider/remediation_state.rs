//! Where a remediation stands.

use super::Decider;
use super::episode::RequestOutcome;
use super::node::Node;
use super::note::{Note, Phase};
use super::policy::AfterFence;
use super::remediation_request::RemediationRequest;

/// What medik8s' remediators say.
pub(super) const STARTED: &str = "RemediationStarted";
pub(super) const FINISHED: &str = "RemediationFinishedSuccessfully";
/// What no other one says.
pub(super) const UNPROVEN: &str = "RemediationNotProven";

/// How far one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// The gateway is not asked, or has begun nothing.
    #[default]
    Waiting,
    /// The gateway was asked.
    Fencing,
    /// The machine is brought back.
    Returning,
    /// What came of it is not what was wanted.
    Failed,
    /// It was fulfilled.
    Succeeded,
    /// NodeHealthCheck's patience was over first.
    Interrupted,
}

/// Where one stands: what is told of it, and what is known of it after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemediationState {
    /// How far it is.
    pub progress: Progress,
    /// Under which key it was asked for, by its metadata; `None`: it never was.
    pub key: Option<String>,
    /// As a gateway has shown, of what was asked by that key, that it calls the node; `None`: none has.
    pub gateway_node: Option<String>,
    /// The fence of that key said that it is proven off, and that everything is released.
    pub proven: bool,
    /// One word.
    pub reason: String,
    /// In words.
    pub text: String,
}

/// What a status says of what its remediation has asked for, for where its metadata says nothing of it. Others may write that: it frees nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusClaim {
    /// A key of this remediation; `None`: there is none, or another one's.
    pub key: Option<String>,
    /// As the gateway calls the node.
    pub gateway_node: Option<String>,
}

impl RemediationState {
    /// The gateway is asked. `key`: as far as it is noted.
    pub fn asked(key: Option<String>, text: &str) -> Self {
        let (reason, text) = (STARTED.to_owned(), text.to_owned());
        Self { progress: Progress::Fencing, key, gateway_node: None, proven: false, reason, text }
    }

    /// What was asked for has come to that.
    pub fn ended(
        key: Option<String>,
        end: &RequestOutcome,
        then: AfterFence,
        (proven, reason, text): (bool, &str, &str),
    ) -> Self {
        let (progress, reason) = match end {
            RequestOutcome::Off if !proven => (Progress::Failed, UNPROVEN),
            RequestOutcome::Off if then == AfterFence::StayOff => (Progress::Succeeded, FINISHED),
            RequestOutcome::Off | RequestOutcome::Superseded => (Progress::Returning, STARTED),
            RequestOutcome::Recovered | RequestOutcome::Blocked(_) | RequestOutcome::Held => {
                (Progress::Waiting, reason)
            }
            RequestOutcome::Person | RequestOutcome::Refused => (Progress::Failed, reason),
        };
        Self { progress, key, gateway_node: None, proven, reason: reason.to_owned(), text: text.to_owned() }
    }
}

/// Whether its key is of this life of the Node's kernel.
pub(super) fn is_of_this_life(state: &RemediationState, node: &Node) -> bool {
    let own = format!("k8s/{}/{}/", node.uid, node.boot_id);
    state.key.as_ref().is_some_and(|key| key.starts_with(&own))
}

impl Decider {
    /// A version before noted a key in the status alone; or what was noted in the metadata is lost. It counts where the Node's own note names that
    /// remediation and that key, and the key that Node: who may write a status may write none of these. What came of it the gateway says once more.
    pub(super) fn take_over(&mut self) {
        let confirmed = |remediation: &RemediationRequest| {
            let key = remediation
                .status_claim
                .key
                .clone()
                .filter(|_| remediation.kept && self.state(remediation).key.is_none())?;
            let node =
                self.node(&remediation.node).filter(|node| key.starts_with(&format!("k8s/{}/", node.uid)))?;
            let note =
                Note::of(node).filter(|note| note.policy == remediation.id.to_string() && note.key == key)?;
            let progress = match note.phase {
                Phase::Returning => Progress::Returning,
                _ => Progress::Fencing,
            };
            let state = RemediationState { key: Some(key), progress, ..self.state(remediation).clone() };
            Some((remediation.id.uid.clone(), state))
        };
        let confirmed: Vec<_> = self.remediations.iter().filter_map(confirmed).collect();
        self.states.extend(confirmed);
    }
}
