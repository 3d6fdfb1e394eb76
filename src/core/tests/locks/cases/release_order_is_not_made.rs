// error E0451
use picket_core::ids::ReleaseId;
use picket_core::order::ReleaseOrder;

pub fn forged(release: ReleaseId, other: ReleaseOrder) -> ReleaseOrder {
    ReleaseOrder { release, ..other }
}

fn main() {}
