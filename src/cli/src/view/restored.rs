//! Nodes of a store that came out of a backup: what a person does next.

use picket_proto::v1::{Node, Phase, Power, Reason};

/// The holder under whose name a restored store keeps nodes off.
pub const HOLDER: &str = "restored";

/// Whether it is kept off because its store was restored, and nothing has been proven of it since.
pub fn is_kept_off(node: &Node) -> bool {
    node.phase() == Phase::Fenced && !node.proven && node.holds.iter().any(|hold| hold.holder == HOLDER)
}

/// What to do about it; `None`: a restore is not what keeps it where it is.
pub fn next(node: &Node) -> Option<String> {
    let name = &node.name;
    if is_kept_off(node) {
        return Some(format!(
            "it was off when the store was restored, which proves nothing: an admin lets it go by picket unhold {name} \
             --holder {HOLDER} --reason ...; picket fence {name} proves it, and lets its volumes go"
        ));
    }
    if node.phase() != Phase::NeedsOperator || node.reason() != Reason::Restored {
        return None;
    }
    let power = node.power.map(|power| power.power());
    Some(match power {
        Some(Power::On) => format!(
            "the backup says that it was kept off, and it is on. Was it brought back since: picket stand-down {name} \
             --reason ...; was it not: picket fence {name}"
        ),
        _ => format!(
            "the backup says that it was kept off, and no device says whether it is on: picket check {name} says why; picket \
             fence {name} switches it off"
        ),
    })
}
