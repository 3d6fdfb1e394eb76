// error E0308
use picket_core::order::{OnOrder, PendingOn};

pub fn without_asking_the_store(pending: PendingOn, send: fn(OnOrder)) {
    send(pending);
}

fn main() {}
