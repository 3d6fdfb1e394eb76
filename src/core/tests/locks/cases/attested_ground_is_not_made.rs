// error E0451
use picket_core::ground::AttestedOff;
use picket_core::ids::Term;

pub fn forged(term: Term, other: AttestedOff) -> AttestedOff {
    AttestedOff { term, ..other }
}

fn main() {}
