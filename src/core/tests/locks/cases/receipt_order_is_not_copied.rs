// error E0599
use picket_core::receipt::ReceiptOrder;

pub fn twice(order: ReceiptOrder) -> (ReceiptOrder, ReceiptOrder) {
    (order.clone(), order)
}

fn main() {}
