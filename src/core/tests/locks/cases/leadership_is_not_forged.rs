// error E0451
use picket_core::election::Leadership;
use picket_core::ids::Term;

pub fn forged(term: Term, other: Leadership) -> Leadership {
    Leadership { term, ..other }
}

fn main() {}
