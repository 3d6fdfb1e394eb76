// error E0451
use picket_core::ground::{ReleaseGround, ReleasePermit};
use picket_core::ids::Generation;
use picket_core::time::WallTime;

pub fn forged(ground: &ReleaseGround, generation: Generation, not_after: WallTime) -> ReleasePermit<'_> {
    ReleasePermit { ground, generation, not_after }
}

fn main() {}
