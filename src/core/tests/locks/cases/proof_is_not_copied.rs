// error E0599
use picket_core::confirm::ConfirmedOff;

pub fn two(proof: ConfirmedOff) -> (ConfirmedOff, ConfirmedOff) {
    (proof.clone(), proof)
}

fn main() {}
