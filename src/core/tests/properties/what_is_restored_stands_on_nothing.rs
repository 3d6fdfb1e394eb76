//! S21: what a restore keeps off is neither proven nor let go, and nothing is sent to it; its hold is an admin's to drop; a
//! fence of it goes through its own off.

use picket_core::order::Opened;
use picket_core::record::{Cause, Phase, Standing};
use picket_core::restore::HOLD;
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn what_is_restored_stands_on_nothing(moves in moves()) {
        walk(&moves, |taken, _| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            if after.is_groundless() {
                let fence = after.fence.as_ref().unwrap();
                assert!(fence.evidence.is_none() && fence.attestation.is_none(), "{fence:?}");
                assert!(fence.releases.iter().all(|release| release.attempts == 0), "{fence:?}");
                let stands = |issued: &picket_core::record::Issued| issued.standing(after) == Standing::Stands;
                assert!(!after.receipts.iter().any(stands), "{:?}", after.receipts);
                assert!(!matches!(after.phase, Phase::Fencing | Phase::Released | Phase::Normal), "{after:?}");
            }
            // On the way back what was done is undone, and nothing else is ever sent.
            let undone = |one: &Opened| matches!(one, Opened::Unhold(_) | Opened::On(_));
            if before.is_groundless() {
                assert!(taken.opened().iter().all(undone), "{} sent {:?}", taken.what, taken.opened());
            }
            if before.holds.contains_key(HOLD) && !after.holds.contains_key(HOLD) {
                // Both are an admin's.
                assert!(matches!(taken.what, "drop restored" | "retire"), "{} dropped it", taken.what);
            }
            if !before.holds.contains_key(HOLD) && after.holds.contains_key(HOLD) {
                assert!(matches!(taken.what, "read" | "off intent" | "attest"), "{} placed it", taken.what);
            }
            let read = taken.what == "read" && taken.result.is_ok();
            if read && after.phase == Phase::Fenced && before.phase != Phase::Fenced {
                assert!(after.is_groundless() && after.holds.contains_key(HOLD) && after.restored.is_none());
            }
            let began = before.phase != Phase::Fencing && after.phase == Phase::Fencing;
            if before.is_groundless() && began {
                let fence = after.fence.as_ref().unwrap();
                assert!(fence.cause == Cause::Asked && fence.generation == after.generation);
                assert!(fence.evidence.is_none() && after.generation > before.generation);
            }
        });
    }
}
