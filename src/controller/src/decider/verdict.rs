//! What is to be done about a Node, and why not.

use std::fmt;
use std::time::Duration;

use super::brake::{ActiveBrake, BrakeScope, BrakeSign};
use super::episode::{FenceOrder, Stage};
use super::exclusion::Exclusion;
use super::node::Moment;
use super::policy::PolicyFault;
use super::policy_assignment::NoPolicy;
use super::remediation_request::RemediationUpdate;

/// What is to be done about a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ask the gateway. Said once; from then on it is followed.
    Fence(Box<FenceOrder>),
    /// It was asked for, and stands there.
    Follow(Stage),
    /// Nothing.
    Leave(SkipReason),
}

/// Why nothing is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// It is healthy.
    Healthy,
    /// No policy acts for it.
    Nobody(NoPolicy),
    /// Its policy is paused.
    Paused(String),
    /// Somebody, or planned work, excludes it.
    Excluded(Exclusion),
    /// It was not looked at just now.
    Unseen,
    /// It is not unhealthy for long enough.
    Watching {
        /// How long it was seen to be.
        lasted: Duration,
        /// How long it must be.
        least: Duration,
    },
    /// It is unhealthy by silence alone, and its kubelet is heard again: it is given until then to say more.
    Heard(Moment),
    /// It turned healthy a short while ago: left alone until then.
    Quiet(Moment),
    /// Too much is silent, or unhealthy, at once.
    Braked(ActiveBrake),
    /// Another Node claims the same identity, by which the gateway would be told which machine is meant (K1).
    Claimed {
        /// Which identity.
        what: &'static str,
        /// The other Node.
        other: String,
    },
    /// It is of the control plane, and no policy acts for it: a remediation reaches such a Node by its name alone (K11, K12).
    Unnamed,
    /// Another Node of the control plane is not Ready, or is being fenced (K11).
    ControlPlane(String),
    /// Another replica leads.
    NotLeading,
}

/// Everything that was found at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// By a Node's name.
    pub verdicts: std::collections::BTreeMap<String, Verdict>,
    /// By the policy's name.
    pub reports: Vec<PolicyReport>,
    /// By remediation.
    pub tidings: Vec<RemediationUpdate>,
    /// Where nothing is fenced, since too much is silent or unhealthy at once.
    pub braked: Vec<ActiveBrake>,
}

/// What a policy's status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyReport {
    /// Its name.
    pub policy: String,
    /// Of which spec.
    pub generation: i64,
    /// For so many Nodes it speaks.
    pub selected: usize,
    /// So many of them are unhealthy.
    pub unhealthy: usize,
    /// So many of them are fenced, or are being fenced.
    pub fencing: usize,
    /// What is wrong with it.
    pub faults: Vec<PolicyFault>,
    /// Why it asks for nothing at the moment although it is right; empty: it does.
    pub holding: Option<PolicyFault>,
}

impl SkipReason {
    /// What its policy's status says of it, where it is so of more than one Node, or of whoever looks.
    pub(super) fn holds(&self, node: &str) -> Option<PolicyFault> {
        match self {
            Self::Braked(_) => Some(PolicyFault { reason: "Braked", message: self.to_string() }),
            Self::Claimed { .. } => {
                Some(PolicyFault { reason: "ClaimedIdentity", message: format!("{node}: {self}") })
            }
            Self::ControlPlane(_) => {
                Some(PolicyFault { reason: "OneAtATime", message: format!("{node}: {self}") })
            }
            _ => None,
        }
    }
}

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unselected => f.write_str("no FencingPolicy selects it"),
            Self::Excluded(policy) => write!(f, "the FencingPolicy {policy} excludes it"),
            Self::Several(policies) => {
                write!(f, "several FencingPolicies act for it: {}", policies.join(", "))
            }
            Self::ControlPlane(policy) => {
                write!(f, "it is of the control plane, and {policy} does not name it in controlPlaneNodes")
            }
            Self::Everything(policy) => {
                write!(
                    f,
                    "the nodeSelector of {policy} wants no label that some Nodes lack, without everyNode: true"
                )
            }
            Self::HealthyCondition(policy) => {
                write!(f, "the unhealthyConditions of {policy} are those of a healthy Node")
            }
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healthy => f.write_str("it is healthy"),
            Self::Nobody(why) => why.fmt(f),
            Self::Paused(policy) => write!(f, "the FencingPolicy {policy} is paused"),
            Self::Excluded(why) => why.fmt(f),
            Self::Heard(_) => f.write_str("its kubelet's lease advances again: it is about to say how it is"),
            Self::Unseen => f.write_str(
                "it was not looked at just now: the API server does not answer, or there are too many",
            ),
            Self::Watching { lasted, least } => {
                write!(f, "it is unhealthy for {} s of {} s", lasted.as_secs(), least.as_secs())
            }
            Self::Quiet(_) => f.write_str("it was healthy a short while ago: its quiet time is not over"),
            Self::Braked(braked) => braked.fmt(f),
            Self::Claimed { what, other } => write!(
                f,
                "the Node {other} claims the same {what}, by which the settings name Nodes to the gateway (gateway.select): which of them is the \
                 machine nobody knows"
            ),
            Self::Unnamed => f.write_str(
                "it is of the control plane, and no FencingPolicy acts for it: name it in the controlPlaneNodes of one",
            ),
            Self::ControlPlane(other) => {
                write!(
                    f,
                    "{other}, also of the control plane, is not Ready or is being fenced: one at a time. Where it is not to come back, see that it is no \
                     member of etcd any more, then delete its Node"
                )
            }
            Self::NotLeading => f.write_str("another replica leads"),
        }
    }
}

impl fmt::Display for ActiveBrake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, sign, found, of } = self;
        let place = match place {
            BrakeScope::Cluster => "the cluster".to_owned(),
            BrakeScope::Zone(zone) if zone.is_empty() => "the Nodes without a zone".to_owned(),
            BrakeScope::Zone(zone) => format!("zone {zone}"),
            BrakeScope::Policy(policy) => format!("the FencingPolicy {policy}"),
        };
        match sign {
            BrakeSign::Leases => write!(f, "the leases of {found} of {of} Nodes do not advance")?,
            BrakeSign::Conditions => write!(f, "{found} of {of} Nodes are unhealthy or being fenced")?,
        }
        write!(f, " ({place}): the observer is suspect")
    }
}
