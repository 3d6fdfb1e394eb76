// error E0451
use picket_core::ids::{DeviceId, EffectId, Generation, NodeId};
use picket_core::order::Order;

pub fn forged(node: NodeId, effect: EffectId, generation: Generation, device: DeviceId) -> Order {
    Order { node, effect, generation, device, session: None, life: None }
}

fn main() {}
