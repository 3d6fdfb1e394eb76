//! Who may: each request passes here before anything of it is read.
//!
//! # Invariants
//!
//! - A request is refused before a byte of its message is read in three cases: its caller is not known, has
//!   no role for the call, or finds no slot. Shown by `who_is_not_known_and_what_is_not_known_is_refused`,
//!   `a_role_that_is_missing_is_named_and_nothing_is_begun`.
//! - Every refusal is told to [`DenialSink`]. Shown by
//!   `a_role_that_is_missing_is_named_and_nothing_is_begun`.
//! - For which nodes a role holds is asked where the nodes are known:
//!   [`NodeTarget::find`](crate::select::NodeTarget::find) asks, and there is no other way to a node.

mod body_timeout;
pub(crate) mod calls;
mod denials;
pub(crate) mod gate;
mod login;
pub(crate) mod origin;
pub(crate) mod peer;
pub(crate) mod rate_limits;
mod stream_expiry;

use std::collections::BTreeMap;
use std::sync::Arc;

use denials::DenialAggregator;
pub use denials::{Denial, DenialSink, DiscardDenials};
use parking_lot::RwLock;
use picket_core::ids::NodeId;
use picket_core::roles::{Caller, Person, Proof, Role, Roles};
use picket_core::time::{Clock, WallTime};
use picket_metrics::{self as metrics, Metrics};
use picket_proto::v1::ErrorReason;

use crate::admission::Limits;
use crate::fault::Fault;
use calls::{Call, RequestTarget};
use origin::Origin;
use peer::Peer;
use rate_limits::RateLimits;
use stream_expiry::CertificateExpiry;

/// So many letters of a call that there is not are told.
const SHOWN: usize = 80;

/// Who may what, how much, and who is told of what was refused.
#[derive(Clone, Debug)]
pub struct AccessRules {
    /// How much is taken in.
    pub limits: Limits,
    /// Who may what.
    pub roles: Roles,
    /// Who is told of denials.
    pub denials: Arc<dyn DenialSink>,
    /// What counts requests.
    pub metrics: Metrics,
}

impl Default for AccessRules {
    /// Whoever is on this machine is admin.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            roles: Roles::of_this_machine(),
            denials: Arc::new(DiscardDenials),
            metrics: Metrics::default(),
        }
    }
}

/// A caller who may make a call, though not yet for which nodes.
#[derive(Clone, Debug)]
pub(crate) struct CallerRights {
    /// Who.
    pub(crate) caller: Arc<Caller>,
    /// Which call; `None` for another service than ours.
    pub(crate) call: Option<&'static Call>,
    /// What is asked for.
    pub(crate) target: RequestTarget,
    /// Where the caller comes from.
    pub(crate) origin: Arc<Origin>,
}

impl CallerRights {
    /// Somebody who may nothing.
    pub(crate) fn nobody() -> Self {
        let nobody = Person { name: String::new(), proof: Proof::Address };
        Self {
            caller: Arc::new(Roles::new(Vec::new()).of(nobody)),
            call: None,
            target: RequestTarget::Unknown,
            origin: Arc::new(Origin::stranger("", "")),
        }
    }

    /// What the call needs. Another service than ours names no nodes; if one did, only an admin might.
    pub(crate) fn needs(&self) -> Role {
        self.call.map_or(Role::Admin, |call| call.needs)
    }

    /// Whether the call may be made for that node.
    pub(crate) fn may(&self, node: &NodeId, labels: &BTreeMap<String, String>) -> bool {
        self.caller.may(self.needs(), node, labels)
    }

    /// The call may not be made for that node.
    pub(crate) fn not_for(&self, role: Role, node: &NodeId) -> Fault {
        self.lacks(role, &format!("{node} wants it")).with("node", node.as_str())
    }

    /// The call may not be made for a node of that group of which the caller is not told that it is there.
    pub(crate) fn not_for_group(&self, role: Role, group: &str) -> Fault {
        self.lacks(role, &format!("some node of group {group} wants it"))
    }

