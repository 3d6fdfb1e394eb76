// error E0599
use picket_core::ground::ReleasePermit;

pub fn two(permit: ReleasePermit<'_>) -> (ReleasePermit<'_>, ReleasePermit<'_>) {
    (permit.clone(), permit)
}

fn main() {}
