//! Who may fence what, as the settings say it: they change while gateways work, and hold at one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::roles::{Grant, Pattern, Role, Roles, Scope};
use picket_core::time::BootTime;
use picket_driver_sim::Random;

use crate::people::HOLDERS;

/// So long after a reload may a write still arrive that was decided before it.
const ON_ITS_WAY: Duration = Duration::from_secs(20);

/// The nodes of each caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rights(BTreeMap<&'static str, BTreeSet<NodeId>>);

impl Rights {
    /// Drawn, but for one caller who may fence all of them.
    pub(crate) fn draw<'a>(random: &mut Random, nodes: impl Iterator<Item = &'a NodeId> + Clone) -> Self {
        let of = |(place, who): (usize, &&'static str)| {
            let own = nodes.clone().filter(|_| place == 0 || random.percent(60));
            (*who, own.cloned().collect())
        };
        Self(HOLDERS.iter().enumerate().map(of).collect())
    }

    /// Whether that caller may fence that node.
    pub(crate) fn may(&self, who: &str, node: &NodeId) -> bool {
        self.0.get(who).is_some_and(|nodes| nodes.contains(node))
    }

    /// The same, as the settings say it.
    pub(crate) fn roles(&self) -> Roles {
        let grant = |(who, nodes): (&&str, &BTreeSet<NodeId>)| Grant {
            name: (*who).to_owned(),
            role: Role::Controller,
            callers: vec![Pattern::new(who).expect("a good pattern")],
            uids: Vec::new(),
            gids: Vec::new(),
            nodes: Scope { hosts: Some(("drawn".to_owned(), nodes.clone())), ..Scope::default() },
            holders: Vec::new(),
        };
        Roles::new(self.0.iter().map(grant).collect())
    }
}

/// The rights by which one gateway decides, and by which it did.
#[derive(Debug, Default)]
pub(crate) struct InForce(Vec<(Arc<Rights>, Option<BootTime>)>);

impl InForce {
    /// It is told of these: from now on it may go by them.
    pub(crate) fn begin(&mut self, rights: &Arc<Rights>) {
        self.0.push((rights.clone(), None));
    }

    /// It has said that they hold: it goes by none before them any more.
    pub(crate) fn hold(&mut self, rights: &Arc<Rights>, at: BootTime) {
        let Some(place) = self.0.iter().rposition(|(one, _)| Arc::ptr_eq(one, rights)) else { return };
        self.0[..place].iter_mut().for_each(|(_, until)| *until = until.or(Some(at)));
    }

    /// Whether what that caller brings about now may have been decided by any of them.
    pub(crate) fn may(&self, who: &str, node: &NodeId, at: BootTime) -> bool {
        let counts = |until: &Option<BootTime>| until.is_none_or(|until| at.since(until) <= ON_ITS_WAY);
        self.0.iter().any(|(rights, until)| counts(until) && rights.may(who, node))
    }
}
