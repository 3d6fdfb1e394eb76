//! What keeps a Node from being asked for: people's words, other tools' words, planned work.

use super::node::Node;
use super::observation::NodeObservation;

/// Why a Node is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// A label or an annotation says so, by this name.
    Said(&'static str),
    /// The FencingPolicy of that name excludes it, and no other one speaks for it (K12).
    Policy(String),
    /// It was cordoned before it failed (K10).
    Cordoned,
    /// A reboot of it is planned, by this lock (K10).
    Reboot(String),
}

/// Labels and annotations by which a Node is excluded, whatever their value is but `false`.
const WORDS: [&str; 5] = [
    "picket.dev/exclude",
    "picket.dev/paused",
    "remediation.medik8s.io/exclude-from-remediation",
    "cluster.x-k8s.io/paused",
    "cluster.x-k8s.io/skip-remediation",
];

/// Annotations that say that a reboot is under way, and the value that says so; `None`: any.
const LOCKS: [(&str, Option<&str>); 6] = [
    ("weave.works/kured-reboot-in-progress", None),
    ("kured.dev/kured-reboot-in-progress", None),
    ("machineconfiguration.openshift.io/state", Some("Working")),
    ("machineconfiguration.openshift.io/state", Some("Rebooting")),
    ("flatcar-linux-update.v1.flatcar-linux.net/reboot-in-progress", Some("true")),
    ("container-linux-update.v1.coreos.com/reboot-in-progress", Some("true")),
];

fn says(node: &Node, word: &str) -> bool {
    [&node.labels, &node.annotations].iter().any(|all| all.get(word).is_some_and(|value| value != "false"))
}

/// The word by which somebody excludes it.
pub(super) fn said(node: &Node) -> Option<&'static str> {
    WORDS.into_iter().find(|word| says(node, word))
}

/// Why it is left alone. `spares`: those that were cordoned before they failed, and those whose reboot is planned. `holder`: a lock
/// for reboots is this Node's.
pub(super) fn of(observation: &NodeObservation, spares: (bool, bool), holder: bool) -> Option<Exclusion> {
    let node = &observation.node;
    if let Some(word) = said(node) {
        return Some(Exclusion::Said(word));
    }
    if spares.0 && observation.cordoned_before {
        return Some(Exclusion::Cordoned);
    }
    if !spares.1 {
        return None;
    }
    if holder {
        return Some(Exclusion::Reboot("kured's lock".to_owned()));
    }
    let stands = |(word, value): &&(&str, Option<&str>)| {
        node.annotations.get(*word).is_some_and(|found| value.is_none_or(|value| found == value))
    };
    LOCKS.iter().find(stands).map(|(word, _)| Exclusion::Reboot((*word).to_owned()))
}

impl std::fmt::Display for Exclusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Said(word) => write!(f, "{word} is set on it"),
            Self::Policy(policy) => write!(f, "the FencingPolicy {policy} excludes it"),
            Self::Cordoned => f.write_str("it was cordoned before it failed: planned work"),
            Self::Reboot(lock) => write!(f, "a reboot of it is planned: {lock}"),
        }
    }
}
