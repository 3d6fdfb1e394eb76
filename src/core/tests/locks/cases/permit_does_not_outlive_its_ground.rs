// error E0505
use picket_core::ground::{ReleaseGround, ReleasePermit};

pub fn late(ground: ReleaseGround, ask: for<'g> fn(&'g ReleaseGround) -> ReleasePermit<'g>) {
    let permit = ask(&ground);
    drop(ground);
    println!("{:?}", permit.node());
}

fn main() {}
