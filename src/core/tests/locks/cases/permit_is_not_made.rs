// error E0451
use picket_core::device::Identity;
use picket_core::election::Leadership;
use picket_core::ground::{ReleaseGround, ReleasePermit};
use picket_core::ids::Generation;
use picket_core::time::{BootTime, Clock, WallTime};

pub fn forged<'g>(
    ground: &'g ReleaseGround,
    generation: Generation,
    not_after: WallTime,
    (checked_at, fresh_until): (BootTime, BootTime),
    (leadership, clock): (&'g Leadership, &'g dyn Clock),
    identities: Vec<Identity>,
) -> ReleasePermit<'g> {
    ReleasePermit { ground, generation, not_after, checked_at, by_parent: false, leadership, clock, fresh_until, identities }
}

fn main() {}
