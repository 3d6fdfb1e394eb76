//! S4, S5, S12: a node becomes Fenced only by a proof made in this fence, generation, leadership and round, or by a
//! person's word, and never while an on or an unhold is open.

use picket_core::record::{NodeRecord, Phase};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(200))]
    #[test]
    fn only_a_present_proof_confirms(moves in moves()) {
        // The move in which the evidence last began from zero.
        let mut began = 0;
        walk(&moves, |taken, _| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            let proven = |record: &NodeRecord| record.fence.as_ref().and_then(|fence| fence.evidence.clone());
            if let (Ok(_), Some(made)) = (&taken.result, taken.made) {
                assert!(made > began, "made in move {made}, and the evidence began from zero in {began}");
                assert_eq!(before.phase, Phase::Fencing);
                assert!(!before.ledger.bars_proof(), "{:?}", before.ledger);
                assert!(after.fence.as_ref().unwrap().attestation.is_none());
            } else if proven(after) != proven(before) && proven(after).is_some() {
                assert_eq!(taken.what, "attest");
                assert!(!before.ledger.bars_proof(), "{:?}", before.ledger);
                let word = after.fence.as_ref().unwrap().attestation.as_ref().unwrap();
                assert_eq!(word.generation, before.generation);
            }
            let begins = after.phase == Phase::Fencing && before.phase != Phase::Fencing;
            if begins || taken.what == "another leader" {
                began = taken.number;
            }
        });
    }
}
