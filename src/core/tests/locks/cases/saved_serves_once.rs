// error E0382
use picket_core::step::{Saved, Step};

pub fn twice(saved: Saved, one: Step, other: Step) {
    let _ = one.open(saved);
    let _ = other.open(saved);
}

fn main() {}
