//! What people ask of a node besides fencing it.

use picket_core::device::Identity;
use picket_core::ids::DeviceId;
use picket_proto::v1;

use super::fields::{device, holder, identity, lost};
use super::motion::{CommonParameters, MotionParameters};
use crate::fault::{Fault, Fields};

/// Checks a hold of `caller`.
pub(crate) fn hold(request: &v1::HoldRequest, caller: &str) -> Result<MotionParameters, Fault> {
    let mut fields = Fields::default();
    let holder = holder(&request.holder, caller, &mut fields);
    let asked = CommonParameters {
        call: "hold",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: "",
        generation: request.expected_generation,
    };
    asked.check(caller, holder, None, None, fields)
}

/// Checks the dropping of a hold by `caller`.
pub(crate) fn drop_hold(request: &v1::DropHoldRequest, caller: &str) -> Result<MotionParameters, Fault> {
    let mut fields = Fields::default();
    let holder = holder(&request.holder, caller, &mut fields);
    let asked = CommonParameters {
        call: "drop_hold",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: "",
        generation: request.expected_generation,
    };
    asked.check(caller, holder, None, None, fields)
}

/// Checks an attestation of `caller`.
pub(crate) fn attest(request: &v1::AttestRequest, caller: &str) -> Result<MotionParameters, Fault> {
    let mut fields = Fields::default();
    if request.expected_generation.is_none() {
        let what = "is missing: say which fence you vouch for, so that it is no other one than you saw";
        fields.wrong("expected_generation", what);
    }
    let asked = CommonParameters {
        call: "attest",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: &request.idempotency_key,
        generation: request.expected_generation,
    };
    asked.check(caller, String::new(), None, None, fields)
}

/// Checks the retirement of a node by `caller`.
pub(crate) fn retire(request: &v1::RetireRequest, caller: &str) -> Result<MotionParameters, Fault> {
    let asked = CommonParameters {
        call: "retire",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: "",
        generation: request.expected_generation,
    };
    asked.check(caller, String::new(), None, None, Fields::default())
}

/// Checks the acceptance of an identity by `caller`: the device, and what it must say.
pub(crate) fn accept_identity(
    request: &v1::AcceptIdentityRequest,
    caller: &str,
) -> Result<(MotionParameters, DeviceId, Identity), Fault> {
    let mut fields = Fields::default();
    let device = device(&request.device, &mut fields);
    let expected = identity(&request.uuid, &request.serial, &mut fields);
    let asked = CommonParameters {
        call: "accept_identity",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: "",
        generation: None,
    };
    let checked = asked.check(caller, String::new(), None, None, fields)?;
    Ok((checked, device.ok_or_else(|| lost("device"))?, expected))
}
