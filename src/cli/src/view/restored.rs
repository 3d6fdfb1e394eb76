//! Nodes of a store that came out of a backup: what a person does next.

use picket_proto::v1::{Node, Phase};

/// The holder under whose name a restored store keeps nodes off.
pub const HOLDER: &str = "restored";

/// Whether it is kept off because its store was restored, and nothing has been proven of it since.
pub fn is_kept_off(node: &Node) -> bool {
    node.phase() == Phase::Fenced && !node.proven && node.holds.iter().any(|hold| hold.holder == HOLDER)
}

/// What to do about it; `None`: it is not kept off by a restore.
pub fn next(node: &Node) -> Option<String> {
    let name = &node.name;
    is_kept_off(node).then(|| {
        format!(
            "it was off when the store was restored, which proves nothing: an admin lets it go by picket unhold {name} \
             --holder {HOLDER} --reason ...; picket fence {name} proves it, and lets its volumes go"
        )
    })
}
