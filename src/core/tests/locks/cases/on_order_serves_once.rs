// error E0382
use picket_core::order::OnOrder;

pub fn twice(order: OnOrder, send: fn(OnOrder)) {
    send(order);
    send(order);
}

fn main() {}
