//! Who may do what to which nodes: the vocabulary of `[roles]`, and its only judge.
//!
//! **Non-goals.** Who somebody is: the door finds that out. Which call needs which role stands in the
//! server.
//!
//! # Invariants
//!
//! - What is granted to nobody is refused. Shown by `what_is_granted_to_nobody_is_refused`.
//! - `attest` is never implied, and is never granted to a caller of whom only an address is known: a
//!   person's word has a name (S12). Shown by `attest_is_never_implied_and_implies_nothing`,
//!   `an_address_vouches_for_nothing`.

mod pattern;
mod role;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

pub use pattern::{BadPattern, Pattern};
pub use role::Role;
use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// How it is known who calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// A client certificate of our CA.
    Certificate,
    /// The kernel, over a Unix socket: the process's user and groups.
    Kernel {
        /// Its effective user.
        uid: u32,
        /// Its groups, the effective one first.
        gids: Arc<[u32]>,
        /// Who that is, for people: `alice`, or `alice as root` behind sudo. It grants nothing. `None`: it was not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Arc<str>>,
    },
    /// None: a program on this machine that reached the loopback.
    Address,
}

/// Somebody who calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The name, as it stands in holds, history and logs: `spiffe://lab/ns/db`, `uid:1000`, `tcp:127.0.0.1`.
    pub name: String,
    /// How it is known.
    pub proof: Proof,
}

impl Person {
    /// Somebody of whom only the name was stored: known as whoever reaches the loopback is.
    pub fn known_by_name(name: &str) -> Self {
        Self { name: name.to_owned(), proof: Proof::Address }
    }

    /// Who it is, for people: `alice as root`. `None`: the name says all that is known. Nothing is granted or compared by it.
    pub fn shown(&self) -> Option<&str> {
        match &self.proof {
            Proof::Kernel { shown, .. } => shown.as_deref(),
            Proof::Certificate | Proof::Address => None,
        }
    }

    /// Whether both have the same rights: the same name, known in the same way. How they are shown says nothing of that.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let proven = match (&self.proof, &other.proof) {
            (Proof::Kernel { uid, gids, .. }, Proof::Kernel { uid: other, gids: others, .. }) => {
                (uid, gids) == (other, others)
            }
            (one, other) => one == other,
        };
        proven && self.name == other.name
    }
}

/// As whom all callers count who reach the loopback over TCP.
pub const LOOPBACK: &str = "tcp:loopback";

/// As whom the caller of that name counts against what one caller may have: a process that reaches the loopback chooses any of its
/// addresses, and each would be a name of its own.
pub fn counts_as(name: &str) -> &str {
    let address = name.strip_prefix("tcp:").and_then(|address| address.parse::<IpAddr>().ok());
    if address.is_some_and(|address| address.to_canonical().is_loopback()) { LOOPBACK } else { name }
}

/// Some nodes: those that fit both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Labels that a node must have, all of them.
    pub labels: BTreeMap<String, String>,
    /// The nodes of a host list, and the list as it was written.
    pub hosts: Option<(String, BTreeSet<NodeId>)>,
}

impl Scope {
    /// Whether it sets no limit, so that also nodes count that the settings do not know any more.
    pub fn is_all(&self) -> bool {
        self.labels.is_empty() && self.hosts.is_none()
    }

    /// Whether a node with these labels is one of them.
    pub fn has(&self, node: &NodeId, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.hosts.as_ref().is_none_or(|(_, hosts)| hosts.contains(node))
    }

    /// In words: `rack=r1`, `r1n[01-40]`, `all nodes`.
    pub fn words(&self) -> String {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let hosts = self.hosts.iter().map(|(list, _)| list.clone());
        let parts: Vec<String> = labels.chain(hosts).collect();
        if parts.is_empty() { "all nodes".to_owned() } else { parts.join(" and ") }
    }
}

/// A role for some callers and some nodes: a table of `[roles]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name in the settings.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Who, by name.
    pub callers: Vec<Pattern>,
    /// Who, by user, over the Unix socket.
    pub uids: Vec<u32>,
    /// Who, by group, over the Unix socket.
    pub gids: Vec<u32>,
    /// To which nodes.
    pub nodes: Scope,
    /// For which holders they may act besides themselves.
    pub holders: Vec<Pattern>,
}

