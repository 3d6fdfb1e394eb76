//! A fence that is asked for.

use std::time::Duration;

use picket_core::cluster_node::ClusterNode;
use picket_core::device::Grade;
use picket_core::event::{BoundKey, Holder};
use picket_core::ids::Generation;
use picket_core::record::{SetAside, Then};
use picket_engine::{Asides, FenceCall, Until};
use picket_proto::v1;

use super::fields::{
    choice, deadline, holder, key, lost, not_after, printable, reason, sentence, with_deadline,
};
use crate::convert::time::span;
use crate::convert::words;
use crate::digest::Digest;
use crate::fault::{Fault, Fields};
use crate::select::NodeTarget;

/// The longest name, or UID, of a Node, in bytes.
const NAME: usize = 253;
/// How long a request may want to wait.
const QUEUE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));

/// A fence that is asked for.
#[derive(Debug)]
pub(crate) struct FenceParameters {
    /// The node.
    pub(crate) node: NodeTarget,
    /// What the engine is asked.
    pub(crate) call: FenceCall,
    /// When the caller's stream ends.
    pub(crate) until: Until,
    /// It is only to be planned.
    pub(crate) dry_run: bool,
    /// It may wait in the queue; within, at most how long.
    pub(crate) queue: Option<Option<Duration>>,
    /// The Node of Kubernetes that is meant, where the caller names one.
    pub(crate) kubernetes_node: Option<ClusterNode>,
}

/// Checks a fence request of `caller`.
pub(crate) fn fence(request: &v1::FenceRequest, caller: &str) -> Result<FenceParameters, Fault> {
    let mut fields = Fields::default();
    let node = NodeTarget::of(request.node.as_ref(), "node", &mut fields);
    let reason = reason(&request.reason, &mut fields);
    let holder = holder(&request.holder, caller, &mut fields);
    let until: v1::FenceUntil = choice("until", request.until, &mut fields);
    let then: v1::FenceThen = choice("then", request.then, &mut fields);
    let grade: v1::Grade = choice("minimum_grade", request.minimum_grade, &mut fields);
    let deadline = deadline(request.deadline.as_ref(), &mut fields);
    let not_after = not_after(request.not_after.as_ref(), &mut fields);
    let key = key(&request.idempotency_key, &mut fields);
    let budget = aside("override_budget", request.override_budget.as_ref(), caller, &mut fields);
    let quorum = aside("override_quorum", request.override_quorum.as_ref(), caller, &mut fields);
    let set_aside = (budget.is_some() || quorum.is_some()).then_some(Asides { budget, quorum });
    let queue = queue(request.queue.as_ref(), &mut fields);
    let kubernetes_node = kubernetes_node(request.kubernetes_node.as_ref(), &mut fields);
    fields.done()?;
    let then = match then {
        v1::FenceThen::Unspecified | v1::FenceThen::StayOff => Then::StayOff,
        v1::FenceThen::PowerOn => Then::PowerOn,
    };
    let min_grade = words::grade_of(grade);
    // Of the reason as it was written: a repeat is found also where a version before bound the key (S20).
    let digest = fence_digest(&holder, request.reason.trim(), then, min_grade, deadline);
    let key = key.map(|key| BoundKey::of(&holder, &key, digest));
    Ok(FenceParameters {
        node: node.ok_or_else(|| lost("node"))?,
        call: FenceCall {
            // By its roles for that node, which is found after this.
            holder: Holder {
                name: holder,
                by: caller.to_owned(),
                reason,
                then,
                by_person: false,
                asker: None,
            },
            key,
            min_grade,
            deadline,
            not_after,
            expected_generation: request.expected_generation.map(Generation),
            set_aside,
            turn: None,
        },
        dry_run: request.dry_run,
        queue,
        kubernetes_node,
        until: match until {
            v1::FenceUntil::Confirmed => Until::Confirmed,
            v1::FenceUntil::Unspecified | v1::FenceUntil::Released => Until::Released,
        },
    })
}

/// A limit that is to be set aside, with the reason for it.
fn aside(
    field: &str,
    given: Option<&v1::LimitOverride>,
    caller: &str,
    fields: &mut Fields,
) -> Option<SetAside> {
    let (given, field) = (given?, format!("{field}.reason"));
    if given.reason.trim().is_empty() {
        fields.wrong(&field, "is empty: say why the limit is set aside; it is audited");
    }
    Some(SetAside { by: caller.to_owned(), reason: sentence(&field, &given.reason, fields) })
}

/// A Node without a UID may be any that has that name.
fn kubernetes_node(given: Option<&v1::KubernetesNode>, fields: &mut Fields) -> Option<ClusterNode> {
    let given = given?;
    for (field, text) in [("name", &given.name), ("uid", &given.uid)] {
        let field = format!("kubernetes_node.{field}");
        if text.is_empty() {
            fields.wrong(&field, "is empty: a Node is named by its name and its UID");
        } else {
            printable(&field, text, NAME, fields);
        }
    }
    Some(ClusterNode { name: given.name.clone(), uid: given.uid.clone() })
}

fn queue(given: Option<&v1::QueueWish>, fields: &mut Fields) -> Option<Option<Duration>> {
    let Some(at_most) = given?.at_most.as_ref() else { return Some(None) };
    let read = span(at_most).filter(|time| (QUEUE.0..=QUEUE.1).contains(time));
    if read.is_none() {
        fields.wrong("queue.at_most", "is out of range: 1 s to 1 day, or left out for what the settings say");
    }
    Some(read)
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
