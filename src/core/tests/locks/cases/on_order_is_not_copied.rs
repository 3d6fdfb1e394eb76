// error E0599
use picket_core::order::OnOrder;

pub fn two(order: OnOrder) -> (OnOrder, OnOrder) {
    (order.clone(), order)
}

fn main() {}
