//! Pauses by scope: who may place and end them, and that no fence begins, and none sends its first off, while one stands over its node.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::roles::Role;
use picket_core::time::BootTime;
use picket_proto::v1::{PauseScope, pause_scope};

use super::bounds::{Bounds, RACK};
use super::laws::{Book, Kind, Request};
use super::rights::Rights;
use super::stage::NODES;
use crate::lab::s;

/// What is decided at the same moment may come before it.
pub(super) const SAME_MOMENT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Everything,
    Rack,
    Node(&'static str),
}

impl Scope {
    pub fn asked(self) -> Option<PauseScope> {
        let of = match self {
            Scope::Everything => pause_scope::Of::Everything(true),
            Scope::Rack => pause_scope::Of::Group(RACK.to_owned()),
            Scope::Node(node) => pause_scope::Of::Node(node.to_owned()),
        };
        Some(PauseScope { of: Some(of) })
    }

    /// The node that is named by it, if one is.
    pub fn node(self) -> &'static str {
        match self {
            Scope::Node(node) => node,
            Scope::Everything | Scope::Rack => "",
        }
    }

    /// Whether that caller may pause it.
    pub fn is_for(self, rights: &Rights, bounds: &Bounds, caller: &str) -> bool {
        let within = NODES.iter().filter(|node| self.covers(node, bounds));
        match self {
            Scope::Everything => rights.may_everywhere(caller, Role::Operator),
            Scope::Rack | Scope::Node(_) => rights.may_all(caller, Role::Operator, within),
        }
    }

    pub fn covers(self, node: &str, bounds: &Bounds) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Rack => bounds.rack.contains(node),
            Scope::Node(one) => one == node,
        }
    }
}

/// The pauses that are known to stand: from when that was heard until when at the soonest.
pub(super) type Pauses = BTreeMap<Scope, (BootTime, BootTime)>;

impl Book {
    /// Whoever asks for it may have ended what stood there.
    pub(super) fn asks_about_a_pause(&mut self, kind: Kind) {
        if let Kind::Pause { scope, .. } | Kind::Resume { scope } = kind {
            self.pauses.remove(&scope);
        }
    }

    /// It was granted.
    pub(super) fn hears_of_a_pause(&mut self, request: &Request, now: BootTime) {
        let (Kind::Pause { scope, .. } | Kind::Resume { scope }) = request.kind else { return };
        let mut pairs = self.rights.since(request.at).zip(self.bounds.since(request.at));
        let may = pairs.any(|(rights, bounds)| scope.is_for(rights, bounds, request.caller));
        if !may {
            self.broken.push(format!(
                "{scope:?} is paused, or resumed, by {request:?}, who has no role for all of it"
            ));
        }
        match request.kind {
            Kind::Pause { lasts, .. } => {
                self.seen.paused += 1;
                self.pauses.insert(scope, (now, request.at + s(lasts)));
            }
            _ => self.seen.resumed += 1,
        }
    }

    /// The pause that stands over that node, by whatever is in force.
    pub(super) fn pause_of(&self, node: &NodeId, now: BootTime) -> Option<Scope> {
        let stands = |(from, until): &(BootTime, BootTime)| *from + SAME_MOMENT < now && now < *until;
        let covers = |scope: &Scope| self.bounds.since(now).all(|bounds| scope.covers(node.as_str(), bounds));
        let pauses = self.pauses.iter().filter(|(_, span)| stands(span));
        pauses.map(|(scope, _)| *scope).find(covers)
    }
}
