//! S11: what was found before the first hold stays until the hold is undone, through breaches, retries and new fences.

use picket_core::record::NodeRecord;
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn what_was_found_stays_until_it_is_put_back(moves in moves()) {
        walk(&moves, |taken, _| {
            let holds = |record: &NodeRecord| {
                record.fence.as_ref().map(|fence| fence.holds.clone()).unwrap_or_default()
            };
            let after = holds(&taken.after.record);
            for (device, old) in holds(&taken.before.record) {
                let Some(new) = after.get(&device) else {
                    // What is gone for good is put back by nobody; it stands in the history.
                    let put_back = matches!(taken.what, "unheld" | "retire");
                    assert!(put_back, "{device}'s hold was forgotten by {}", taken.what);
                    continue;
                };
                for (key, value) in &old.found {
                    assert_eq!(new.found.get(key), Some(value), "{device}: {key}");
                }
            }
        });
    }
}
