//! Where a remediation stands.

use super::episode::End;
use super::node::Node;
use super::policy::Then;

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
    /// Its wish came true.
    Succeeded,
    /// NodeHealthCheck's patience was over first.
    Interrupted,
}

/// Where one stands: what is told of it, and what is known of it after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How far it is.
    pub progress: Progress,
    /// Under which key it was asked for, by its metadata; `None`: it never was.
    pub key: Option<String>,
    /// As the gateway calls the node that it fences; `None`: it has not said. It is read from a status, which others may write.
    pub gateway_node: Option<String>,
    /// The fence of that key said that it is proven off, and that everything is released.
    pub proven: bool,
    /// One word.
    pub reason: String,
    /// In words.
    pub text: String,
}

impl Standing {
    /// The gateway is asked. `key`: as far as it is noted.
    pub fn asked(key: Option<String>, text: &str) -> Self {
        let (reason, text) = (STARTED.to_owned(), text.to_owned());
        Self { progress: Progress::Fencing, key, gateway_node: None, proven: false, reason, text }
    }

    /// What was asked for has come to that.
    pub fn ended(
        key: Option<String>,
        end: &End,
        then: Then,
        (proven, reason, text): (bool, &str, &str),
    ) -> Self {
        let (progress, reason) = match end {
            End::Off if !proven => (Progress::Failed, UNPROVEN),
            End::Off if then == Then::StayOff => (Progress::Succeeded, FINISHED),
            End::Off | End::Superseded => (Progress::Returning, STARTED),
            End::Recovered | End::Blocked(_) | End::Held => (Progress::Waiting, reason),
            End::Person | End::Refused => (Progress::Failed, reason),
        };
        Self { progress, key, gateway_node: None, proven, reason: reason.to_owned(), text: text.to_owned() }
    }
}

/// Whether its key is of this life of the Node's kernel.
pub(super) fn is_of_this_life(standing: &Standing, node: &Node) -> bool {
    let own = format!("k8s/{}/{}/", node.uid, node.boot_id);
    standing.key.as_ref().is_some_and(|key| key.starts_with(&own))
}
