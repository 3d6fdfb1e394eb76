//! The brake: when too much of the fleet looks dead at once, the observer is suspect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bar::{Bar, LimitKind, names};
use super::books::{Stand, Ticket};
use crate::ids::NodeId;
use crate::time::{BootTime, WallTime};

/// A complaint that was not repeated for so long is gone. Longer than any caller pauses between two requests, so that none finds a moment
/// at which his own complaints are forgotten.
pub(super) const STANDS: Duration = Duration::from_secs(3600);

/// Of so many holders it is known that they complain of one node: one of more is not taken back, and stands for its time.
const HOLDERS: usize = 16;

/// Somebody says that a node is dead.
#[derive(Clone, Debug)]
struct Complaint {
    /// When that was said last.
    at: BootTime,
    /// In whose names; an empty one is nobody's to take back.
    by: BTreeSet<String>,
}

/// The brake.
#[derive(Clone, Debug)]
pub(super) struct Brake {
    at: usize,
    complaints: BTreeMap<NodeId, Complaint>,
    /// Nodes of which a person said that they are dead. They count again once they were well.
    believed: BTreeSet<NodeId>,
    /// So many more were said to be dead in an earlier leadership, the last of them then. They stand for their time.
    unnamed: Option<(usize, BootTime)>,
}

/// What of the brake outlives a leadership. A caller that is stored without its name takes nothing back: that complaint stands for its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complaints {
    /// When each node was said last to be dead, and in whose names.
    pub complaints: BTreeMap<NodeId, (WallTime, BTreeSet<String>)>,
    /// Nodes of which a person said that they are dead.
    pub believed: BTreeSet<NodeId>,
    /// How many more nodes were said to be dead, of which there was no room to tell the names, and when the last of them was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<(usize, WallTime)>,
}

/// What is known of nodes beside complaints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fleet<'a> {
    pub(super) nodes: &'a BTreeSet<NodeId>,
    pub(super) waiting: &'a BTreeMap<Ticket, NodeId>,
    pub(super) stands: &'a BTreeMap<NodeId, Stand>,
    /// On which node each child was last seen to run.
    pub(super) runs_on: &'a BTreeMap<NodeId, NodeId>,
}

impl Brake {
    pub(super) fn new(at: usize) -> Self {
        Self { at, complaints: BTreeMap::new(), believed: BTreeSet::new(), unnamed: None }
    }

