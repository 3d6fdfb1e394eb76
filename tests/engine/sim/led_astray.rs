//! S13 where the address of a BMC leads to another machine's, of the same account, from some moment on: whoever identified the one
//! switches, believes and brings back no other.

use std::sync::Arc;
use std::time::Duration;

use picket_core::device::{DeviceSpec, Identity};
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::store::FenceQuery;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Heard, HoldSettings, Verb};

use crate::lab::{Lab, NODE, s};
use crate::setup::Setup;

const FENCED: Outcome = Outcome::Fenced { released: true };
/// The machine that the address leads to, and its BMC.
const OTHER: &str = "n2";
const OTHERS_BMC: &str = "bmc2";
/// A fence, and an unfence, have fewer requests than this before their end; those after it are the next watch's.
const REQUESTS: u32 = 24;
/// For so long an unfence and a stand-down are followed: longer than an on is waited for.
const LONG: Duration = s(300);

/// What the other BMC is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    /// It says whose machine it controls.
    Tells,
    /// It leaves that unanswered.
    Silent,
}

const OTHERS: [Other; 2] = [Other::Tells, Other::Silent];

async fn lab(seed: u64, other: Other) -> Lab {
    let lab = set_up(seed, other, Setup::new(NODE, &[&["bmc"]])).await;
    lab.engine.check(&crate::lab::node()).await.expect("checked");
    lab
}

/// Nobody knows whose machine the BMC should control: no settings say it, and nothing was asked.
async fn unknown(seed: u64, other: Other) -> Lab {
    let adjust = Arc::new(|spec: &mut DeviceSpec| spec.identity = Identity::default());
    set_up(seed, other, Setup { adjust, ..Setup::new(NODE, &[&["bmc"]]) }).await
}

async fn set_up(seed: u64, other: Other, setup: Setup) -> Lab {
    let lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        world.add_machine(OTHER).add_host(OTHER, OTHERS_BMC);
    })
    .await;
    if other == Other::Silent {
        lab.fault(OTHERS_BMC, Fault::DropsQuestions);
    }
    lab
}

/// From so many requests on the address leads astray.
fn leads_astray(lab: &Lab, after: u32) {
    lab.happen(Act::Lead { device: "bmc".to_owned(), to: OTHERS_BMC.to_owned(), after });
}

fn leads_home(lab: &Lab) {
    lab.happen(Act::Lead { device: "bmc".to_owned(), to: "bmc".to_owned(), after: 0 });
}

/// Nothing was changed there.
fn is_untouched(lab: &Lab, is_on: bool, what: &str) {
    let now = lab.clock.boot();
    let mut world = lab.world.lock();
    // What comes in a session that it does not know it throws away.
    let is_done = |heard: &&Heard| heard.device == OTHERS_BMC && heard.executed;
    assert_eq!(world.heard(now).iter().find(is_done), None, "{what}: another machine was switched");
    assert_eq!(world.hold(OTHER), HoldSettings::FREE, "{what}: another machine was held");
    assert_eq!(world.truth(OTHER, now), is_on, "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_fence_whose_bmc_is_another_from_any_request_on_switches_and_believes_no_other() {
    let mut ends = std::collections::BTreeSet::new();
    for other in OTHERS {
        for after in 0..REQUESTS {
            let what = format!("{other:?} after {after}");
            let mut lab = lab(2700, other).await;
            leads_astray(&lab, after);
            let outcome = lab.fence().await;
            is_untouched(&lab, true, &what);
            if outcome == FENCED {
                assert!(!lab.is_on(), "{what}: proven off, and it runs");
            }
            ends.insert(format!("{outcome:?}"));
        }
    }
    // What the history is worth: some end with a proof, as the address led astray after it, and some do not.
    assert!(ends.len() > 1 && ends.contains(&format!("{FENCED:?}")), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unfence_whose_bmc_is_another_from_any_request_on_brings_no_other_back() {
    for other in OTHERS {
        for after in 0..REQUESTS {
            let what = format!("{other:?} after {after}");
            let mut lab = lab(2701, other).await;
            assert_eq!(lab.fence().await, FENCED);
            // The other one is fenced, too, by whomever.
            lab.happen(Act::Foreign { machine: OTHER.to_owned(), verb: Verb::Off });
            leads_astray(&lab, after);
            let _ = lab.unfence().await;
            tokio::time::sleep(LONG).await;
            is_untouched(&lab, false, &what);
        }
    }
}

/// Once the address leads home again a person's retry proves it; the other one was let be all the while.
#[tokio::test(start_paused = true)]
async fn once_it_leads_home_again_a_retry_proves_it() {
    for other in OTHERS {
        let mut lab = lab(2702, other).await;
        // Before the off.
        leads_astray(&lab, 3);
        let outcome = lab.fence().await;
        assert!(matches!(outcome, Outcome::NeedsOperator(_)), "{other:?}: {outcome:?}");
        if other == Other::Tells {
            assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::IdentityMismatch));
        }
        leads_home(&lab);
        lab.engine.retry(&crate::lab::node(), crate::lab::person()).await.expect("taken");
        lab.reach("released", s(900)).await;
        assert!(!lab.is_on());
        is_untouched(&lab, true, "a retry");
    }
}

/// The on came to nothing, and another machine's device says On in its place.
#[tokio::test(start_paused = true)]
async fn an_unfence_does_not_end_by_the_on_of_another_machine() {
    for other in OTHERS {
        for after in 0..REQUESTS {
            let mut lab = lab(2703, other).await;
            assert_eq!(lab.fence().await, FENCED);
            lab.fault("bmc", Fault::OnDropped { times: u32::MAX });
            leads_astray(&lab, after);
            let _ = lab.unfence().await;
            tokio::time::sleep(LONG).await;
            assert_ne!(lab.phase(), "normal", "{other:?} after {after}: it is off, and called back");
        }
    }
}

/// A node is stood down that is off, whatever another machine's device says in the place of its own.
#[tokio::test(start_paused = true)]
async fn a_stand_down_does_not_end_by_the_on_of_another_machine() {
    for other in OTHERS {
        for after in 0..REQUESTS {
            let mut lab = lab(2704, other).await;
            lab.fault("bmc", Fault::OffIgnored);
            assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
            lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
            leads_astray(&lab, after);
            lab.engine.stand_down(&crate::lab::node(), crate::lab::person()).await.expect("taken");
            tokio::time::sleep(LONG).await;
            let told = lab.engine.fences(FenceQuery { node: None, before: None, limit: 4 }).await;
            let told = format!("{:?}", told.expect("a store"));
            assert!(!told.contains("stood down; it reads On"), "{other:?} after {after}: {told}");
        }
    }
}

/// A fenced node comes on, and another machine's device, which says Off, is watched in the place of its own.
#[tokio::test(start_paused = true)]
async fn who_watches_another_machine_in_its_place_says_so() {
    let mut lab = lab(2705, Other::Tells).await;
    assert_eq!(lab.fence().await, FENCED);
    lab.happen(Act::Foreign { machine: OTHER.to_owned(), verb: Verb::Off });
    leads_astray(&lab, 0);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("needs_operator", s(120)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::IdentityMismatch));
    is_untouched(&lab, false, "the watch");
}

