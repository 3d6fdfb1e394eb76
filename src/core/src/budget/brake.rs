//! The brake: when too much of the fleet looks dead at once, the observer is suspect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bar::{Bar, LimitKind};
use super::books::{Stand, Ticket};
use crate::ids::NodeId;
use crate::time::BootTime;

/// A complaint that was not repeated for so long is gone. Longer than any caller pauses between two requests, so that none finds a moment
/// at which his own complaints are forgotten.
pub(super) const STANDS: Duration = Duration::from_secs(3600);

/// The brake.
#[derive(Clone, Debug)]
pub(super) struct Brake {
    at: usize,
    /// Nodes of which somebody says that they are dead, and when that was said last.
    complaints: BTreeMap<NodeId, BootTime>,
    /// Nodes of which a person said that they are dead. They count again once they were well.
    believed: BTreeSet<NodeId>,
}

/// What is known of nodes beside complaints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fleet<'a> {
    pub(super) nodes: &'a BTreeSet<NodeId>,
    pub(super) waiting: &'a BTreeMap<Ticket, NodeId>,
    pub(super) stands: &'a BTreeMap<NodeId, Stand>,
}

impl Brake {
    pub(super) fn new(at: usize) -> Self {
        Self { at, complaints: BTreeMap::new(), believed: BTreeSet::new() }
    }

    /// What was complained of, and what a person said, stays so.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        self.complaints = before.complaints.clone();
        self.believed = before.believed.clone();
    }

    /// Somebody says that the node is dead.
    pub(super) fn complain(&mut self, node: &NodeId, at: BootTime) {
        let newest = self.complaints.entry(node.clone()).or_insert(at);
        *newest = at.max(*newest);
    }

    /// The complaint is gone: it was taken back, or the node came back from its fence.
    pub(super) fn is_well(&mut self, node: &NodeId) {
        self.complaints.remove(node);
    }

    /// Forgets what is gone.
    pub(super) fn look(&mut self, fleet: Fleet<'_>, now: BootTime) {
        self.complaints.retain(|_, at| now.since(*at) < STANDS);
        if !self.believed.is_empty() {
            let counted: BTreeSet<NodeId> = self.complained(fleet, now).cloned().collect();
            self.believed.retain(|node| counted.contains(node));
        }
    }

    /// All nodes that are said to be dead, wait, or are kept off; a node may come twice.
    fn complained<'a>(&'a self, fleet: Fleet<'a>, now: BootTime) -> impl Iterator<Item = &'a NodeId> {
        let stands = self.complaints.iter().filter(move |(_, at)| now.since(**at) < STANDS);
        let kept_off = fleet.stands.keys().filter(move |node| fleet.nodes.contains(*node));
        stands.map(|(node, _)| node).chain(fleet.waiting.values()).chain(kept_off)
    }

    fn count(&self, besides: Option<&NodeId>, fleet: Fleet<'_>, now: BootTime) -> usize {
        let most = self.complaints.len() + fleet.waiting.len() + fleet.stands.len() + 1;
        if most < self.at {
            return most;
        }
        let counts = |node: &&NodeId| !self.believed.contains(*node);
        self.complained(fleet, now).chain(besides).filter(counts).collect::<BTreeSet<_>>().len()
    }

    /// A person says that what looks dead is dead. False: the brake did not hold.
    pub(super) fn let_go(&mut self, fleet: Fleet<'_>, now: BootTime) -> bool {
        self.look(fleet, now);
        let held = self.count(None, fleet, now) >= self.at;
        if held {
            self.believed = self.complained(fleet, now).cloned().collect();
        }
        held
    }

    /// Why no fence of that node may begin; without a node, whether it holds at all. When it will let go is nobody's to know: who is told
    /// would only wait for it.
    pub(super) fn bar(&self, node: Option<&NodeId>, fleet: Fleet<'_>, now: BootTime) -> Option<Bar> {
        let found = self.count(node, fleet, now);
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
                 dead, resume everything, or set the budget aside by name",
                fleet.nodes.len(),
                self.at
            ),
            nodes: Vec::new(),
            retry_after: None,
        })
    }
}
