// error E0616
use picket_core::confirm::ConfirmedOff;
use picket_core::ids::Generation;

pub fn renewed(proof: &mut ConfirmedOff, generation: Generation) {
    proof.generation = generation;
}

fn main() {}
