// error E0599
use picket_core::step::Saved;

pub fn two(saved: Saved) -> (Saved, Saved) {
    (saved.clone(), saved)
}

fn main() {}
