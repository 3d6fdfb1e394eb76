//! Which call needs which role: the only place that says so.
//!
//! # Invariants
//!
//! - What does not stand here nobody may. Shown by `every_call_of_the_proto_stands_in_the_table_once`,
//!   `a_path_is_a_call_another_service_or_nothing_that_anybody_may`.

use picket_core::roles::Role::{self, Admin, Attest, Controller, Operator, Viewer};

/// A call of the service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name in the proto.
    pub(crate) name: &'static str,
    /// The role that it needs, for the nodes that it names. Setting a budget or a quorum aside needs
    /// [`OVERRIDE`] besides.
    pub(crate) needs: Role,
    /// Whether its answer is a stream, which stays.
    pub(crate) stays: bool,
}

/// What a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestTarget {
    /// A call of ours.
    Ours(&'static Call),
    /// Another service, whose answers say nothing of nodes (health, reflection), by its word.
    Aside(&'static str),
    /// Nothing that there is.
    Unknown,
}

impl RequestTarget {
    /// In denials. What somebody thought of is not told: there is no end to it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            RequestTarget::Ours(call) => call.name,
            RequestTarget::Aside(word) => word,
            RequestTarget::Unknown => "unknown",
        }
    }
}

/// What is offered beside our own service.
const ASIDES: [(&str, &str); 3] = [
    ("/grpc.health.v1.Health/", "health"),
    ("/grpc.reflection.v1.ServerReflection/", "reflection"),
    ("/grpc.reflection.v1alpha.ServerReflection/", "reflection"),
];

/// What a fence needs that sets a budget or a quorum aside.
pub(crate) const OVERRIDE: Role = Admin;

const fn call(name: &'static str, needs: Role) -> Call {
    Call { name, needs, stays: false }
}

const fn stream(name: &'static str, needs: Role) -> Call {
    Call { name, needs, stays: true }
}

static CALLS: [Call; 26] = [
    call("GetNode", Viewer),
    call("ListNodes", Viewer),
    stream("WatchNodes", Viewer),
    call("ListGateways", Viewer),
    call("GetFence", Viewer),
    call("ListFences", Viewer),
    call("PlanFence", Viewer),
    call("VerifyReceipt", Viewer),
    call("ListReceiptKeys", Viewer),
    // For itself, or for the holders that its role lists.
    stream("Fence", Controller),
    stream("Unfence", Controller),
    call("Hold", Controller),
    call("DropHold", Controller),
    call("GetReceipt", Controller),
    call("ReturnReceipt", Controller),
    stream("Retry", Operator),
    stream("StandDown", Operator),
    call("AbandonRelease", Operator),
    stream("CheckDevices", Operator),
    stream("Drill", Operator),
    call("Pause", Operator),
    call("Resume", Operator),
    call("Retire", Admin),
    call("AcceptIdentity", Admin),
    stream("Attest", Attest),
    // Whoever has it knows the fleet, and it is of all nodes.
    stream("Backup", Admin),
];

/// What is behind a path (`/picket.v1.FencingService/Fence`).
pub(crate) fn of(path: &str) -> RequestTarget {
    let name = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(picket_proto::SERVICE_NAME))
        .and_then(|path| path.strip_prefix('/'));
    if let Some(call) = name.and_then(|name| CALLS.iter().find(|call| call.name == name)) {
        return RequestTarget::Ours(call);
    }
    let aside = ASIDES.iter().find(|(service, _)| path.starts_with(service));
    aside.map_or(RequestTarget::Unknown, |(_, word)| RequestTarget::Aside(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use picket_proto::exits::{self, Exit};
    use prost::Message;

    use super::*;

    #[test]
    fn every_call_of_the_proto_stands_in_the_table_once() {
        let set =
            prost_types::FileDescriptorSet::decode(picket_proto::FILE_DESCRIPTOR_SET).expect("descriptors");
        let services =
            set.file.iter().filter(|file| file.package() == "picket.v1").flat_map(|file| &file.service);
        let calls: BTreeSet<(&str, bool)> = services
            .flat_map(|service| &service.method)
            .map(|call| (call.name(), call.server_streaming()))
            .collect();
        let table: BTreeSet<(&str, bool)> = CALLS.iter().map(|call| (call.name, call.stays)).collect();
        assert_eq!(table, calls);
        assert_eq!(CALLS.len(), calls.len());
    }

    /// The call behind an exit, and what it needs; [`OVERRIDE`] is asked for beside the call's own role.
    fn needs(exit: Exit) -> Role {
        let call = match exit {
            Exit::Retry | Exit::RetrySeenOff => "Retry",
            Exit::Attest => "Attest",
            Exit::Abandon => "AbandonRelease",
            Exit::StandDown => "StandDown",
            Exit::Retire => "Retire",
            Exit::AcceptIdentity => "AcceptIdentity",
            Exit::Fence | Exit::Queue => "Fence",
            // A program lowers nothing that others asked for (`is_a_person`).
            Exit::FenceForLess => return Operator,
            Exit::Resume | Exit::ResumeEverything => "Resume",
            Exit::OverrideBudget | Exit::OverrideQuorum | Exit::DropRestored | Exit::EndChildsHold => {
                return OVERRIDE;
            }
        };
        CALLS.iter().find(|one| one.name == call).expect("it is a call").needs
    }

    #[test]
    fn each_exit_needs_the_role_that_its_words_name() {
        let ways = exits::all().flat_map(|(_, _, ways)| ways).chain([&exits::KEPT_FOR]);
        for exit in ways.flat_map(|way| way.exits) {
            assert_eq!(exit.role(), needs(*exit).word(), "{exit:?}");
        }
    }

    #[test]
    fn a_path_is_a_call_another_service_or_nothing_that_anybody_may() {
        let path = |name: &str| format!("/{}/{name}", picket_proto::SERVICE_NAME);
        assert!(matches!(of(&path("Attest")), RequestTarget::Ours(call) if call.needs == Attest));
        for name in ["", "Shoot", "fence", "Fence/", "Fence/x"] {
            assert_eq!(of(&path(name)), RequestTarget::Unknown, "{name}");
        }
        assert_eq!(of("/grpc.health.v1.Health/Check"), RequestTarget::Aside("health"));
        assert_eq!(of("/grpc.health.v1.Health"), RequestTarget::Unknown);
        assert_eq!(of("/other.Service/Check"), RequestTarget::Unknown);
    }
}
