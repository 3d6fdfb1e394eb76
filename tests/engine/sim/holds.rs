//! What keeps a node off when its power comes back: engaged, undone by somebody else, engaged again, put back (S11).

use std::time::Duration;

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, RestorePolicy};
use picket_engine::{Admission, Until};

use crate::kept_off::restart;
use crate::lab::{Answer, Lab, NODE, lab, node, person, s};
use crate::points::Happens;

/// What a predecessor engaged is looked at once its device answers the question (S11).
#[tokio::test(start_paused = true)]
async fn a_hold_that_was_not_told_after_a_takeover_is_asked_for_again() {
    let mut lab = lab(909).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.kill().await;
    lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
    lab.fault("bmc", Fault::DropsQuestions);
    lab.start().await;
    tokio::time::sleep(s(200)).await;
    let hold = |lab: &Lab| lab.record().fence.expect("open").holds.into_values().next().expect("a hold");
    assert!(!hold(&lab).engaged.is_empty(), "nobody could tell");
    lab.mend("bmc");
    tokio::time::sleep(s(60)).await;
    assert!(was_told(&lab), "{:?}", lab.record().fence);
    assert!(!hold(&lab).engaged.is_empty(), "{:?}", hold(&lab));
    assert_eq!(lab.phase(), "released");
}

fn was_told(lab: &Lab) -> bool {
    let moments = lab.record().fence.expect("kept").moments;
    moments.iter().any(|moment| moment.what.contains("found undone by somebody else"))
}

/// A firmware update takes the board back to its defaults; somebody changes them by hand (S11).
#[tokio::test(start_paused = true)]
async fn a_hold_that_somebody_undid_is_engaged_again() {
    let stands = |lab: &Lab| lab.world.lock().hold(NODE).button_locked;
    for (answer, phase) in [(Answer::Complete, "released"), (Answer::Refuse, "needs_operator")] {
        for (restarts, within) in [(true, 80), (false, 320)] {
            let mut lab = lab(917).await;
            lab.answers(std::slice::from_ref(&answer));
            lab.fence().await;
            lab.reach(phase, s(2_000)).await;
            tokio::time::sleep(s(30)).await;
            assert!(stands(&lab));
            lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
            if restarts {
                lab.happen(restart(20));
                // It has just started, and takes nothing for a while.
                lab.fault("bmc", Fault::HoldUnsupported);
                lab.schedule(s(40), Act::Mend { device: "bmc".to_owned() });
            }
            assert!(!stands(&lab));
            tokio::time::sleep(s(within)).await;
            assert!(stands(&lab), "{phase}, restarts: {restarts}");
            assert!(was_told(&lab));
            assert_eq!(lab.phase(), phase);
            if restarts && phase == "needs_operator" {
                // It was engaged anew since: it shows nothing of what the BMC says (S2).
                lab.engine.retry(&node(), person()).await.expect("it waits for a person");
                tokio::time::sleep(s(300)).await;
                assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::BmcRestarted));
            }
        }
    }
}

/// The evidence says of a hold what is read at the device after the off.
#[tokio::test(start_paused = true)]
async fn a_hold_that_the_off_undid_is_not_in_the_evidence_and_engaged_again() {
    for undone in [true, false] {
        let mut lab = lab(918).await;
        lab.fault("bmc", Fault::OffTakes { least: s(1), most: s(1) });
        let id = lab.open().await;
        if undone {
            lab.schedule(Duration::from_millis(500), Act::ForgetHold { machine: NODE.to_owned() });
        }
        assert_eq!(lab.outcome(id, Until::Confirmed).await, Outcome::Fenced { released: false });
        let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("proven");
        assert_eq!(evidence.devices[0].hold.is_empty(), undone, "{evidence:?}");
        assert_eq!(was_told(&lab), undone);
        tokio::time::sleep(s(60)).await;
        assert!(lab.world.lock().hold(NODE).button_locked);
    }
}

