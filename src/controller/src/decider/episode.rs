//! One failure of one Node, from the request until it is back.

use std::time::Duration;

use super::node::{Moment, Node};
use super::node_return::ReturnDeadline;
use super::policy::{AfterFence, Grade, Policy};
use super::remediation_request::RemediationId;

/// From the unfence until Ready, at the longest (K10).
pub const BACK_WITHIN: Duration = Duration::from_secs(15 * 60);
/// What was blocked is asked again after so long; each time twice that...
pub(super) const AGAIN: Duration = Duration::from_secs(15);
/// ... up to this.
pub(super) const AGAIN_AT_MOST: Duration = Duration::from_secs(5 * 60);

/// What is asked of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceOrder {
    /// The Node, as it was seen.
    pub node: Node,
    /// The same for the same failure, whoever asks, and however often.
    pub key: String,
    /// Why. The key is bound to it: nothing in it changes within one failure.
    pub reason: String,
    /// Whose doing it is, in words.
    pub policy: String,
    /// The remediation by which it is asked for; `None`: it is a policy's.
    pub remediation: Option<RemediationId>,
    /// What comes after.
    pub then: AfterFence,
    /// The least grade.
    pub grade: Grade,
    /// From the intent to the confirmation.
    pub deadline: Option<Duration>,
    /// Conditions, with their status, any of which is its failure.
    pub unhealthy: Vec<(String, String)>,
}

impl FenceOrder {
    /// Whether it is still that Node, in that life of its kernel, and is unhealthy, and nobody excludes it.
    pub fn holds(&self, now: &Node) -> bool {
        let is_so = |(kind, status): &(String, String)| {
            now.conditions.get(kind).is_some_and(|condition| condition.status == *status)
        };
        (&now.uid, &now.boot_id) == (&self.node.uid, &self.node.boot_id)
            && self.unhealthy.iter().any(is_so)
            && super::exclusion::said(now).is_none()
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It is proven off, and everything is released that was waited for.
    Off,
    /// It was alive after all; nothing was sent, or a person said so.
    Recovered,
    /// The fence of that key has ended before, and the node is on its way back, or is back.
    Superseded,
    /// Nothing was sent: a limit, a pause. Asked again after a while: once so much has passed, where that is less than five minutes.
    Blocked(Option<Duration>),
    /// Somebody else works on that Node (its medik8s lease). Looked at again soon.
    Held,
    /// A person must decide, or the hardware is gone: nothing is asked again.
    Person,
    /// The gateway refused the request itself. Asked again, rarely.
    Refused,
}

/// Where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The gateway was asked, and its answer is awaited.
    Asking,
    /// Not asked again before then.
    Waiting(Moment),
    /// It is off, and stays so until a person brings it back.
    Kept,
    /// It is brought back.
    Returning(ReturnDeadline),
    /// It was to be brought back, and the gateway says that it does not come by itself: a person was told.
    NotBack,
    /// A person was told.
    Person,
}

impl Stage {
    /// Whether its Node is to come back.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self, Self::Returning(_) | Self::NotBack)
    }

    /// In a word, for people.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Asking => "asked",
            Self::Waiting(_) => "waiting",
            Self::Kept => "kept off",
            Self::Returning(_) => "returning",
            Self::NotBack => "not back",
            Self::Person => "needs operator",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Episode {
    pub(super) key: String,
    pub(super) policy: String,
    /// The UID of the remediation by which it was asked for.
    pub(super) remediation: Option<String>,
    boot_id: String,
    pub(super) then: AfterFence,
    pub(super) stage: Stage,
    times: u32,
    /// How often it did not come back in time: each is a failure of its own.
    pub(super) round: u32,
}

impl Episode {
    pub(super) fn new(order: &FenceOrder, round: u32) -> Self {
        Self {
            key: order.key.clone(),
            policy: order.policy.clone(),
            remediation: order.remediation.as_ref().map(|remediation| remediation.uid.clone()),
            boot_id: order.node.boot_id.clone(),
            then: order.then,
            stage: Stage::Asking,
            times: 0,
            round,
        }
    }

