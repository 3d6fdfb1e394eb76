// error E0451
use picket_core::ids::Incarnation;
use picket_core::step::Saved;
use picket_core::store::Stored;

pub fn forged(stored: Stored, incarnation: Incarnation) -> Saved {
    Saved { nonce: 1, stored, incarnation }
}

fn main() {}
