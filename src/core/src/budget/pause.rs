//! Pauses: no new fence starts, everywhere, in a group, or of a node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bar::{Bar, LimitKind};
use crate::ids::NodeId;
use crate::time::{BootTime, WallTime};

/// The longest that a pause may last.
pub const LONGEST: Duration = Duration::from_secs(30 * 86_400);
/// The shortest.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// What a pause covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseScope {
    /// All nodes.
    Everything,
    /// The nodes of a group.
    Group(String),
    /// One node.
    Node(NodeId),
}

impl fmt::Display for PauseScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PauseScope::Everything => f.write_str("everything"),
            PauseScope::Group(name) => write!(f, "group {name}"),
            PauseScope::Node(name) => write!(f, "node {name}"),
        }
    }
}

/// A pause, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// What it covers.
    pub scope: PauseScope,
    /// Why.
    pub reason: String,
    /// Who paused.
    pub by: String,
    /// Since when.
    pub since: WallTime,
    /// When it ends by itself.
    pub expires_at: WallTime,
}

impl Pause {
    /// What is left of it, for a process that reads it now: never longer than it was to last, whatever the clock did.
    pub fn left(&self, now: WallTime) -> Duration {
        let millis = |from: WallTime, to: WallTime| to.millis().saturating_sub(from.millis());
        let lasts = millis(self.since, self.expires_at);
        Duration::from_millis(millis(now, self.expires_at).min(lasts)).min(LONGEST)
    }
}

/// The pauses that stand, each until a moment of our own clock.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    list: BTreeMap<PauseScope, (Pause, BootTime)>,
}

impl Pauses {
    /// A pause takes the place of the one of the same scope.
    pub fn put(&mut self, pause: Pause, until: BootTime) {
        self.list.insert(pause.scope.clone(), (pause, until));
    }

    /// Ends one. False: there was none.
    pub fn end(&mut self, scope: &PauseScope, now: BootTime) -> bool {
        self.list.remove(scope).is_some_and(|(_, until)| until > now)
    }

    /// Those that stand.
    pub fn standing(&self, now: BootTime) -> impl Iterator<Item = &Pause> {
        self.list.values().filter(move |(_, until)| *until > now).map(|(pause, _)| pause)
    }

    /// Those that have ended by themselves, which from now on are forgotten.
    pub fn take_ended(&mut self, now: BootTime) -> Vec<PauseScope> {
        let ended: Vec<PauseScope> = self
            .list
            .iter()
            .filter(|(_, (_, until))| *until <= now)
            .map(|(scope, _)| scope.clone())
            .collect();
        for scope in &ended {
            self.list.remove(scope);
        }
        ended
    }

    /// Those that cover a node which is in these groups.
    pub fn covering<'a>(
        &'a self,
        node: &'a NodeId,
        groups: &'a BTreeSet<String>,
        now: BootTime,
    ) -> impl Iterator<Item = &'a Pause> {
        self.standing(now).filter(move |pause| match &pause.scope {
            PauseScope::Everything => true,
            PauseScope::Group(name) => groups.contains(name),
            PauseScope::Node(name) => name == node,
        })
    }

    /// Why no fence of that node starts: of several pauses the one that lasts longest.
    pub fn bar(&self, node: &NodeId, groups: &BTreeSet<String>, now: BootTime) -> Option<Bar> {
        let until = |pause: &&Pause| self.list.get(&pause.scope).map(|(_, until)| *until);
        let pause = self.covering(node, groups, now).max_by_key(until)?;
        let left = until(&pause).map(|until| until.since(now));
        Some(Bar {
            kind: LimitKind::Pause,
            whose: pause.scope.to_string(),
            allowed: 0,
            found: 1,
            text: format!(
                "{} is paused by {} until {}: {}",
                pause.scope, pause.by, pause.expires_at, pause.reason
            ),
            names: String::new(),
            retry_after: left,
        })
    }
}
