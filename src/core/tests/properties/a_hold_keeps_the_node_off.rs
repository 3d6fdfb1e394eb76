//! S7: a hold is placed on what is off or on its way there, under no name but its own; while it stands no on is opened, and
//! only its own name drops it (a restore's own, only an admin's call), a person's word that the node was alive or is gone, or, of one that came with a fence,
//! the end of that before its first off.

use picket_core::order::Opened;
use picket_core::record::Phase;
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn a_hold_keeps_the_node_off(moves in moves()) {
        walk(&moves, |taken, _| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            if taken.what == "hold" {
                let kept_off = matches!(
                    before.phase,
                    Phase::Fencing | Phase::Fenced | Phase::Released | Phase::NeedsOperator(_)
                );
                let current = before.fence.as_ref().is_some_and(|fence| fence.generation == before.generation);
                // A restore's own name is nobody's to place.
                let named = matches!(&taken.result, Err(refused) if refused.to_string().contains("a restore's own"));
                assert_eq!(taken.result.is_ok(), kept_off && current && !named, "{before:?}");
                let kept = before.holds.iter().filter(|(name, hold)| {
                    after.holds.get(*name).is_some_and(|now| now.since == hold.since)
                });
                assert_eq!(kept.count(), before.holds.len(), "no hold is lost, or renewed in its age");
                assert_eq!((&before.phase, before.generation), (&after.phase, after.generation));
                assert!(taken.opened().is_empty());
            }
            let lasting = |hold: &picket_core::record::Hold| !hold.drop_when_released;
            for (name, hold) in before.holds.iter().filter(|(_, hold)| lasting(hold)) {
                let ends_unsent = matches!(taken.what, "abort" | "recovered" | "bar");
                let may_end =
                    ends_unsent || matches!(taken.what, "unfence" | "stand down" | "retire" | "drop restored");
                assert!(after.holds.contains_key(name) || may_end, "{name} was dropped by {}", taken.what);
                assert!(!ends_unsent || !hold.placed_alone || taken.result.is_err(), "{name} was told that it stands");
                assert!(taken.what != "bar" || !hold.kept || taken.result.is_err(), "{name} stood in the backup");
            }
            let on = taken.opened().iter().any(|one| matches!(one, Opened::On(_)));
            assert!(!on || before.holds.is_empty());
        });
    }
}
