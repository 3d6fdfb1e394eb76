//! What is stored is what was decided: a record comes back from JSON as it was, after every step.

use picket_core::record::NodeRecord;
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(40))]
    #[test]
    fn a_record_comes_back_as_it_was(moves in moves()) {
        walk(&moves, |taken, _| {
            let text = serde_json::to_string(&taken.after.record).unwrap();
            let back: NodeRecord = serde_json::from_str(&text).unwrap();
            assert_eq!(back, taken.after.record);
        });
    }
}
