//! S7: an on is opened only while unfencing, under that generation, with no hold, nothing open that bars it, everything
//! released, supplies first.

use picket_core::device::DeviceClass;
use picket_core::order::Opened;
use picket_core::record::{Bringing, Phase};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{is_released, moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn an_on_is_opened_only_through_its_gate(moves in moves()) {
        walk(&moves, |taken, _| {
            for one in taken.opened() {
                let Opened::On(on) = one else { continue };
                let (before, after) = (&taken.before.record, &taken.after.record);
                assert_eq!(before.phase, Phase::Unfencing);
                assert_eq!(on.generation(), after.generation);
                assert!(before.holds.is_empty());
                assert!(!before.ledger.bars_on(), "{:?}", before.ledger);
                assert!(is_released(before), "{:?}", before.fence);
                let fence = before.fence.as_ref().unwrap();
                assert!(fence.generation < before.generation, "the fence's own generation never switches on");
                let class = |id| fence.topology.device(id).unwrap().class;
                if class(on.device()) == DeviceClass::Host {
                    assert_eq!(before.bringing, Bringing::PowerOn);
                    assert!(fence.switched_off.iter().all(|id| class(id) != DeviceClass::Supply));
                }
            }
        });
    }
}
