//! K3 in the record: what a release sets up stands in the ledger from its first attempt that may set it up on, bars every on, and its release is not complete
//! while it stands.

use picket_core::ids::ReleaseId;
use picket_core::record::{NodeRecord, ReleaseStage};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

fn stands(record: &NodeRecord, release: &ReleaseId) -> bool {
    record.ledger.standing().any(|(_, one)| one == release)
}

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn what_stands_bars_the_on(moves in moves()) {
        walk(&moves, |taken, _| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            if after.ledger.standing().next().is_some() {
                assert!(after.ledger.bars_on());
            }
            if taken.what == "stands found" && taken.result.is_ok() {
                assert!(after.ledger.standing().next().is_some());
            }
            let stage = |record: &NodeRecord, id: &ReleaseId| {
                record.fence.as_ref().and_then(|fence| fence.release(id)).map(|release| release.stage)
            };
            for release in after.fence.iter().flat_map(|fence| &fence.releases) {
                let was = stage(before, &release.id);
                if taken.what == "release intent" && was != Some(release.stage) && release.lingers.is_some() {
                    assert!(stands(after, &release.id), "{:?}", after.ledger);
                }
                if release.stage == ReleaseStage::Complete && was.is_some_and(|was| was != ReleaseStage::Complete) {
                    assert!(!stands(after, &release.id), "{} of {release:?}", taken.what);
                }
            }
        });
    }
}
