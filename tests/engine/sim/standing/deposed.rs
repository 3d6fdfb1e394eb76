//! A leadership that has ended changes nothing at a far side any more (S6).

use std::time::Duration;

use picket_core::time::Clock;
use picket_driver_sim::Fault;

use super::cluster::State;
use super::{lab, lawful, until};
use crate::lab::s;

/// Between two looks at a clock.
const MOMENT: Duration = Duration::from_millis(5);

/// Its clock jumps right before it would ask the far side again: its tasks know that before they are ended.
#[tokio::test(start_paused = true)]
async fn whoever_leads_no_more_announces_nothing_and_keeps_and_tidies_nothing_away() {
    type Set = fn(&mut State);
    let announces: Set = |state| state.hard_of_hearing = true;
    let spares: Set = |state| state.managers_are_away = true;
    let tidies: Set = |state| state.is_away = true;
    for (seed, set, phase) in
        [(983, announces, "fencing"), (984, spares, "released"), (985, tidies, "normal")]
    {
        let (mut lab, cluster) = lab(seed, s(1)).await;
        set(&mut cluster.state.lock());
        if phase == "fencing" {
            lab.fault("bmc", Fault::OffIgnored);
        }
        if phase != "normal" {
            lab.open().await;
        }
        lab.reach(phase, s(60)).await;
        // It asks in ever longer pauses, up to a longest one.
        let next = loop {
            let asked = cluster.seen(|state| state.asked_to_change.len());
            until(&cluster, |state| state.asked_to_change.len() > asked).await;
            let [.., first, second, third] = &cluster.seen(|state| state.asked_to_change.clone())[..] else {
                continue;
            };
            let pause = third.since(*second);
            if second.since(*first) == pause && pause > s(5) {
                break *third + pause;
            }
        };
        assert_eq!(lab.phase(), phase);
        let asked = cluster.seen(|state| state.asked_to_change.len());
        tokio::time::sleep(next.since(lab.clock.boot()) - MOMENT).await;
        lab.clock.jump_wall(60_000);
        tokio::time::sleep(MOMENT * 2).await;
        assert_eq!(cluster.seen(|state| state.asked_to_change.len()), asked, "{phase}");
        lawful(&cluster);
    }
}
