// error E0061
use picket_core::step::Step;

pub fn opened(step: Step) -> usize {
    step.open().orders().len()
}

fn main() {}
