// error E0624
use picket_core::ids::Version;
use picket_core::record::NodeRecord;
use picket_core::step::Step;

pub fn forged(version: Version, record: NodeRecord) -> Step {
    Step::new(version, record)
}

fn main() {}
