// error E0423
use picket_core::order::{OffOrder, Order};

pub fn forged(order: Order) -> OffOrder {
    OffOrder(order)
}

fn main() {}
