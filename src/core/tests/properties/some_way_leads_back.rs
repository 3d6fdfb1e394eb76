//! S16: nothing is stuck. From wherever a walk ended, lives that pass and what people may do lead back to Normal.

use picket_core::event::Event;
use picket_core::ledger::EffectKind;
use picket_core::outcome::Reason;
use picket_core::record::{NodeRecord, Phase};
use picket_core::restore::HOLD;
use proptest::prelude::*;

use crate::cases;
use crate::support::{Player, person};
use crate::walk::{moves, walk};

fn drop_holds(player: &mut Player, record: &NodeRecord) {
    for holder in record.holds.keys().cloned() {
        let person = person();
        player.apply(match holder.as_str() {
            HOLD => Event::DropRestored(person),
            _ => Event::Unfence { holder, person },
        });
    }
}

/// What releases set up is taken away, once no attempt may set it up anew.
fn withdraw(player: &mut Player) {
    let open = || player.record().ledger.open().iter();
    let attempts = open().filter(|open| matches!(open.kind, EffectKind::Release(_)) && open.life.is_some());
    let attempts = attempts.map(|open| open.id).collect();
    let effects = player.record().ledger.standing().map(|(id, _)| id).collect();
    player.apply(Event::Closed { effects: attempts, why: "its longest life has passed" });
    player.apply(Event::Withdrawn { effects });
}

fn one_step(player: &mut Player) {
    withdraw(player);
    let record = player.record().clone();
    let words = || "for the test".to_owned();
    match &record.phase {
        Phase::Normal => {}
        Phase::Retired => {
            drop(player.apply(Event::Resettled { settings: Some("another machine".to_owned()) }));
        }
        Phase::Fencing => player.give_up(Reason::LevelsSpent),
        Phase::Fenced if record.is_groundless() => {
            for open in record.fence.iter().flat_map(|fence| &fence.releases) {
                let _ = player.try_apply(Event::Abandon {
                    release: open.id.clone(),
                    person: person(),
                    orphan: false,
                });
            }
            drop_holds(player, &record);
        }
        Phase::Fenced => player.give_up(Reason::ReleaseDeadline),
        Phase::NeedsOperator(_) => {
            let _ = player.try_apply(Event::DropRestored(person()));
            for open in record.fence.iter().flat_map(|fence| &fence.releases) {
                let _ = player.try_apply(Event::Abandon {
                    release: open.id.clone(),
                    person: person(),
                    orphan: false,
                });
            }
            let _ = player.try_apply(Event::StandDown(person()));
        }
        Phase::Released => drop_holds(player, &record),
        Phase::PowerOnFailed => drop(player.apply(Event::Retry(person()))),
        Phase::Unfencing => {
            player.close_all();
            let fence = record.fence.as_ref().unwrap();
            player.apply(Event::SuppliesOn { devices: fence.switched_off.iter().cloned().collect() });
            player.apply(Event::Unheld { devices: fence.holds.keys().cloned().collect(), detail: words() });
            player.apply(Event::Back { detail: words() });
        }
    }
}

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn some_way_leads_back(moves in moves()) {
        let mut player = walk(&moves, |_, _| {}).player;
        for _ in 0..10 {
            one_step(&mut player);
        }
        assert_eq!(player.phase(), "normal", "stuck: {:?}", player.record());
    }
}
