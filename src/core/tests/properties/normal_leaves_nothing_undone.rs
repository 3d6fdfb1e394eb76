//! A node becomes Normal only out of Unfencing, when it is said to be back, with no hold, no supply off, nothing open
//! that may still switch it off; and a fence ends with an end in its history.

use picket_core::device::DeviceClass;
use picket_core::record::Phase;
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn normal_leaves_nothing_undone(moves in moves()) {
        walk(&moves, |taken, walk| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            let phases = (&before.phase, &after.phase);
            let ended = matches!(after.phase, Phase::Normal | Phase::Retired);
            assert_eq!(ended, after.fence.is_none(), "a fence stands in the record until its end");
            if phases.0 == phases.1 || *phases.1 != Phase::Normal {
                return;
            }
            if *phases.0 == Phase::Retired {
                assert_eq!(taken.what, "resettled", "another machine");
                return;
            }
            assert_eq!((phases.0, taken.what), (&Phase::Unfencing, "back"));
            assert!(before.holds.is_empty() && !before.ledger.bars_on());
            let fence = before.fence.as_ref().unwrap();
            let is_supply = |id| fence.topology.device(id).is_some_and(|spec| spec.class == DeviceClass::Supply);
            assert!(fence.holds.is_empty() && !fence.switched_off.iter().any(is_supply));
            let written = walk.player.store.last_write().fences;
            assert!(written.iter().any(|ended| ended.id == fence.id && ended.ended_at.is_some()));
        });
    }
}