/// Nobody knows whose machine the BMC controls. Whatever it says first, within the fence it is no other.
#[tokio::test(start_paused = true)]
async fn where_nobody_knows_whose_it_is_a_fence_is_of_one_machine() {
    for other in OTHERS {
        // Its session is opened, and it is asked.
        for after in 2..REQUESTS {
            let what = format!("{other:?} after {after}");
            let mut lab = unknown(2706, other).await;
            leads_astray(&lab, after);
            let outcome = lab.fence().await;
            assert_eq!(lab.received("bmc").identifies, 1, "{what}");
            is_untouched(&lab, true, &what);
            assert!(outcome != FENCED || !lab.is_on(), "{what}: proven off, and it runs");
        }
    }
}

/// The same, where the gateway dies after the first off: its successor knows what was said.
#[tokio::test(start_paused = true)]
async fn a_successor_knows_what_the_bmc_said_first() {
    for other in OTHERS {
        let mut lab = unknown(2707, other).await;
        lab.fault("bmc", Fault::OffIgnored);
        lab.open().await;
        while lab.received("bmc").offs == 0 {
            tokio::time::sleep(s(1) / 100).await;
        }
        leads_astray(&lab, 0);
        lab.crash().await;
        tokio::time::sleep(s(900)).await;
        is_untouched(&lab, true, &format!("{other:?}"));
        assert!(lab.is_on() && lab.attempts() == 0);
    }
}

/// The same, where the gateway dies before the fence: what the BMC said to its check is learned, and its successor never heard the BMC.
#[tokio::test(start_paused = true)]
async fn a_successor_knows_that_the_bmc_told_an_earlier_check_whose_it_is() {
    for other in OTHERS {
        for after in 0..REQUESTS {
            let what = format!("{other:?} after {after}");
            let mut lab = unknown(2709, other).await;
            lab.engine.check(&crate::lab::node()).await.expect("checked");
            lab.kill().await;
            leads_astray(&lab, after);
            lab.start().await;
            let outcome = lab.fence().await;
            is_untouched(&lab, true, &what);
            assert!(outcome != FENCED || !lab.is_on(), "{what}: proven off, and it runs");
        }
    }
}

/// Its board was exchanged since for one that says nothing: once the settings say whose machine it controls it is switched off.
#[tokio::test(start_paused = true)]
async fn what_says_nothing_any_more_is_fenced_once_the_settings_give_its_identity() {
    let mut lab = unknown(2710, Other::Silent).await;
    lab.engine.check(&crate::lab::node()).await.expect("checked");
    lab.fault("bmc", Fault::DropsQuestions);
    lab.crash().await;
    let outcome = lab.fence().await;
    assert!(matches!(outcome, Outcome::NeedsOperator(_)), "{outcome:?}");
    assert_eq!(lab.received("bmc").offs, 0);
    lab.setup.adjust = Arc::new(|_| {});
    lab.reload().await.expect("taken");
    lab.engine.retry(&crate::lab::node(), crate::lab::person()).await.expect("taken");
    lab.reach("released", s(900)).await;
    assert!(!lab.is_on());
}

/// S8: an on of a gateway that died may still come in its session, which another machine's BMC, asked in its place, knows nothing of.
#[tokio::test(start_paused = true)]
async fn the_session_of_a_dead_gateway_is_ended_by_no_other_machine_s_bmc() {
    for other in OTHERS {
        let setup = Setup { names_sessions: true, ..Setup::new(NODE, &[&["bmc"]]) };
        let mut lab = set_up(2708, other, setup).await;
        lab.engine.check(&crate::lab::node()).await.expect("checked");
        assert_eq!(lab.fence().await, FENCED);
        lab.fault("bmc", Fault::OnDropped { times: 1_000 });
        lab.unfence().await.expect("let in");
        while lab.received("bmc").ons == 0 {
            tokio::time::sleep(s(1) / 100).await;
        }
        let on = lab.record().ledger.open().to_vec();
        leads_astray(&lab, 0);
        lab.crash().await;
        tokio::time::sleep(s(20)).await;
        assert_eq!(lab.record().ledger.open(), on, "{other:?}");
        leads_home(&lab);
        lab.mend("bmc");
        lab.reach("normal", s(300)).await;
        assert!(lab.is_on(), "{other:?}");
    }
}