/// Off has to hold for the long window, and the off is repeated at its end: nothing but one reading comes after that.
#[tokio::test(start_paused = true)]
async fn nor_is_one_that_the_repeated_off_undid() {
    let mut lab = Lab::with(919, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    let id = lab.open().await;
    while lab.received("bmc").offs < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    lab.schedule(s(10), Act::ForgetHold { machine: NODE.to_owned() });
    assert_eq!(lab.outcome(id, Until::Confirmed).await, Outcome::Fenced { released: false });
    assert_eq!(lab.received("bmc").offs, 2);
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("proven");
    assert!(evidence.devices[0].hold.is_empty() && was_told(&lab), "{evidence:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_hold_found_is_put_back_once_the_bmc_has_started() {
    let mut lab = Lab::with(910, &[&["bmc"], &["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
        world.set_restore(NODE, RestorePolicy::AlwaysOn);
    })
    .await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.schedule(s(100), Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.unfence().await.expect("unfenced");
    while lab.received("pdu-a").ons == 0 {
        tokio::time::sleep(s(1)).await;
    }
    tokio::time::sleep(s(90)).await;
    lab.mend("bmc");
    lab.reach("normal", s(600)).await;
    let hold = lab.world.lock().hold(NODE);
    assert_eq!(hold.restore, RestorePolicy::AlwaysOn);
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_somebody_undid_is_engaged_again_after_a_take_over() {
    for undone in [false, true] {
        let mut lab = lab(914).await;
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
        lab.kill().await;
        if undone {
            lab.world.lock().set_restore(NODE, RestorePolicy::AlwaysOn);
        }
        let sent = lab.received("bmc");
        lab.start().await;
        tokio::time::sleep(s(30)).await;
        let fence = lab.record().fence.expect("it is kept off");
        let hold = fence.holds.values().next().expect("it was held");
        assert!(hold.engaged.iter().any(|word| word.contains("restore policy")), "{hold:?}");
        assert_eq!(lab.world.lock().hold(NODE).restore, RestorePolicy::AlwaysOff);
        assert_eq!(was_told(&lab), undone);
        assert_eq!(lab.received("bmc").offs, sent.offs);
        assert_eq!(lab.phase(), "released");
    }
}

/// Whoever finds a hold undone may die before it is engaged again: what was undone is known to the next one.
#[tokio::test(start_paused = true)]
async fn a_hold_that_was_found_undone_is_engaged_again_by_the_next_gateway() {
    let mut lab = lab(918).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(30)).await;
    lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
    lab.fault("bmc", Fault::HoldUnsupported);
    tokio::time::sleep(s(320)).await;
    assert!(was_told(&lab));
    lab.kill().await;
    lab.mend("bmc");
    lab.start().await;
    tokio::time::sleep(s(30)).await;
    assert!(lab.world.lock().hold(NODE).button_locked);
    assert_eq!(lab.phase(), "released");
}

/// Whoever asks while a hold is engaged again is not left behind in the phase that the node had.
#[tokio::test(start_paused = true)]
async fn a_node_is_unfenced_while_its_hold_is_engaged_again() {
    let mut lab = lab(919).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.kill().await;
    lab.world.lock().set_restore(NODE, RestorePolicy::AlwaysOn);
    *lab.points.waits_at.lock() = Some(("sending hold", s(10)));
    lab.start().await;
    tokio::time::sleep(s(5)).await;
    assert!(lab.points.waits_at.lock().is_none(), "it is engaged again");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(300)).await;
    assert!(lab.is_on());
}

/// A device that is told to stay off has its session to itself: whoever joins meanwhile looks at it all the same, and finds it off.
#[tokio::test(start_paused = true)]
async fn a_hold_under_way_hides_no_device_from_whoever_looks() {
    let mut lab = lab(920).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let offs = lab.received("bmc").offs;
    tokio::time::sleep(s(30)).await;
    lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
    *lab.points.waits_at.lock() = Some(("sending hold", s(1)));
    while lab.points.waits_at.lock().is_some() {
        tokio::time::sleep(s(1) / 4).await;
    }
    lab.fault("bmc", Fault::Slow(s(4)));
    tokio::time::sleep(s(2)).await;
    lab.mend("bmc");
    let call = lab.call();
    let joined = lab.engine.fence(&node(), call).await;
    assert!(matches!(joined, Ok(Admission::Already(_))), "{joined:?}");
    tokio::time::sleep(s(60)).await;
    assert!(lab.world.lock().hold(NODE).button_locked, "it is engaged all the same");
    assert_eq!((lab.phase(), lab.received("bmc").offs), ("released", offs));
}

/// Engages the hold anew that somebody undoes; it takes three seconds, and somebody joins then. How long that one waited.
async fn joined_over_a_hold(lab: &mut Lab, undone: bool) -> std::time::Duration {
    *lab.points.waits_at.lock() = Some(("sending hold", s(3)));
    if undone {
        lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
    }
    while lab.points.waits_at.lock().is_some() {
        tokio::time::sleep(s(1) / 10).await;
    }
    let (call, at) = (lab.call(), lab.clock.boot());
    let joined = lab.engine.fence(&node(), call).await;
    assert!(matches!(joined, Ok(Admission::Already(_))), "{joined:?}");
    lab.clock.boot().since(at)
}

/// A hold that always made room would never be engaged: in the end it is waited for. That counts for this one, and for no later one.
#[tokio::test(start_paused = true)]
async fn a_hold_that_was_waited_for_makes_later_ones_make_room_again() {
    let mut lab = lab(921).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(30)).await;
    for cut in 0..5 {
        let waited = joined_over_a_hold(&mut lab, cut == 0).await;
        assert!(waited < s(1), "{cut}: {waited:?}");
    }
    let waited = joined_over_a_hold(&mut lab, false).await;
    assert!(waited >= s(2), "{waited:?}");
    tokio::time::sleep(s(60)).await;
    assert!(lab.world.lock().hold(NODE).button_locked);
    let waited = joined_over_a_hold(&mut lab, true).await;
    assert!(waited < s(1), "{waited:?}");
}

/// S13: by what a device said of whose it is before the store hung, no hold is sent after it. It is asked once more.
#[tokio::test(start_paused = true)]
async fn a_hold_is_not_sent_by_what_its_device_said_before_a_store_that_hung() {
    let lab = {
        let mut lab = lab(922).await;
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
        lab
    };
    tokio::time::sleep(s(30)).await;
    let store = lab.store.clone();
    let hangs = Happens(Box::new(move || store.linger(s(20))));
    *lab.points.happens_at.lock() = Some(("saving hold_intent", hangs));
    lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
    while lab.points.happens_at.lock().is_some() {
        tokio::time::sleep(s(1)).await;
    }
    tokio::time::sleep(s(1)).await;
    lab.store.linger(s(0));
    let (holds, asked) = (lab.received("bmc").holds, lab.received("bmc").identifies);
    let told = |lab: &Lab, words: &str| {
        let moments = lab.record().fence.expect("kept").moments;
        moments.iter().any(|moment| moment.what == words)
    };
    while !told(&lab, "closed hold of bmc: it was not sent") {
        assert_eq!(lab.received("bmc").holds, holds, "none is sent by what is old");
        tokio::time::sleep(s(1) / 10).await;
    }
    tokio::time::sleep(s(60)).await;
    assert!(lab.world.lock().hold(NODE).button_locked, "it is engaged all the same");
    assert!(lab.received("bmc").identifies > asked);
}
