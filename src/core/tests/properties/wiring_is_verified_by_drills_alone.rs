//! S13: wiring counts as verified only for supplies whose Off was the proof of a drill, and a drill begins in Normal.

use picket_core::record::{Cause, Phase};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn wiring_is_verified_by_drills_alone(moves in moves()) {
        walk(&moves, |taken, _| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            if taken.what == "drill" {
                // Out of a backup it is not known yet that nothing is wrong with it.
                let is_known = before.phase == Phase::Normal && before.restored.is_none();
                assert_eq!(taken.result.is_ok(), is_known);
            }
            if after.wired.len() > before.wired.len() {
                let fence = before.fence.as_ref().unwrap();
                assert_eq!((taken.what, fence.cause), ("verified", Cause::Drill));
                let level = fence.evidence.as_ref().unwrap().level;
                let proven = &fence.topology.level(level - 1).unwrap().devices;
                assert!(after.wired.keys().all(|id| proven.iter().any(|spec| spec.id == *id)));
            }
        });
    }
}
