// error E0599
use picket_core::election::Leadership;

pub fn two(leadership: Leadership) -> (Leadership, Leadership) {
    (leadership.clone(), leadership)
}

fn main() {}
