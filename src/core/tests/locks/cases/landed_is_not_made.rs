// error E0451
use picket_core::order::Opened;
use picket_core::step::Landed;
use picket_core::store::Stored;

pub fn forged(stored: Stored, orders: Vec<Opened>) -> Landed {
    Landed { stored, orders }
}

fn main() {}
