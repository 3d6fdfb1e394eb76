//! S19: only a node that is proven off by the present leadership is receipted; no on is opened while a receipt is open,
//! void or not; and one that its fence, or its proof, has outlived never stands again.

use std::collections::BTreeSet;

use picket_core::ids::ReceiptId;
use picket_core::ledger::EffectKind;
use picket_core::order::Opened;
use picket_core::receipt::{MOST, MOST_EACH};
use picket_core::record::{Issued, NodeRecord, Phase, Standing};
use proptest::prelude::*;

use crate::cases;
use crate::walk::{moves, walk};

fn is_open(record: &NodeRecord, issued: &Issued) -> bool {
    record.ledger.get(issued.effect).is_some()
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn receipts_bar_the_on(moves in moves()) {
        let mut fallen: BTreeSet<ReceiptId> = BTreeSet::new();
        walk(&moves, |taken, walk| {
            let (before, after) = (&taken.before.record, &taken.after.record);
            for one in taken.opened() {
                match one {
                    Opened::On(_) => assert!(before.receipts.iter().all(|issued| !is_open(before, issued))),
                    Opened::Receipt(order) => {
                        assert!(matches!(before.phase, Phase::Fenced | Phase::Released));
                        let fence = before.fence.as_ref().unwrap();
                        let said = order.statement();
                        assert_eq!((said.fence, said.generation), (fence.id, after.generation));
                        assert_eq!(said.incarnation, walk.player.leadership.guard().incarnation);
                        assert!(fence.evidence.is_some() && fence.attestation.is_none());
                        assert!(said.expires_at >= said.issued_at && said.issued_at >= said.off_at);
                    }
                    _ => {}
                }
            }
            // Each entry of the ledger has what answers for it, and the other way round.
            for open in after.ledger.open() {
                if let EffectKind::Receipt(id) = &open.kind && id != "of the life before the restore" {
                    let issued = after.receipts.iter().find(|issued| issued.effect == open.id).unwrap();
                    assert_eq!(issued.id.to_string(), *id);
                }
            }
            assert!(after.receipts.iter().all(|issued| is_open(after, issued) || issued.ended.is_some()));
            let open = after.receipts.iter().filter(|issued| is_open(after, issued)).count();
            assert!(open <= MOST + MOST_EACH && after.receipts.len() <= 2 * MOST + MOST_EACH);
            for issued in &after.receipts {
                if issued.standing(after) == Standing::Stands {
                    assert!(!fallen.contains(&issued.id), "{} stood up again after {}", issued.id, taken.what);
                    assert!(!matches!(after.phase, Phase::Normal | Phase::Fencing | Phase::Unfencing));
                } else {
                    fallen.insert(issued.id);
                }
            }
        });
    }
}
