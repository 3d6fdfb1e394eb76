// error E0451
use picket_core::receipt::SeenOff;
use picket_core::time::WallTime;

pub fn later<'g>(seen: SeenOff<'g>, off_at: WallTime) -> SeenOff<'g> {
    SeenOff { off_at, ..seen }
}

fn main() {}
