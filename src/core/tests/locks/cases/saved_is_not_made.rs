// error E0451
use picket_core::step::Saved;
use picket_core::store::Stored;

pub fn forged(stored: Stored) -> Saved {
    Saved { nonce: 1, stored }
}

fn main() {}
