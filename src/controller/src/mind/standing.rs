//! Where a remediation stands.

use super::Mind;
use super::episode::End;
use super::node::Node;
use super::note::{Note, Phase};
use super::policy::Then;
use super::wish::Wish;

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
pub struct Hearsay {
    /// A key of this remediation; `None`: there is none, or another one's.
    pub key: Option<String>,
    /// As the gateway calls the node.
    pub gateway_node: Option<String>,
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

impl Mind {
    /// A version before noted a key in the status alone; or what was noted in the metadata is lost. It counts where the Node's own note names that
    /// remediation and that key, and the key that Node: who may write a status may write none of these. What came of it the gateway says once more.
    pub(super) fn take_over(&mut self) {
        let confirmed = |wish: &Wish| {
            let key = wish.hearsay.key.clone().filter(|_| wish.kept && self.standing(wish).key.is_none())?;
            let node = self.node(&wish.node).filter(|node| key.starts_with(&format!("k8s/{}/", node.uid)))?;
            let note = Note::of(node).filter(|note| note.policy == wish.id.to_string() && note.key == key)?;
            let progress = match note.phase {
                Phase::Returning => Progress::Returning,
                _ => Progress::Fencing,
            };
            let standing = Standing { key: Some(key), progress, ..self.standing(wish).clone() };
            Some((wish.id.uid.clone(), standing))
        };
        let confirmed: Vec<_> = self.wishes.iter().filter_map(confirmed).collect();
        self.standings.extend(confirmed);
    }
}