    /// It was fenced by an earlier life of the controller, and has booted since.
    pub(super) fn returning(order: &FenceOrder, now: Moment) -> Self {
        Self { stage: Stage::Returning(ReturnDeadline::from(now)), ..Self::new(order, 0) }
    }

    /// It is asked for again.
    pub(super) fn again(&mut self, order: &FenceOrder) {
        self.policy.clone_from(&order.policy);
        self.remediation = order.remediation.as_ref().map(|remediation| remediation.uid.clone());
        self.then = order.then;
        self.stage = Stage::Asking;
    }

    /// What was asked has come to an end; the episode too, if false.
    pub(super) fn ended(&mut self, end: &RequestOutcome, now: Moment) -> bool {
        self.stage = match end {
            RequestOutcome::Off if self.then == AfterFence::StayOff => Stage::Kept,
            RequestOutcome::Off | RequestOutcome::Superseded => Stage::Returning(ReturnDeadline::from(now)),
            RequestOutcome::Recovered => return false,
            RequestOutcome::Held => Stage::Waiting(now + AGAIN),
            RequestOutcome::Person => Stage::Person,
            RequestOutcome::Blocked(_) | RequestOutcome::Refused => {
                let least =
                    if let RequestOutcome::Blocked(Some(least)) = end { *least } else { Duration::ZERO };
                let pause = AGAIN * 2_u32.saturating_pow(self.times.min(8));
                let pause =
                    if matches!(end, RequestOutcome::Refused) { AGAIN_AT_MOST } else { pause.max(least) };
                self.times = self.times.saturating_add(1);
                // What the gateway said is true then: a person may end a pause, or set a limit wider, the next minute.
                Stage::Waiting(now + pause.min(AGAIN_AT_MOST))
            }
        };
        true
    }

    /// The Node was seen, and is not healthy yet. False: it booted since, and what was waited for was another failure.
    pub(super) fn seen(&mut self, node: &Node, now: Moment) -> bool {
        if node.boot_id == self.boot_id {
            return true;
        }
        self.boot_id.clone_from(&node.boot_id);
        self.round = 0;
        match self.stage {
            Stage::Waiting(_) => return false,
            // Somebody brought it back.
            Stage::Kept | Stage::Person | Stage::NotBack => {
                self.stage = Stage::Returning(ReturnDeadline::from(now))
            }
            Stage::Asking | Stage::Returning(_) => {}
        }
        true
    }

    /// Its next round, if it is not back in time; a boot since then is a failure of its own.
    pub(super) fn next_round(&self) -> u32 {
        if self.key.contains(&self.boot_id) { self.round + 1 } else { 0 }
    }

    /// Whether its machine is, or may be, switched off for it.
    pub(super) fn is_fencing(&self) -> bool {
        !matches!(self.stage, Stage::Waiting(_))
    }
}

/// The key of a failure: the Node, the life of its kernel, and the turn of its condition. A round is one more fence of the same failure; of the last
/// number the next one is the same.
pub(super) fn key(node: &Node, turned: &str, round: u32) -> String {
    let base = format!("k8s/{}/{}/{turned}", node.uid, node.boot_id);
    if round == 0 { base } else { format!("{base}/{}", round.saturating_add(1)) }
}

/// What an earlier life of the controller has noted on the Node, if it is of this life of its kernel.
pub(super) fn noted(node: &Node, policy: &Policy) -> Option<(String, u32)> {
    let note = super::note::Note::of(node).filter(super::note::Note::is_open)?;
    // Under another policy other things are asked for, and the key is bound to what was.
    if note.policy == policy.name { taken_up(node, &note.key) } else { None }
}

/// A key that was used, if it is of this life of the Node's kernel, and its round.
pub(super) fn taken_up(node: &Node, key: &str) -> Option<(String, u32)> {
    let own = format!("k8s/{}/{}/", node.uid, node.boot_id);
    let rest = key.strip_prefix(&own)?;
    let round =
        rest.split_once('/').map_or(Some(0), |(_, round)| round.parse::<u32>().ok()?.checked_sub(1))?;
    Some((key.to_owned(), round))
}
