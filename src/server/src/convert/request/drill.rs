//! A drill that is asked for.

use picket_core::event::{BoundKey, Holder};
use picket_core::record::Then;
use picket_engine::FenceCall;
use picket_proto::v1::{self, NodeSet, drill_request, node_set};

use super::fields::{key, lost, reason};
use crate::digest::Digest;
use crate::fault::{Fault, Fields};
use crate::select::{NodeSetTarget, NodeTarget};

/// Which node is to be drilled.
#[derive(Debug)]
pub(crate) enum DrillTarget {
    /// That one.
    Node(NodeTarget),
    /// One of that group.
    Group(NodeSetTarget),
}

/// A drill that is asked for.
#[derive(Debug)]
pub(crate) struct DrillParameters {
    /// Which node.
    pub(crate) target: DrillTarget,
    /// What the engine is asked.
    pub(crate) call: FenceCall,
    /// Whether it is only to be told what would happen.
    pub(crate) dry_run: bool,
}

/// Checks a drill of `caller`. Its hold ends with the release: the node is brought back.
pub(crate) fn drill(request: &v1::DrillRequest, caller: &str) -> Result<DrillParameters, Fault> {
    let mut fields = Fields::default();
    let target = match &request.target {
        Some(drill_request::Target::Node(node)) => {
            NodeTarget::of(Some(node), "node", &mut fields).map(DrillTarget::Node)
        }
        Some(drill_request::Target::Group(group)) => {
            let set = NodeSet { of: Some(node_set::Of::Group(group.clone())) };
            NodeSetTarget::of(Some(&set), "target", &mut fields).map(DrillTarget::Group)
        }
        None => {
            fields.wrong("target", "is missing: name the node, or a group of which one is chosen");
            None
        }
    };
    let reason = reason(&request.reason, &mut fields);
    let key = key(&request.idempotency_key, &mut fields);
    fields.done()?;
    let digest = Digest::of("drill").with("reason", request.reason.trim()).hex();
    Ok(DrillParameters {
        target: target.ok_or_else(|| lost("target"))?,
        call: FenceCall {
            holder: Holder {
                name: caller.to_owned(),
                by: caller.to_owned(),
                reason,
                then: Then::PowerOn,
                by_person: true,
                asker: None,
            },
            key: key.map(|key| BoundKey::of(caller, &key, digest)),
            min_grade: None,
            deadline: None,
            not_after: None,
            expected_generation: None,
            set_aside: None,
            turn: None,
        },
        dry_run: request.dry_run,
    })
}
