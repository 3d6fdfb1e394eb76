//! What bars a fence, in numbers and in words.

use std::fmt;
use std::time::Duration;

use crate::outcome::Reason;
use crate::time::written;

/// The kinds of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitKind {
    /// A pause.
    Pause,
    /// Too much of the fleet looks dead at once.
    Brake,
    /// The node was fenced too short a time ago.
    CoolDown,
    /// Fences at once.
    AtOnce,
    /// Fences in a window.
    PerWindow,
    /// Nodes that are not fenced.
    MinNotFenced,
    /// Members of the store.
    Quorum,
    /// Requests that wait.
    Queue,
}

impl LimitKind {
    /// A stable word, as the settings have it.
    pub fn label(self) -> &'static str {
        match self {
            LimitKind::Pause => "pause",
            LimitKind::Brake => "brake",
            LimitKind::CoolDown => "cool_down",
            LimitKind::AtOnce => "at_once",
            LimitKind::PerWindow => "per_window",
            LimitKind::MinNotFenced => "min_not_fenced",
            LimitKind::Quorum => "quorum",
            LimitKind::Queue => "queue",
        }
    }

    /// The reason that an outcome gives.
    pub fn reason(self) -> Reason {
        match self {
            LimitKind::Pause => Reason::Paused,
            LimitKind::Brake => Reason::Brake,
            LimitKind::CoolDown => Reason::CoolDown,
            LimitKind::Quorum => Reason::Quorum,
            LimitKind::AtOnce | LimitKind::PerWindow | LimitKind::MinNotFenced | LimitKind::Queue => {
                Reason::Budget
            }
        }
    }
}

/// Why a fence does not begin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Which limit.
    pub kind: LimitKind,
    /// Whose: `the fleet`, `group rack=r1`, `node n1`.
    pub whose: String,
    /// What the limit allows, or asks for at least.
    pub allowed: u32,
    /// What was found.
    pub found: u32,
    /// In words: the numbers, and what would help. No other node is named: who is told may not know of it.
    pub text: String,
    /// The nodes, or members of the store, that count, some by name, in words: for those who may know of all nodes. Empty: none does.
    pub names: String,
    /// When to ask again; `None`: nobody knows.
    pub retry_after: Option<Duration>,
}

impl Bar {
    /// The reason that an outcome gives.
    pub fn reason(&self) -> Reason {
        self.kind.reason()
    }

    /// In words, for somebody who may know of all nodes.
    pub fn named(&self) -> String {
        match self.names.as_str() {
            "" => self.detail(),
            names => format!("{} (it counts {names})", self.detail()),
        }
    }

    /// In words, with when to ask again.
    pub fn detail(&self) -> String {
        match self.retry_after {
            // Whole seconds, rounded up: asked again then, it is not too early.
            Some(time) => {
                let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
                format!("{}; ask again in {}", self.text, written(Duration::from_secs(seconds.max(1))))
            }
            None => self.text.clone(),
        }
    }
}

/// So many are named; of more, how many.
const NAMED: usize = 4;

/// Some of them by name, and how many more there are.
pub(super) fn names(of: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let mut of = of.into_iter();
    let named: Vec<String> = of.by_ref().take(NAMED).map(|one| one.to_string()).collect();
    match of.count() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blocked ({}): {}", self.reason().words(), self.detail())
    }
}
