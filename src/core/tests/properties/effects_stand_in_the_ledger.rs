//! S5: whatever is opened for sending stands in the stored ledger first, with its generation, its leadership and its
//! longest life; what was sent keeps its entry until its end is known.

use std::time::Duration;

use picket_core::ids::ReleaseId;
use picket_core::ledger::{EffectKind, OpenEffect, describe};
use picket_core::order::Opened;
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn what_is_opened_stands_in_the_ledger(moves in moves()) {
        walk(&moves, |taken, walk| {
            let record = &taken.after.record;
            let fence = record.fence.as_ref();
            let life = |kind: &EffectKind| {
                let spec = kind.device().and_then(|id| fence?.topology.device(id));
                match kind {
                    EffectKind::Receipt(_) => {
                        let issued = record.receipts.iter().find(|one| describe(kind).ends_with(&one.id.to_string()));
                        issued.map(|one| one.life() + Duration::from_secs(5))
                    }
                    EffectKind::Release(id) => fence.and_then(|fence| fence.release(id)?.max_in_flight),
                    EffectKind::On(_) | EffectKind::Unhold(_) => spec.and_then(|spec| spec.max_in_flight.on),
                    EffectKind::Standing(_) => None,
                    _ => spec.and_then(|spec| spec.max_in_flight.off),
                }
            };
            for one in taken.opened() {
                let (effect, kind) = match one {
                    Opened::Hold(order) => (order.effect(), EffectKind::Hold(order.device().clone())),
                    Opened::Off(order) => (order.effect(), EffectKind::Off(order.device().clone())),
                    Opened::Unhold(order) => (order.effect(), EffectKind::Unhold(order.device().clone())),
                    Opened::On(order) => (order.effect(), EffectKind::On(order.device().clone())),
                    Opened::Release(order) => (order.effect(), EffectKind::Release(order.release().clone())),
                    Opened::Receipt(order) => {
                        (order.effect(), EffectKind::Receipt(order.statement().id.to_string()))
                    }
                };
                let entry = record.ledger.get(effect).unwrap();
                assert_eq!(entry.kind, kind);
                assert_eq!((entry.generation, entry.term), (record.generation, walk.player.leadership.term()));
                assert_eq!(entry.life, life(&kind));
            }
            for open in taken.before.record.ledger.open() {
                let may_end = match (taken.what, &open.kind) {
                    ("close one" | "close all", _) => true,
                    ("hold ended", kind) => matches!(kind, EffectKind::Hold(_)),
                    ("release progress", kind) => matches!(kind, EffectKind::Release(_)),
                    // Its own holder renewed it, or handed it back; of one that had expired nothing is left to be told.
                    ("receipt" | "receipt with an old proof" | "hand back", EffectKind::Receipt(_)) => {
                        record.receipts.iter().all(|one| one.effect != open.id || one.ended.is_some())
                    }
                    // A person's word for the end of what nothing bounds.
                    ("abandon", EffectKind::Release(_) | EffectKind::Standing(_)) => open.life.is_none(),
                    ("retire", EffectKind::Standing(_)) => open.life.is_none(),
                    ("retry" | "keyed retry" | "retire", kind) => kind.device().is_some() && open.life.is_none(),
                    _ => false,
                };
                let kept = record.ledger.get(open.id);
                // What stood is gone, and ends by itself from now on; none that an attempt may set up anew.
                let bounded = |now: &OpenEffect| {
                    let attempts = |release| EffectKind::Release(ReleaseId::clone(release));
                    let release = open.stands().filter(|_| taken.what == "withdrawn");
                    let before = &taken.before.record.ledger;
                    release.is_some_and(|release| before.open().iter().all(|one| one.kind != attempts(release)))
                        && now.life.is_some()
                        && (OpenEffect { life: None, ..now.clone() }) == *open
                };
                let same = kept.is_some_and(|now| now == open || bounded(now));
                assert!(same || may_end, "{} forgot {open:?}", taken.what);
            }
        });
    }
}
