// error E0451
use picket_core::order::{OnOrder, Order};
use picket_core::time::BootTime;

pub fn forged(order: Order, checked_at: BootTime) -> OnOrder {
    OnOrder { order, checked_at }
}

fn main() {}
