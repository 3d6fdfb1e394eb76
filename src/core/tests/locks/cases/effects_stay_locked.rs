// error E0616
use picket_core::step::Step;

pub fn opened(step: Step) -> usize {
    step.effects.len()
}

fn main() {}
