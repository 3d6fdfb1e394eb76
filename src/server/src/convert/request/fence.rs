//! A fence that is asked for.

use std::time::Duration;

use picket_core::device::Grade;
use picket_core::event::{BoundKey, Holder};
use picket_core::ids::Generation;
use picket_core::record::Then;
use picket_engine::{FenceCall, Until};
use picket_proto::v1::{self, ErrorReason};

use super::fields::{choice, deadline, holder, key, lost, not_after, reason, with_deadline};
use crate::convert::words;
use crate::digest::Digest;
use crate::fault::{Fault, Fields};
use crate::select::Wanted;

/// A fence that is asked for.
#[derive(Debug)]
pub(crate) struct FenceAsked {
    /// The node.
    pub(crate) node: Wanted,
    /// What the engine is asked.
    pub(crate) call: FenceCall,
    /// When the caller's stream ends.
    pub(crate) until: Until,
}

/// Checks a fence request of `caller`.
pub(crate) fn fence(request: &v1::FenceRequest, caller: &str) -> Result<FenceAsked, Fault> {
    let mut fields = Fields::default();
    let node = Wanted::of(request.node.as_ref(), "node", &mut fields);
    let reason = reason(&request.reason, &mut fields);
    let holder = holder(&request.holder, caller, &mut fields);
    let until: v1::FenceUntil = choice("until", request.until, &mut fields);
    let then: v1::FenceThen = choice("then", request.then, &mut fields);
    let grade: v1::Grade = choice("minimum_grade", request.minimum_grade, &mut fields);
    let deadline = deadline(request.deadline.as_ref(), &mut fields);
    let not_after = not_after(request.not_after.as_ref(), &mut fields);
    let key = key(&request.idempotency_key, &mut fields);
    fields.done()?;
    not_offered_yet(request)?;
    let then = match then {
        v1::FenceThen::Unspecified | v1::FenceThen::StayOff => Then::StayOff,
        v1::FenceThen::PowerOn => Then::PowerOn,
    };
    let min_grade = words::grade_of(grade);
    let digest = fence_digest(&holder, &reason, then, min_grade, deadline);
    Ok(FenceAsked {
        node: node.ok_or_else(|| lost("node"))?,
        call: FenceCall {
            holder: Holder { name: holder, by: caller.to_owned(), reason, then },
            key: key.map(|key| BoundKey { key, digest }),
            min_grade,
            deadline,
            not_after,
            expected_generation: request.expected_generation.map(Generation),
        },
        until: match until {
            v1::FenceUntil::Confirmed => Until::Confirmed,
            v1::FenceUntil::Unspecified | v1::FenceUntil::Released => Until::Released,
        },
    })
}

/// What would make a request safer, or set a limit aside, is never ignored in silence.
fn not_offered_yet(request: &v1::FenceRequest) -> Result<(), Fault> {
    let what = match request {
        request if request.dry_run => "dry runs",
        request if request.override_budget.is_some() => {
            "override_budget: it has no budget that could be set aside"
        }
        request if request.override_quorum.is_some() => "override_quorum: its store has no quorum",
        _ => return Ok(()),
    };
    Err(Fault::new(
        ErrorReason::NotOffered,
        format!("this gateway does not offer {what} yet; nothing was changed"),
    ))
}

fn fence_digest(
    holder: &str,
    reason: &str,
    then: Then,
    grade: Option<Grade>,
    deadline: Option<Duration>,
) -> String {
    let mut digest = Digest::of("fence").with("holder", holder).with("reason", reason);
    if then == Then::PowerOn {
        digest = digest.with("then", "power_on");
    }
    if let Some(grade) = grade {
        digest = digest.with("minimum_grade", words::grade_word(grade));
    }
    with_deadline(digest, deadline).hex()
}
