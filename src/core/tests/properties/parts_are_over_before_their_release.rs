//! S7: a release that is made of parts is over only with all of them, and complete only once nothing of it was found attached.

use picket_core::record::{Fence, ReleaseStage};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{Move, moves, walk};

fn stage(fence: Option<&Fence>, id: &picket_core::ids::ReleaseId) -> Option<ReleaseStage> {
    Some(fence?.release(id)?.stage)
}

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn a_release_is_over_only_with_all_of_its_parts(moves in moves()) {
        walk(&moves, |taken, _| {
            let Some(fence) = &taken.after.record.fence else { return };
            for (place, release) in fence.releases.iter().enumerate() {
                let parts: Vec<_> = fence.parts(&release.id).filter(|part| part.id != release.id).collect();
                if release.id.is_part() || parts.is_empty() {
                    assert_eq!(release.id.is_part(), release.part.is_some());
                    continue;
                }
                assert!(fence.releases[place + 1..].iter().all(|later| !later.id.belongs_to(&release.id)));
                if release.stage.is_over() {
                    assert!(parts.iter().all(|part| part.stage.is_over()), "{fence:?}");
                }
                let before = stage(taken.before.record.fence.as_ref().filter(|old| old.id == fence.id), &release.id);
                let became = before.is_some_and(|before| before != ReleaseStage::Complete);
                if became && release.stage == ReleaseStage::Complete {
                    assert_eq!(taken.what, "survey");
                }
            }
        });
    }
}

/// The walk is worth its name here: wherever a random one begins with this, a volume is found, let go, and the release is complete.
#[test]
fn releases_of_parts_come_to_their_end() {
    let (detach, part, its_volume) = (1, 3, 1);
    let beginning = [
        Move::named("fence", 0, 1),
        Move::named("off intent", 0, 0),
        Move::named("confirm", 0, 0),
        Move::named("survey", detach, its_volume),
        Move::named("release intent", part, 0),
        Move::named("release progress", part, 0),
        Move::named("survey", detach, 0),
    ];
    let mut ended = 0;
    walk(&beginning, |taken, _| {
        let fence = taken.after.record.fence.as_ref();
        ended += u32::from(stage(fence, &crate::support::release("detach")) == Some(ReleaseStage::Complete));
        assert!(taken.result.is_ok(), "{}: {:?}", taken.what, taken.result);
    });
    assert_eq!(ended, 1);
}
