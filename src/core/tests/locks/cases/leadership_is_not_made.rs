// error E0599
use picket_core::election::Leadership;

fn main() {
    let _ = Leadership::default();
}
