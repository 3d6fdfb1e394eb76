// error E0451
use picket_core::ground::{ReleaseGround, ReleasePermit};
use picket_core::ids::Generation;
use picket_core::time::{BootTime, WallTime};

pub fn forged(
    ground: &ReleaseGround,
    generation: Generation,
    not_after: WallTime,
    checked_at: BootTime,
) -> ReleasePermit<'_> {
    ReleasePermit { ground, generation, not_after, checked_at, by_parent: false }
}

fn main() {}