impl Grant {
    fn is_for(&self, person: &Person) -> bool {
        let named = self.callers.iter().any(|pattern| pattern.fits(&person.name));
        match &person.proof {
            Proof::Kernel { uid, gids, .. } => {
                named || self.uids.contains(uid) || gids.iter().any(|gid| self.gids.contains(gid))
            }
            Proof::Certificate => named,
            Proof::Address => named && self.role != Role::Attest,
        }
    }
}

/// All that is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    grants: Vec<Arc<Grant>>,
    /// What everybody on this machine has, where the settings grant nothing.
    local: Option<Arc<Grant>>,
}

impl Roles {
    /// What the settings grant, and nothing else.
    pub fn new(grants: Vec<Grant>) -> Self {
        Self { grants: grants.into_iter().map(Arc::new).collect(), local: None }
    }

    /// Without any `[roles]`: whoever reaches the socket, whose mode says who may, or the loopback, is admin. Nobody
    /// else is anything, and nobody may attest.
    pub fn of_this_machine() -> Self {
        let local = Grant {
            name: "local".to_owned(),
            role: Role::Admin,
            callers: Vec::new(),
            uids: Vec::new(),
            gids: Vec::new(),
            nodes: Scope::default(),
            holders: Vec::new(),
        };
        Self { grants: Vec::new(), local: Some(Arc::new(local)) }
    }

    /// What they grant by names that all machines have alike, in words that are only compared: users and groups are one machine's own.
    pub fn everywhere(&self) -> String {
        let words = |grant: &Arc<Grant>| {
            let callers: Vec<&Pattern> =
                grant.callers.iter().filter(|pattern| !pattern.is_of_a_machine()).collect();
            format!("{:?}", (&grant.name, grant.role, callers, &grant.nodes, &grant.holders))
        };
        self.grants.iter().map(words).collect()
    }

    /// What the settings grant, in no order that says anything.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.iter().map(Arc::as_ref)
    }

    /// Whether it is the default, by which whoever is on this machine is admin.
    pub fn is_of_this_machine(&self) -> bool {
        self.local.is_some()
    }

    /// What somebody may.
    pub fn of(&self, person: Person) -> Caller {
        let is_here = person.proof != Proof::Certificate;
        let local = self.local.iter().filter(|_| is_here).cloned();
        let grants = self.grants.iter().filter(|grant| grant.is_for(&person)).cloned().chain(local).collect();
        Caller { name: person.name, proof: person.proof, grants }
    }
}

/// Somebody who calls, with what they may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name, as it stands in holds, history and logs.
    pub name: String,
    proof: Proof,
    grants: Vec<Arc<Grant>>,
}

impl Caller {
    /// Who it is, so that the roles can be asked again.
    pub fn person(&self) -> Person {
        Person { name: self.name.clone(), proof: self.proof.clone() }
    }

    fn with(&self, role: Role) -> impl Iterator<Item = &Grant> {
        self.grants.iter().map(Arc::as_ref).filter(move |grant| grant.role.does(role))
    }

    /// The roles that they have, for whatever nodes, as words.
    pub fn roles(&self) -> Vec<&'static str> {
        let roles: BTreeSet<Role> = self.grants.iter().map(|grant| grant.role).collect();
        roles.into_iter().map(Role::word).collect()
    }

    /// Whether they have `role` for some node.
    pub fn has(&self, role: Role) -> bool {
        self.with(role).next().is_some()
    }

    /// Whether they have `role` for every node, also for those that the settings do not know any more.
    pub fn has_everywhere(&self, role: Role) -> bool {
        self.with(role).any(|grant| grant.nodes.is_all())
    }

    /// Whether they have `role` for that node.
    pub fn may(&self, role: Role, node: &NodeId, labels: &BTreeMap<String, String>) -> bool {
        self.with(role).any(|grant| grant.nodes.has(node, labels))
    }

    /// For which nodes they have `role`, in words.
    pub fn groups(&self, role: Role) -> Vec<String> {
        self.with(role).map(|grant| grant.nodes.words()).collect()
    }

    /// Whether they may act for `holder` on that node: it is themselves, a role of theirs for that node lists it, or
    /// they are admin there.
    pub fn may_act_for(&self, holder: &str, node: &NodeId, labels: &BTreeMap<String, String>) -> bool {
        let listed = |grant: &Grant| {
            grant.nodes.has(node, labels)
                && (grant.role.does(Role::Admin) || grant.holders.iter().any(|pattern| pattern.fits(holder)))
        };
        holder == self.name || self.with(Role::Controller).any(listed)
    }
}

#[cfg(test)]
mod tests;
