//! Who may: each request passes here before anything of it is read.
//!
//! **Invariants.** A request whose caller is not known, or has no role for the call, is refused before its message is
//! decoded. Every refusal is told to [`Denials`]. For which nodes the role holds is asked where the nodes are known:
//! there is no other way to a node than [`Wanted::find`](crate::select::Wanted::find), which asks.

pub(crate) mod calls;
mod denials;
pub(crate) mod gate;
pub(crate) mod peer;
pub(crate) mod visitors;

use std::collections::BTreeMap;
use std::sync::Arc;

use denials::Gathered;
pub use denials::{Denial, Denials, Untold};
use picket_core::ids::NodeId;
use picket_core::roles::{Caller, Person, Proof, Role, Roles};
use picket_core::time::{Clock, WallTime};
use picket_proto::v1::ErrorReason;
use tokio_util::sync::CancellationToken;

use crate::door::Limits;
use crate::fault::Fault;
use calls::Call;
use peer::Peer;
use visitors::Visitors;

/// Who may what, how much, and who is told of what was refused.
#[derive(Clone, Debug)]
pub struct HouseRules {
    /// How much is taken in.
    pub limits: Limits,
    /// Who may what.
    pub roles: Roles,
    /// Who is told of denials.
    pub denials: Arc<dyn Denials>,
}

impl Default for HouseRules {
    /// Whoever is on this machine is admin.
    fn default() -> Self {
        Self { limits: Limits::default(), roles: Roles::of_this_machine(), denials: Arc::new(Untold) }
    }
}

/// A caller who may make a call, though not yet for which nodes.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    /// Who.
    pub(crate) caller: Arc<Caller>,
    /// Which call; `None` for another service than ours.
    pub(crate) call: Option<&'static Call>,
}

impl Admitted {
    /// Somebody who may nothing.
    pub(crate) fn nobody() -> Self {
        let nobody = Person { name: String::new(), proof: Proof::Address };
        Self { caller: Arc::new(Roles::new(Vec::new()).of(nobody)), call: None }
    }

    /// What the call needs. Another service than ours names no nodes; if one did, only an admin might.
    pub(crate) fn needs(&self) -> Role {
        self.call.map_or(Role::Admin, |call| call.needs)
    }

    /// Whether the call may be made for that node.
    pub(crate) fn may(&self, node: &NodeId, labels: &BTreeMap<String, String>) -> bool {
        self.caller.may(self.needs(), node, labels)
    }

    /// The call may not be made for that node, or not with that in it.
    pub(crate) fn not_for(&self, role: Role, node: &NodeId) -> Fault {
        let caller = &self.caller.name;
        let groups = self.caller.groups(role);
        let has = match groups.as_slice() {
            [] => format!("has not the role {role}"),
            groups => format!("has the role {role} only for {}", groups.join(", ")),
        };
        let message = format!("{caller} {has}, and {node} wants it: an admin can add it in [roles]");
        Fault::new(ErrorReason::RoleMissing, message)
            .with("caller", caller)
            .with("role", role.word())
            .with("node", node.as_str())
            .with_list("groups", &groups)
    }
}

/// The guard.
#[derive(Debug)]
pub(crate) struct Guard {
    roles: Roles,
    denials: Gathered,
    pub(crate) visitors: Visitors,
    clock: Arc<dyn Clock>,
}

impl Guard {
    pub(crate) fn new(rules: HouseRules, clock: Arc<dyn Clock>) -> Self {
        let visitors = Visitors::new(&rules.limits);
        Self { roles: rules.roles, denials: Gathered::new(rules.denials), visitors, clock }
    }

    /// Lets a request in, or says why not.
    fn admit(&self, path: &str, peer: Option<&Peer>) -> Result<Admitted, Fault> {
        let call = path.rsplit('/').next().unwrap_or_default();
        let Some(peer) = peer else {
            let fault = Fault::new(
                ErrorReason::Unauthenticated,
                "who calls is not known: the connection tells neither certificate nor user nor address",
            );
            return Err(self.denied("", call, fault));
        };
        let name = peer.name();
        self.check(path, peer).map_err(|fault| self.denied(&name, call, fault))
    }

    fn check(&self, path: &str, peer: &Peer) -> Result<Admitted, Fault> {
        self.is_current(peer)?;
        let person = peer.person();
        self.visitors.count(&person.name)?;
        let caller = self.roles.of(person);
        let call = match calls::of(path) {
            None => None,
            Some(Ok(call)) if caller.has(call.needs) => Some(call),
            Some(Ok(call)) => return Err(lacks(&caller, call)),
            Some(Err(unknown)) => {
                let message = format!("there is no call {unknown:?}; nothing was changed");
                return Err(Fault::new(ErrorReason::NotOffered, message));
            }
        };
        Ok(Admitted { caller: Arc::new(caller), call })
    }

    /// A connection may outlive the certificate that opened it; what is asked over it may not.
    fn is_current(&self, peer: &Peer) -> Result<(), Fault> {
        let Peer::Certified { name, not_after } = peer else { return Ok(()) };
        let end = u64::try_from(*not_after).unwrap_or(0).saturating_mul(1_000);
        if self.clock.wall() <= WallTime::from_millis(end) {
            return Ok(());
        }
        let message = format!("the certificate of {name} has expired: connect anew with another");
        Err(Fault::new(ErrorReason::Unauthenticated, message))
    }

    /// Tells a denial, and hands its fault on.
    pub(crate) fn denied(&self, caller: &str, call: &str, fault: Fault) -> Fault {
        self.denials.tell(caller, call, fault.reason(), fault.message());
        fault
    }

    /// Somebody was not let in at all.
    pub(crate) fn turned_away(&self, who: &str, why: &str) {
        self.denials.tell(who, "connect", ErrorReason::Unauthenticated, why);
    }

    /// Tells counts of denials, until `stop`.
    pub(crate) async fn keep_telling(&self, stop: CancellationToken) {
        self.denials.keep_telling(stop).await;
    }
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
        let rules = HouseRules { roles: Roles::new(vec![viewer]), ..HouseRules::default() };
        Guard::new(rules, Arc::new(Stands(now)))
    }

    fn admit(guard: &Guard, call: &str, peer: Option<Peer>) -> Result<Admitted, Code> {
        let path = format!("/{}/{call}", picket_proto::SERVICE_NAME);
        guard.admit(&path, peer.as_ref()).map_err(|fault| fault.status().code())
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
        assert!(!Admitted::nobody().may(&NodeId::new("n1").expect("a good name"), &BTreeMap::new()));
    }
}
