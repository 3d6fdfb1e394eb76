//! What else sets a node in motion, or lets a release go.

use std::time::Duration;

use picket_core::event::{BoundKey, Person};
use picket_core::ids::{Generation, ReleaseId};
use picket_core::time::WallTime;
use picket_engine::Ask;
use picket_proto::v1;

use super::fields::{deadline, holder, key, lost, not_after, reason, with_deadline};
use crate::digest::Digest;
use crate::fault::{Fault, Fields};
use crate::select::NodeTarget;

/// Something else that sets a node in motion.
#[derive(Debug)]
pub(crate) struct MotionParameters {
    /// The node.
    pub(crate) node: NodeTarget,
    /// The hold that is meant.
    pub(crate) holder: String,
    /// What the engine is asked.
    pub(crate) ask: Ask,
    /// The caller's own deadline.
    pub(crate) deadline: Option<Duration>,
}

/// Checks an unfence request of `caller`.
pub(crate) fn unfence(request: &v1::UnfenceRequest, caller: &str) -> Result<MotionParameters, Fault> {
    let mut fields = Fields::default();
    let holder = holder(&request.holder, caller, &mut fields);
    let not_after = not_after(request.not_after.as_ref(), &mut fields);
    let deadline = deadline(request.deadline.as_ref(), &mut fields);
    let asked = CommonParameters {
        call: "unfence",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: &request.idempotency_key,
        generation: request.expected_generation,
    };
    asked.check(caller, holder, deadline, not_after, fields)
}

/// Checks a retry of `caller`.
pub(crate) fn retry(request: &v1::RetryRequest, caller: &str) -> Result<MotionParameters, Fault> {
    let mut fields = Fields::default();
    // Between the look and its word the node may have been switched on and fenced again.
    if request.seen_off && request.expected_generation.is_none() {
        let what =
            "is missing: say in which fence you saw the machine off, so that your word is for no other one";
        fields.wrong("expected_generation", what);
    }
    let deadline = deadline(request.deadline.as_ref(), &mut fields);
    let asked = CommonParameters {
        call: "retry",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: &request.idempotency_key,
        generation: request.expected_generation,
    };
    asked.check(caller, String::new(), deadline, None, fields)
}

/// Checks a stand-down of `caller`.
pub(crate) fn stand_down(request: &v1::StandDownRequest, caller: &str) -> Result<MotionParameters, Fault> {
    let asked = CommonParameters {
        call: "stand_down",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: &request.idempotency_key,
        generation: request.expected_generation,
    };
    asked.check(caller, String::new(), None, None, Fields::default())
}

/// Checks the abandoning of a release by `caller`.
pub(crate) fn abandon(
    request: &v1::AbandonReleaseRequest,
    caller: &str,
) -> Result<(MotionParameters, ReleaseId), Fault> {
    let mut fields = Fields::default();
    let release = ReleaseId::named(&request.release);
    if let Err(error) = &release {
        fields.wrong("release", error.to_string());
    }
    let asked = CommonParameters {
        call: "abandon",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: "",
        generation: request.expected_generation,
    };
    let checked = asked.check(caller, String::new(), None, None, fields)?;
    Ok((checked, release.map_err(|_| lost("release"))?))
}

/// What requests that set a node in motion have in common.
pub(super) struct CommonParameters<'a> {
    pub(super) call: &'static str,
    pub(super) node: Option<&'a v1::NodeSelector>,
    pub(super) reason: &'a str,
    pub(super) key: &'a str,
    pub(super) generation: Option<u64>,
}

impl CommonParameters<'_> {
    pub(super) fn check(
        self,
        caller: &str,
        holder: String,
        deadline: Option<Duration>,
        not_after: Option<WallTime>,
        mut fields: Fields,
    ) -> Result<MotionParameters, Fault> {
        let node = NodeTarget::of(self.node, "node", &mut fields);
        let reason = reason(self.reason, &mut fields);
        let key = key(self.key, &mut fields);
        fields.done()?;
        // Of the reason as it was written: a repeat is found also where a version before bound the key (S20).
        let digest = Digest::of(self.call).with("holder", &holder).with("reason", self.reason.trim());
        let digest = with_deadline(digest, deadline).hex();
        let owner = if holder.is_empty() { caller } else { &holder };
        Ok(MotionParameters {
            node: node.ok_or_else(|| lost("node"))?,
            ask: Ask {
                person: Person { name: caller.to_owned(), reason },
                key: key.map(|key| BoundKey::of(owner, &key, digest)),
                not_after,
                expected_generation: self.generation.map(Generation),
                by_person: false,
            },
            holder,
            deadline,
        })
    }
}
