//! S8: what another process sent in a session that has a name ends with that session, within seconds.

use std::time::Duration;

use picket_core::ids::ReceiptId;
use picket_core::ledger::OpenEffect;
use picket_core::time::WallTime;
use picket_driver_sim::Fault;
use picket_engine::{ReceiptCall, Until};
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, NODE, lab, node, s};
use crate::setup::Setup;

/// Far less than the longest life of anything that is sent here (a minute, and two).
const SOON: Duration = Duration::from_secs(20);

async fn named(seed: u64) -> Lab {
    let setup = Setup { names_sessions: true, ..Setup::new(NODE, &[&["bmc"]]) };
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await
}

fn open(lab: &Lab) -> Vec<OpenEffect> {
    lab.record().ledger.open().to_vec()
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_sent_is_stored_with_its_session() {
    let mut lab = named(961).await;
    lab.fence().await;
    let (fenced, session) =
        (open(&lab), lab.view().plan.drivers.values().next().and_then(|one| one.session()));
    assert!(session.is_some() && fenced.len() >= 2, "{fenced:?}");
    assert!(fenced.iter().all(|open| open.session == session), "{session:?}: {fenced:?}");
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("let in");
    while lab.received("bmc").ons == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let bringing = open(&lab);
    let one = bringing.first().and_then(|open| open.session.clone());
    assert!(one.is_some() && one != session, "the session that carried the off was closed: {bringing:?}");
    assert!(bringing.iter().all(|open| open.session == one), "{bringing:?}");
}

#[tokio::test(start_paused = true)]
async fn the_off_of_a_dead_gateway_ends_with_its_session() {
    let mut lab = named(962).await;
    lab.fence().await;
    lab.crash().await;
    let began = Instant::now();
    lab.reach("released", s(60)).await;
    lab.unfence().await.expect("let in");
    lab.reach("normal", s(60)).await;
    assert!(lab.is_on() && began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_on_of_a_dead_gateway_ends_with_its_session_before_another_is_sent() {
    let mut lab = named(963).await;
    lab.fence().await;
    lab.fault("bmc", Fault::OnDropped { times: 1 });
    lab.unfence().await.expect("let in");
    while lab.received("bmc").ons == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    lab.crash().await;
    let began = Instant::now();
    lab.reach("normal", s(60)).await;
    assert!(lab.is_on() && lab.received("bmc").ons == 2 && began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_fence_after_the_on_of_a_dead_gateway_ends_that_first() {
    let mut lab = named(964).await;
    lab.fence().await;
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("let in");
    while lab.received("bmc").ons == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    lab.kill().await;
    lab.mend("bmc");
    lab.start().await;
    let began = Instant::now();
    let id = lab.open().await;
    assert_eq!(lab.outcome_within(id, Until::Released, s(600)).await.map(|one| one.label()), Some("fenced"));
    assert!(began.elapsed() < s(40), "the long window, and no life of an on: {:?}", began.elapsed());
    assert!(!lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_device_that_says_nothing_of_it_is_waited_out() {
    let mut lab = named(965).await;
    lab.fence().await;
    let life = open(&lab).iter().filter_map(|open| open.life).max().expect("bounded");
    lab.kill().await;
    lab.fault("bmc", Fault::Silent);
    lab.start().await;
    let began = Instant::now();
    lab.reach("released", s(60)).await;
    lab.unfence().await.expect("let in");
    // The last moment before its life is over; it answers again, and is on its way at once.
    sleep(life.saturating_sub(began.elapsed() + s(5))).await;
    assert_eq!(lab.phase(), "unfencing");
    lab.mend("bmc");
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn an_off_that_goes_in_another_session_is_stored_anew() {
    let mut lab = named(966).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    while lab.received("bmc").offs == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let first = open(&lab);
    lab.happen(picket_driver_sim::Act::LoseSessions { device: "bmc".to_owned() });
    sleep(s(10)).await;
    let later = open(&lab);
    let offs = |all: &[OpenEffect]| -> Vec<Option<String>> {
        all.iter().filter(|open| open.kind.label() == "off").map(|open| open.session.clone()).collect()
    };
    assert_eq!(offs(&first).len(), 1);
    assert!(offs(&later).len() == 2 && offs(&later)[0] != offs(&later)[1], "{later:?}");
}

/// What has no name costs no write more.
#[tokio::test(start_paused = true)]
async fn a_fence_writes_as_often_with_names_as_without() {
    let (mut plain, mut named) = (lab(967).await, named(967).await);
    plain.fence().await;
    named.fence().await;
    assert_eq!(plain.view().stored.version, named.view().stored.version);
}

#[tokio::test(start_paused = true)]
async fn an_on_that_was_stored_before_there_was_a_session_is_stored_anew() {
    let mut lab = named(968).await;
    lab.fence().await;
    // Its BMC starts: it answers nothing while the on is stored.
    lab.kill().await;
    lab.world.lock().hold(NODE);
    lab.start().await;
    lab.reach("released", s(60)).await;
    lab.fault("bmc", Fault::Silent);
    lab.unfence().await.expect("let in");
    let is_on = |open: &OpenEffect| open.kind.label() == "on";
    while !open(&lab).iter().any(is_on) {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(open(&lab).iter().filter(|one| is_on(one)).all(|on| on.session.is_none()), "{:?}", open(&lab));
    lab.mend("bmc");
    while lab.received("bmc").ons == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let last = open(&lab).into_iter().rfind(is_on).expect("open");
    assert!(last.session.is_some(), "{:?}", open(&lab));
}

#[tokio::test(start_paused = true)]
async fn callers_who_ask_again_and_again_do_not_keep_a_session_from_its_end() {
    for verifies in [false, true] {
        let mut lab = named(969).await;
        lab.fence().await;
        let call = ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: String::new() };
        let old = lab.engine.receipt(&node(), call).await.expect("it is dark").id;
        lab.engine.return_receipt(&node(), old, "db".to_owned()).await.expect("handed back");
        lab.crash().await;
        lab.reach("released", s(60)).await;
        // To end a session takes as long as its far side needs.
        lab.fault("bmc", Fault::Slow(s(3)));
        let began = Instant::now();
        lab.unfence().await.expect("let in");
        let asking = {
            let engine = lab.engine.clone();
            tokio::spawn(async move {
                loop {
                    // For a receipt that holds no more no device is asked.
                    match verifies {
                        true => drop(engine.verify_receipt(&node(), old, true).await),
                        false => drop(engine.check(&node()).await),
                    }
                    sleep(s(1)).await;
                }
            })
        };
        while open(&lab).iter().any(|open| open.kind.label() == "off") {
            sleep(Duration::from_millis(100)).await;
            assert!(began.elapsed() < s(30), "{verifies}: {:?}", open(&lab));
        }
        asking.abort();
    }
}

/// The same where the node is to be fenced, and an on may be on its way.
#[tokio::test(start_paused = true)]
async fn callers_who_ask_for_old_receipts_do_not_keep_an_on_from_its_end() {
    let mut lab = named(970).await;
    lab.fence().await;
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("let in");
    while lab.received("bmc").ons == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    lab.kill().await;
    lab.mend("bmc");
    lab.fault("bmc", Fault::Slow(s(3)));
    lab.start().await;
    let began = Instant::now();
    lab.open().await;
    let engine = lab.engine.clone();
    let asking = tokio::spawn(async move {
        let old = ReceiptId::mint(WallTime::default(), [7; 10]);
        loop {
            let _ = engine.verify_receipt(&node(), old, true).await;
            sleep(s(1)).await;
        }
    });
    while open(&lab).iter().any(|open| open.kind.label() == "on") {
        sleep(Duration::from_millis(100)).await;
        assert!(began.elapsed() < s(40), "{:?}", open(&lab));
    }
    asking.abort();
}