    /// What was complained of, and what a person said, stays so.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        self.complaints = before.complaints.clone();
        self.believed = before.believed.clone();
        self.unnamed = before.unnamed;
    }

    /// What outlives this leadership.
    pub(super) fn kept(&self, stamp: impl Fn(BootTime) -> WallTime) -> Complaints {
        let kept = |(node, one): (&NodeId, &Complaint)| (node.clone(), (stamp(one.at), one.by.clone()));
        Complaints {
            complaints: self.complaints.iter().map(kept).collect(),
            believed: self.believed.clone(),
            unnamed: self.unnamed.map(|(count, at)| (count, stamp(at))),
        }
    }

    /// The same, where that is too long to be stored: `most` nodes, in nobody's name, and how many more there are.
    pub(super) fn short(&self, most: usize, stamp: impl Fn(BootTime) -> WallTime) -> Complaints {
        let named = self.complaints.iter().take(most);
        let nobody = || BTreeSet::from([String::new()]);
        let left_out = self.complaints.iter().skip(most).filter(|(node, _)| !self.believed.contains(*node));
        let more = left_out.map(|(_, one)| (1, one.at)).chain(self.unnamed);
        let unnamed = more.reduce(|(count, last), (more, at)| (count + more, last.max(at)));
        Complaints {
            complaints: named.map(|(node, one)| (node.clone(), (stamp(one.at), nobody()))).collect(),
            believed: self.believed.iter().take(most).cloned().collect(),
            unnamed: unnamed.map(|(count, at)| (count, stamp(at))),
        }
    }

    /// Goes on from what an earlier leadership kept.
    pub(super) fn take_up(&mut self, kept: Complaints, when: impl Fn(WallTime) -> BootTime) {
        for (node, (stamp, by)) in kept.complaints {
            let at = when(stamp);
            let complaint =
                self.complaints.entry(node).or_insert_with(|| Complaint { at, by: BTreeSet::new() });
            complaint.at = complaint.at.max(at);
            complaint.by.extend(by);
        }
        self.believed.extend(kept.believed);
        self.unnamed = kept.unnamed.map(|(count, stamp)| (count, when(stamp))).or(self.unnamed);
    }

    /// Somebody says that the node is dead.
    pub(super) fn complain(&mut self, node: &NodeId, holder: &str, fleet: Fleet<'_>, at: BootTime) {
        if self.complaints.get(node).is_some_and(|complaint| at.since(complaint.at) >= STANDS) {
            self.complaints.remove(node);
        }
        // What a person said was of a failure of which nothing is left.
        if self.believed.contains(node) && !self.complained(fleet, at).any(|one| one == node) {
            self.believed.remove(node);
        }
        let new = || Complaint { at, by: BTreeSet::new() };
        let complaint = self.complaints.entry(node.clone()).or_insert_with(new);
        complaint.at = at.max(complaint.at);
        let holder = if complaint.by.len() < HOLDERS { holder } else { "" };
        complaint.by.insert(holder.to_owned());
    }

    /// That holder takes back what it said of the node.
    pub(super) fn takes_back(&mut self, node: &NodeId, holder: &str) {
        if let Some(complaint) = self.complaints.get_mut(node) {
            complaint.by.remove(holder);
            if complaint.by.is_empty() {
                self.complaints.remove(node);
            }
        }
    }

    /// The node came back from its fence.
    pub(super) fn is_well(&mut self, node: &NodeId) {
        self.complaints.remove(node);
        self.believed.remove(node);
    }

    /// Forgets what is gone.
    pub(super) fn look(&mut self, fleet: Fleet<'_>, now: BootTime) {
        self.complaints.retain(|_, complaint| now.since(complaint.at) < STANDS);
        self.unnamed = self.unnamed.filter(|(_, at)| now.since(*at) < STANDS);
        if !self.believed.is_empty() {
            let counted: BTreeSet<NodeId> = self.complained(fleet, now).cloned().collect();
            self.believed.retain(|node| counted.contains(node));
        }
    }

    /// All nodes that are said to be dead, wait, or are kept off; a node may come twice.
    fn complained<'a>(&'a self, fleet: Fleet<'a>, now: BootTime) -> impl Iterator<Item = &'a NodeId> {
        let stands = self.complaints.iter().filter(move |(_, complaint)| now.since(complaint.at) < STANDS);
        let kept_off = fleet.stands.iter().filter(|(_, stand)| !stand.is_retired);
        let all =
            stands.map(|(node, _)| node).chain(fleet.waiting.values()).chain(kept_off.map(|(node, _)| node));
        all.filter(move |node| fleet.nodes.contains(*node))
    }

    /// The nodes that count. What runs on one of them fell with it, and is no failure of its own (S22).
    fn counted<'a>(
        &'a self,
        besides: Option<&'a NodeId>,
        fleet: Fleet<'a>,
        now: BootTime,
    ) -> BTreeSet<&'a NodeId> {
        let most = self.complaints.len() + fleet.waiting.len() + fleet.stands.len() + 1 + self.unnamed(now);
        if most < self.at {
            return BTreeSet::new();
        }
        let counts = |node: &&NodeId| !self.believed.contains(*node);
        let all: BTreeSet<_> = self.complained(fleet, now).chain(besides).filter(counts).collect();
        let fell = |node: &NodeId| fleet.runs_on.get(node).is_some_and(|on| on != node && all.contains(on));
        all.iter().copied().filter(|node| !fell(node)).collect()
    }

    /// How many more there are than are named.
    fn unnamed(&self, now: BootTime) -> usize {
        self.unnamed.filter(|(_, at)| now.since(*at) < STANDS).map_or(0, |(count, _)| count)
    }

    /// How many count, of whom those are named. One that is said to be dead again counts twice: rather that than once too few.
    fn found(&self, named: &BTreeSet<&NodeId>, fleet: Fleet<'_>, now: BootTime) -> usize {
        match self.unnamed(now) {
            0 => named.len(),
            more => (named.len() + more).min(fleet.nodes.len()),
        }
    }

    /// A person says that what looks dead is dead. False: the brake did not hold.
    pub(super) fn let_go(&mut self, fleet: Fleet<'_>, now: BootTime) -> bool {
        self.look(fleet, now);
        let held = self.found(&self.counted(None, fleet, now), fleet, now) >= self.at;
        if held {
            self.believed = self.complained(fleet, now).cloned().collect();
            self.unnamed = None;
        }
        held
    }

    /// Why no fence of that node may begin; without a node, whether it holds at all. When it will let go is nobody's to know: who is told
    /// would only wait for it.
    pub(super) fn bar(&self, node: Option<&NodeId>, fleet: Fleet<'_>, now: BootTime) -> Option<Bar> {
        let counted = self.counted(node, fleet, now);
        let found = self.found(&counted, fleet, now);
        if found < self.at {
            return None;
        }
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Some(Bar {
            kind: LimitKind::Brake,
            whose: "the fleet".to_owned(),
            allowed: number(self.at - 1),
            found: number(found),
            text: format!(
                "{found} of {} nodes look dead or are kept off, and from {} on whoever says so is suspect: look at what asks; if they are \
                 dead, end the brake (picket resume --everything), or set the budget aside by name",
                fleet.nodes.len(),
                self.at
            ),
            names: names(counted),
            retry_after: None,
        })
    }
}
