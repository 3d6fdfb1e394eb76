//! A node that was stood down, and one of its outlets does not come on again.

use std::sync::Arc;

use picket_core::record::{Bringing, Phase};
use picket_core::store::Store;
use picket_driver_sim::Fault;
use picket_proto::exits::{Exit, Way};
use picket_store::MemoryStore;

use super::nodes::{RETIRES, burns};
use crate::lab::{Lab, NODE, node, person, s};
use crate::weather::Weather;

/// The node runs by its other outlet, and nothing of its release began.
async fn without_its_outlet(seed: u64) -> Lab {
    let mut lab = Lab::with(seed, &[&["bmc"], &["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    lab.fault("pdu-b", Fault::OffIgnored);
    lab.open().await;
    lab.reach("needs_operator", s(3_600)).await;
    lab.fault("pdu-a", Fault::OnDropped { times: 1_000 });
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    lab.reach("power_on_failed", s(1_000)).await;
    assert_eq!((lab.is_on(), lab.attempts()), (true, 0));
    lab
}

/// The same, and what the way wants done before its commands is done.
pub async fn outlet_not_seen_on(way: &Way) -> Lab {
    let lab = without_its_outlet(4119).await;
    match way.exits {
        [Exit::Retry] => lab.mend("pdu-a"),
        [Exit::StandDown] => {}
        [Exit::Fence] => ["bmc", "pdu-b"].iter().for_each(|device| lab.mend(device)),
        RETIRES => burns(&lab, &["bmc", "pdu-a", "pdu-b"]),
        other => panic!("{other:?}"),
    }
    lab
}

#[tokio::test(start_paused = true)]
async fn an_unfence_of_it_sends_its_host_no_on() {
    let lab = without_its_outlet(4120).await;
    lab.unfence().await.expect("unfenced");
    assert_eq!(lab.record().bringing, Bringing::StandDown);
    ["bmc", "pdu-a", "pdu-b"].iter().for_each(|device| lab.mend(device));
    lab.reach("normal", s(600)).await;
    assert_eq!((lab.is_on(), lab.received("bmc").ons, lab.attempts()), (true, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn its_other_outlets_stay_as_they_are() {
    let lab = without_its_outlet(4121).await;
    let before = lab.received("pdu-a").ons;
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    lab.reach("normal", s(600)).await;
    assert_eq!((lab.received("pdu-a").ons, lab.received("bmc").ons), (before, 0), "a person gave it up");
}

/// As a gateway of a version before left it, which took an unfence for the way back.
#[tokio::test(start_paused = true)]
async fn what_the_rules_refuse_is_told_in_their_words() {
    let mut lab = without_its_outlet(4122).await;
    lab.kill().await;
    let mut content = lab.store.dump().await.expect("a whole store");
    for stored in &mut content.records {
        stored.record.bringing = Bringing::PowerOn;
    }
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::filled(&content).expect("a store"));
    lab.store = Arc::new(Weather::new(memory, lab.clock.clone(), 1));
    lab.start().await;
    lab.engine.retry(&node(), person()).await.expect("taken");
    lab.reach("power_on_failed", s(1_000)).await;
    let last = lab.record().fence.expect("open").moments.pop().expect("one").what;
    assert!(last.contains("detach") && !last.contains("within"), "{last}");
    assert_eq!(lab.record().phase, Phase::PowerOnFailed);
}
