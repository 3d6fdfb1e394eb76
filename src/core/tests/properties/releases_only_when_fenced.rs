//! S4: an attempt of a release is opened only while the node is Fenced, with its evidence stored, in order.

use picket_core::ids::ReleaseId;
use picket_core::order::Opened;
use picket_core::record::Phase;
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
                assert!(earlier.clone().all(|release| release.stage.is_over() || beside(&release.id)));
            }
        });
    }
}
