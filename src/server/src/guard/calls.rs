//! Which call needs which role: the only place that says so. What does not stand here nobody may.

use picket_core::roles::Role::{self, Admin, Attest, Controller, Operator, Viewer};

/// A call of the service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name in the proto.
    pub(crate) name: &'static str,
    /// The role that it needs, for the nodes that it names. Setting a budget or a quorum aside needs
    /// [`OVERRIDE`] besides.
    pub(crate) needs: Role,
}

/// What a fence needs that sets a budget or a quorum aside.
pub(crate) const OVERRIDE: Role = Admin;

const fn call(name: &'static str, needs: Role) -> Call {
    Call { name, needs }
}

static CALLS: [Call; 24] = [
    call("GetNode", Viewer),
    call("ListNodes", Viewer),
    call("WatchNodes", Viewer),
    call("GetFence", Viewer),
    call("ListFences", Viewer),
    call("PlanFence", Viewer),
    call("VerifyReceipt", Viewer),
    call("ListReceiptKeys", Viewer),
    // For itself, or for the holders that its role lists.
    call("Fence", Controller),
    call("Unfence", Controller),
    call("Hold", Controller),
    call("DropHold", Controller),
    call("GetReceipt", Controller),
    call("ReturnReceipt", Controller),
    call("Retry", Operator),
    call("StandDown", Operator),
    call("AbandonRelease", Operator),
    call("CheckDevices", Operator),
    call("Drill", Operator),
    call("Pause", Operator),
    call("Resume", Operator),
    call("Retire", Admin),
    call("AcceptIdentity", Admin),
    call("Attest", Attest),
];

/// The call behind a path (`/picket.v1.FencingService/Fence`): `None` for another service, whose answers say nothing of
/// nodes (health, reflection); an error for a call of ours that the table does not know.
pub(crate) fn of(path: &str) -> Option<Result<&'static Call, String>> {
    let name = path.strip_prefix('/')?.strip_prefix(picket_proto::SERVICE_NAME)?.strip_prefix('/')?;
    let found = CALLS.iter().find(|call| call.name == name);
    Some(found.ok_or_else(|| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message;

    use super::*;

    #[test]
    fn every_call_of_the_proto_stands_in_the_table_once() {
        let set =
            prost_types::FileDescriptorSet::decode(picket_proto::FILE_DESCRIPTOR_SET).expect("descriptors");
        let services =
            set.file.iter().filter(|file| file.package() == "picket.v1").flat_map(|file| &file.service);
        let calls: BTreeSet<&str> =
            services.flat_map(|service| &service.method).map(|call| call.name()).collect();
        let table: BTreeSet<&str> = CALLS.iter().map(|call| call.name).collect();
        assert_eq!(table, calls);
        assert_eq!(CALLS.len(), calls.len());
    }

    #[test]
    fn a_path_is_a_call_another_service_or_nothing_that_anybody_may() {
        let path = |name: &str| format!("/{}/{name}", picket_proto::SERVICE_NAME);
        assert_eq!(of(&path("Attest")).map(|call| call.map(|call| call.needs)), Some(Ok(Attest)));
        for name in ["", "Shoot", "fence", "Fence/", "Fence/x"] {
            assert_eq!(of(&path(name)), Some(Err(name.to_owned())), "{name}");
        }
        assert_eq!(of("/grpc.health.v1.Health/Check"), None);
    }
}
