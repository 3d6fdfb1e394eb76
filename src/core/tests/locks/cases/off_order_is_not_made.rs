// error E0451
use picket_core::order::{OffOrder, Order};

pub fn forged(order: Order) -> OffOrder {
    OffOrder { order, found: Default::default() }
}

fn main() {}
