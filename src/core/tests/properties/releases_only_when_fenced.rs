//! S4: an attempt of a release is opened only while the node is Fenced, with its evidence stored, in order.

use picket_core::ids::ReleaseId;
use picket_core::order::Opened;
use picket_core::record::{Phase, ReleaseState};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn a_release_is_opened_only_when_fenced(moves in moves()) {
        walk(&moves, |taken, _| {
            for one in taken.opened() {
                let Opened::Release(order) = one else { continue };
                let before = &taken.before.record;
                assert_eq!(before.phase, Phase::Fenced);
                let fence = before.fence.as_ref().unwrap();
                assert!(fence.evidence.is_some() && fence.generation == before.generation);
                let earlier = fence.releases.iter().take_while(|release| release.id != *order.release());
                // The parts of one release go side by side.
                let beside = |id: &ReleaseId| order.release().is_part() && id.whole() == order.release().whole();
                // One that was passed on waits for what acts in its place.
                let whole = order.release().whole();
                let waits = |release: &ReleaseState| release.passed_on.as_ref() == Some(&whole);
                let is_over = |release: &ReleaseState| release.stage.is_over();
                assert!(earlier.clone().all(|one| is_over(one) || beside(&one.id) || waits(one)));
                let acts = fence.release(order.release()).and_then(|one| fence.release(one.passed_on.as_ref()?));
                assert!(acts.is_none_or(is_over));
            }
        });
    }
}
