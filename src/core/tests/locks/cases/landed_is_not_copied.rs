// error E0599
use picket_core::step::Landed;

pub fn two(landed: Landed) -> (Landed, Landed) {
    (landed.clone(), landed)
}

fn main() {}
