//! Generations, effects and versions only grow; what is opened gets a number that was never used.

use std::collections::BTreeMap;

use picket_core::ids::EffectId;
use picket_core::ledger::EffectKind;
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn numbers_only_grow(moves in moves()) {
        let mut seen: BTreeMap<EffectId, EffectKind> = BTreeMap::new();
        walk(&moves, |taken, _| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            assert!(after.generation >= before.generation);
            assert!(after.generation.0 <= before.generation.0 + 2, "a fence without releases may end at once");
            let ids = |record: &picket_core::record::NodeRecord| record.fence.as_ref().map(|fence| fence.id);
            if ids(before) != ids(after) && ids(after).is_some() {
                assert!(after.generation > before.generation, "each fence has a generation of its own");
            }
            let phase = after.phase.label();
            if phase == "unfencing" && !matches!(before.phase.label(), "unfencing" | "power_on_failed" | "needs_operator") {
                assert!(after.generation > before.generation, "each unfence has a generation of its own");
            }
            let newest = seen.keys().next_back().copied();
            for open in after.ledger.open() {
                match seen.insert(open.id, open.kind.clone()) {
                    Some(kind) => assert_eq!(kind, open.kind, "a number means one thing"),
                    None => assert!(Some(open.id) > newest, "{} was used before", open.id),
                }
            }
            if taken.result.is_ok() && taken.after != taken.before {
                assert_eq!(taken.after.version, taken.before.version.next());
            }
        });
    }
}
