//! S16: a node is retired only once its volumes are let go or given up by name, and out of the ledger nothing that is
//! bounded is forgotten; nothing is sent to it, and nothing but other settings makes it a node again.

use picket_core::record::{Phase, ReleaseState};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn what_is_retired_stays_so(moves in moves()) {
        walk(&moves, |taken, walk| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            assert_eq!(after.phase == Phase::Retired, after.retired.is_some());
            if before.phase != Phase::Retired && after.phase == Phase::Retired {
                let fence = before.fence.as_ref().unwrap();
                let begun = |one: &ReleaseState| one.attempts > 0 || one.unfinished;
                let known = after.retired.as_ref().is_some_and(|retired| retired.settings.is_some());
                let over = |one: &ReleaseState| one.stage.is_over() || !known && !begun(one);
                assert!(fence.releases.iter().all(over), "{fence:?}");
                let under_way = matches!(before.phase, Phase::Fencing | Phase::Unfencing);
                assert!(!known || !under_way, "{before:?}");
                assert!(after.generation > before.generation && after.holds.is_empty());
                assert!(after.learned.is_empty() && after.wired.is_empty());
                assert!(after.identity_proofs.is_empty());
                for open in before.ledger.open().iter().filter(|open| open.life.is_some()) {
                    assert!(after.ledger.get(open.id).is_some(), "{open:?} is forgotten");
                }
                let written = walk.player.store.last_write().fences;
                let ended = written.iter().find(|ended| ended.id == fence.id).unwrap();
                assert!(ended.ended_at.is_some() && ended.all_released());
            }
            if before.phase == Phase::Retired {
                assert!(taken.opened().is_empty(), "{} sent something", taken.what);
                if after.phase != Phase::Retired {
                    assert_eq!((taken.what, &after.phase), ("resettled", &Phase::Normal));
                }
            }
        });
    }
}
