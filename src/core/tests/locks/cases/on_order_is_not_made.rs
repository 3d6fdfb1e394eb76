// error E0423
use picket_core::order::{OnOrder, Order};

pub fn forged(order: Order) -> OnOrder {
    OnOrder(order)
}

fn main() {}
