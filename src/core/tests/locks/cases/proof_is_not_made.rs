// error E0451
use picket_core::confirm::ConfirmedOff;
use picket_core::ids::{FenceId, NodeId};

pub fn forged(node: NodeId, fence: FenceId, other: ConfirmedOff) -> ConfirmedOff {
    ConfirmedOff { node, fence, ..other }
}

fn main() {}
