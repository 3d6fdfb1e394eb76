// error E0451
use picket_core::device::Identity;
use picket_core::ground::{PermitCheck, ReleaseGround, ReleasePermit};
use picket_core::ids::Generation;
use picket_core::time::{BootTime, WallTime};

pub fn forged<'g>(
    ground: &'g ReleaseGround,
    generation: Generation,
    not_after: WallTime,
    checked_at: BootTime,
    check: PermitCheck,
    identities: Vec<Identity>,
) -> ReleasePermit<'g> {
    ReleasePermit { ground, generation, not_after, checked_at, by_parent: false, check, identities }
}

fn main() {}