    /// That may not be set aside for that node; without it the call might be made.
    pub(crate) fn not_aside(&self, role: Role, what: &str, node: &NodeId) -> Fault {
        self.lacks(role, &format!("setting {what} aside on {node} needs {role}")).with("node", node.as_str())
    }

    fn lacks(&self, role: Role, why: &str) -> Fault {
        let caller = &self.caller.name;
        let groups = self.caller.groups(role);
        let has = match groups.as_slice() {
            [] => format!("has not the role {role}"),
            groups => format!("has the role {role} only for {}", groups.join(", ")),
        };
        let message = format!("{caller} {has}, and {why}: an admin can add it in [roles]");
        Fault::new(ErrorReason::RoleMissing, message)
            .with("caller", caller)
            .with("role", role.word())
            .with_list("groups", &groups)
    }
}

/// The guard.
#[derive(Debug)]
pub(crate) struct Guard {
    roles: RwLock<Roles>,
    pub(crate) metrics: Metrics,
    denials: DenialAggregator,
    pub(crate) rate_limits: RateLimits,
    clock: Arc<dyn Clock>,
}

impl Guard {
    pub(crate) fn new(rules: AccessRules, clock: Arc<dyn Clock>) -> Self {
        let rate_limits = RateLimits::new(&rules.limits);
        let (roles, metrics) = (RwLock::new(rules.roles), rules.metrics);
        Self { roles, metrics, denials: DenialAggregator::new(rules.denials), rate_limits, clock }
    }

    /// Others may what they may from now on; true if anything differs.
    pub(crate) fn change(&self, roles: Roles) -> bool {
        let mut now = self.roles.write();
        let differs = *now != roles;
        *now = roles;
        differs
    }

    /// Lets a request in, or says why not.
    pub(crate) fn authorize(&self, path: &str, peer: Option<&Peer>) -> Result<CallerRights, Fault> {
        let target = calls::of(path);
        let Some(peer) = peer else {
            let fault = Fault::new(
                ErrorReason::Unauthenticated,
                "who calls is not known: the connection tells neither certificate nor user nor address",
            );
            return Err(self.denied(&Origin::stranger("", ""), target.word(), fault));
        };
        let origin = peer.origin();
        match self.check(path, target, peer, &origin) {
            Ok((caller, call)) => {
                Ok(CallerRights { caller: Arc::new(caller), call, target, origin: Arc::new(origin) })
            }
            Err(fault) => Err(self.denied(&origin, target.word(), fault)),
        }
    }

    fn check(
        &self,
        path: &str,
        target: RequestTarget,
        peer: &Peer,
        origin: &Origin,
    ) -> Result<(Caller, Option<&'static Call>), Fault> {
        self.is_current(peer)?;
        self.rate_limits.count(&origin.as_one)?;
        let caller = self.roles.read().of(peer.person());
        let call = match target {
            RequestTarget::Aside(_) => None,
            RequestTarget::Ours(call) if caller.has(call.needs) => Some(call),
            RequestTarget::Ours(call) => return Err(lacks(&caller, call)),
            RequestTarget::Unknown => {
                let shown: String = path.chars().take(SHOWN).collect();
                let message = format!("there is no call {shown:?}; nothing was changed");
                return Err(Fault::new(ErrorReason::NotOffered, message));
            }
        };
        Ok((caller, call))
    }

    /// Whether somebody has any role, for any node.
    pub(crate) fn grants_anything_to(&self, peer: &Peer) -> bool {
        let roles = self.roles.read();
        !roles.of(peer.person()).roles().is_empty()
    }

    /// A connection may outlive the certificate that opened it; what is asked over it may not.
    fn is_current(&self, peer: &Peer) -> Result<(), Fault> {
        match self.expiry_of(peer) {
            Some(end) if self.clock.wall() > end.last => Err(expired(&end.name)),
            _ => Ok(()),
        }
    }

    /// When what vouches for somebody does so no more.
    fn expiry_of(&self, peer: &Peer) -> Option<CertificateExpiry> {
        let Peer::Certified { name, not_after } = peer else { return None };
        let last = WallTime::from_millis(u64::try_from(*not_after).unwrap_or(0).saturating_mul(1_000));
        Some(CertificateExpiry { clock: self.clock.clone(), last, fault: expired, name: name.to_string() })
    }

