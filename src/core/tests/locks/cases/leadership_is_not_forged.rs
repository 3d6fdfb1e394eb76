// error E0451
use picket_core::election::Leadership;
use picket_core::ids::Incarnation;

pub fn forged(incarnation: Incarnation, other: Leadership) -> Leadership {
    Leadership { incarnation, ..other }
}

fn main() {}