    /// Tells a denial, and hands its fault on.
    pub(crate) fn denied(&self, by: &Origin, call: &str, fault: Fault) -> Fault {
        self.metrics.count(&metrics::DENIALS, &[call, fault.reason().word()]);
        self.denials.tell(by, call, fault.reason(), fault.message());
        fault
    }

    /// Somebody was not let in at all.
    pub(crate) fn turned_away(&self, by: &Origin, why: &str) {
        self.metrics.count(&metrics::DENIALS, &["connect", ErrorReason::Unauthenticated.word()]);
        self.denials.tell(by, "connect", ErrorReason::Unauthenticated, why);
    }

    /// Tells counts of denials each minute, for as long as it is polled.
    pub(crate) async fn keep_telling(&self) {
        self.denials.keep_telling().await;
    }

    /// Tells the counts that are left.
    pub(crate) fn settle(&self) {
        self.denials.settle();
    }
}

fn expired(name: &str) -> Fault {
    let message = format!("the certificate of {name} has expired: connect anew with another");
    Fault::new(ErrorReason::Unauthenticated, message)
}

fn lacks(caller: &Caller, call: &Call) -> Fault {
    let roles = caller.roles();
    let has = if roles.is_empty() { "no role".to_owned() } else { format!("only {}", roles.join(", ")) };
    let message = format!(
        "{} needs the role {}, and {} has {has}: an admin can add it in [roles]",
        call.name, call.needs, caller.name
    );
    Fault::new(ErrorReason::RoleMissing, message)
        .with("caller", &caller.name)
        .with("role", call.needs.word())
        .with_list("roles", &roles)
}

#[cfg(test)]
mod tests {
    use picket_core::roles::{Grant, Pattern, Scope};
    use picket_core::time::{BootTime, Clock};
    use tonic::Code;

    use super::*;

    #[derive(Debug)]
    struct Stands(u64);

    impl Clock for Stands {
        fn boot(&self) -> BootTime {
            BootTime::default()
        }

        fn wall(&self) -> WallTime {
            WallTime::from_millis(self.0)
        }
    }

    fn guard(now: u64) -> Guard {
        let viewer = Grant {
            name: "viewers".to_owned(),
            role: Role::Viewer,
            callers: vec![Pattern::new("*").expect("a good pattern")],
            uids: vec![],
            gids: vec![],
            nodes: Scope::default(),
            holders: vec![],
        };
        let rules = AccessRules { roles: Roles::new(vec![viewer]), ..AccessRules::default() };
        Guard::new(rules, Arc::new(Stands(now)))
    }

    fn admit(guard: &Guard, call: &str, peer: Option<Peer>) -> Result<CallerRights, Code> {
        let path = format!("/{}/{call}", picket_proto::SERVICE_NAME);
        guard.authorize(&path, peer.as_ref()).map_err(|fault| fault.status().code())
    }

    #[tokio::test]
    async fn a_connection_does_not_outlive_the_certificate_that_opened_it() {
        let peer = || Some(Peer::Certified { name: "db".into(), not_after: 1_000 });
        assert!(admit(&guard(1_000_000), "GetNode", peer()).is_ok());
        assert_eq!(admit(&guard(1_000_001), "GetNode", peer()).err(), Some(Code::Unauthenticated));
    }

    #[tokio::test]
    async fn who_is_not_known_and_what_is_not_known_is_refused() {
        let guard = guard(0);
        let peer = || Some(Peer::Certified { name: "db".into(), not_after: 1_000 });
        assert_eq!(admit(&guard, "GetNode", None).err(), Some(Code::Unauthenticated));
        assert_eq!(admit(&guard, "Shoot", peer()).err(), Some(Code::Unimplemented));
        assert_eq!(admit(&guard, "Fence", peer()).err(), Some(Code::PermissionDenied));
        assert!(!CallerRights::nobody().may(&NodeId::new("n1").expect("a good name"), &BTreeMap::new()));
    }
}
