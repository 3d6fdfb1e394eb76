//! Machines that run on other machines (S22).

use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::budget::{Budget, Limits};
use picket_core::device::Grade;
use picket_core::ids::NodeId;
use picket_core::outcome::{Outcome, Reason};

use picket_driver_sim::{Act, Fault, Moving, Verb};
use picket_engine::{EngineError, Until};

use crate::lab::{Lab, NODE, person, s};
use crate::observer::Answer;
use crate::setup::{NodeSetup, PARENT, Setup, named};

const HV: &str = "hv1";

fn id(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

/// `n1` runs on `hv1`, and there is `hv2`: first its own device, then its parent.
async fn lab(seed: u64) -> Lab {
    with(seed, |_| {}).await
}

async fn with(seed: u64, change: impl FnOnce(&mut Setup)) -> Lab {
    let mut setup = Setup::new(NODE, &[&["server"], &[PARENT]]);
    for name in [HV, "hv2"] {
        let levels = named(&[&[format!("{name}-bmc").as_str()]]);
        setup.nodes.push(NodeSetup { name: name.to_owned(), levels, own_host: false });
    }
    change(&mut setup);
    Lab::set_up(seed, setup, |world| {
        for name in [HV, "hv2"] {
            world.add_machine(name).add_host(name, &format!("{name}-bmc"));
        }
        world.add_machine(NODE).add_host(NODE, "server").set_parent(NODE, HV);
    })
    .await
}

fn phase(lab: &Lab, name: &str) -> &'static str {
    lab.engine.node(&id(name)).expect("a node").stored.record.phase.label()
}

async fn reach(lab: &Lab, name: &str, phase: &str) {
    lab.reach_of(&id(name), phase, s(900)).await;
}

fn holds(lab: &Lab, name: &str) -> Vec<String> {
    lab.engine.node(&id(name)).expect("a node").stored.record.holds.keys().cloned().collect()
}

/// Its own device does nothing: the level is spent, and the parent is next.
fn deaf(lab: &Lab) {
    lab.fault("server", Fault::OffRefused);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_its_own_device_does_not_stop_is_fenced_by_its_parent() {
    let mut lab = lab(701).await;
    deaf(&lab);
    let fence = lab.open().await;
    reach(&lab, HV, "fencing").await;
    assert_eq!(holds(&lab, HV), ["child:n1"]);
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    let record = lab.record();
    let evidence = record.fence.expect("open").evidence.expect("proven");
    assert_eq!((evidence.level, evidence.grade), (2, Grade::Hypervisor));
    assert!(evidence.devices[0].said.contains("runs on hv1, which is proven off"), "{evidence:?}");
    assert!(!lab.is_on());
    // Its parent comes back before it does, and both holds are gone.
    lab.mend("server");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(900)).await;
    assert!(lab.is_on() && phase(&lab, HV) == "normal" && holds(&lab, HV).is_empty());
}

/// S13, S22: whoever has the parent's address may be another machine, and all that runs on the parent would go for nothing.
#[tokio::test(start_paused = true)]
async fn a_parent_whose_identity_was_learned_from_itself_is_not_shot_for_a_child_that_wants_more() {
    let mut lab = with(711, |setup| {
        setup.check_at_start = true;
        setup.adjust = std::sync::Arc::new(|spec| {
            if spec.id.as_str().ends_with("-bmc") {
                spec.identity = picket_core::device::Identity::default();
            }
        });
    })
    .await;
    lab.engine.check(&id(HV)).await.expect("checked");
    deaf(&lab);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    assert_eq!(phase(&lab, HV), "normal");
    assert_eq!(lab.received("hv1-bmc").offs, 0, "it was switched off for nothing");
    let fence = lab.record().fence.expect("open");
    let told: Vec<&str> = fence.moments.iter().map(|moment| moment.what.as_str()).collect();
    let told = told.join("\n");
    assert!(told.contains("learned from the device itself") && told.contains("`identity`"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_off_already_says_nothing_of_a_child_before_the_child_holds_it() {
    let mut lab = lab(702).await;
    let call = lab.call();
    lab.engine.fence(&id(HV), call).await.expect("let in");
    reach(&lab, HV, "released").await;
    // Nobody can stop the child any more: its own level is spent.
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    let mut kept = holds(&lab, HV);
    kept.retain(|name| name.starts_with("child:"));
    assert_eq!(kept, ["child:n1"]);
    // Whoever fenced the parent brings it back no more: the child keeps it.
    lab.engine.unfence(&id(HV), "db".to_owned(), person()).await.expect("dropped");
    assert_eq!((phase(&lab, HV), holds(&lab, HV)), ("released", vec!["child:n1".to_owned()]));
    let refused = lab.engine.unfence(&id(HV), "child:n1".to_owned(), person()).await;
    let Err(EngineError::Refused(refused)) = refused else { panic!("{refused:?}") };
    assert!(refused.to_string().contains("unfence the child"), "{refused}");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(900)).await;
    assert!(lab.is_on() && phase(&lab, HV) == "normal");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_moves_away_is_not_off_by_the_parent_that_it_left() {
    for (seed, moving) in
        [(703, Moving::Begins("evacuating to hv2".to_owned())), (704, Moving::Arrives("hv2".to_owned()))]
    {
        let mut lab = lab(seed).await;
        deaf(&lab);
        let fence = lab.open().await;
        reach(&lab, HV, "fencing").await;
        lab.happen(Act::Move { machine: NODE.to_owned(), moving: moving.clone() });
        let outcome = lab.outcome(fence, Until::Released).await;
        match moving {
            // It may be there already: a person is asked.
            Moving::Begins(_) => assert_eq!(outcome, Outcome::NeedsOperator(Reason::LevelsSpent)),
            // It is found where it is now, and that one is fenced as well.
            _ => {
                assert_eq!(outcome, Outcome::Fenced { released: true });
                assert_eq!(holds(&lab, "hv2"), ["child:n1"]);
            }
        }
    }
}

/// It moved while it was fenced, and holds both: also what it left is its admin's.
#[tokio::test(start_paused = true)]
async fn an_admin_has_the_machine_back_that_a_child_has_left() {
    let mut lab = lab(716).await;
    deaf(&lab);
    let fence = lab.open().await;
    reach(&lab, HV, "fencing").await;
    lab.happen(Act::Move { machine: NODE.to_owned(), moving: Moving::Arrives("hv2".to_owned()) });
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(
        (holds(&lab, HV), holds(&lab, "hv2")),
        (vec!["child:n1".to_owned()], vec!["child:n1".to_owned()])
    );
    lab.engine.end_childs_hold(&id(HV), "child:n1".to_owned(), person()).await.expect("ended");
    reach(&lab, HV, "normal").await;
    lab.reach("released", s(900)).await;
    assert_eq!(holds(&lab, "hv2"), ["child:n1"], "that one proves it still");
}

/// It was evacuated from `copy` to `hv1`, and nobody has removed the copy there since.
#[tokio::test(start_paused = true)]
async fn a_child_of_which_a_copy_may_run_elsewhere_is_off_only_once_that_machine_is_off_too() {
    for (seed, copy, is_fenced) in [(714, "hv2", false), (715, "hv2", true), (716, "no node", false)] {
        let copies = Arc::new(Mutex::new(vec![copy.to_owned()]));
        let mut lab = with(seed, |setup| setup.copies = copies).await;
        deaf(&lab);
        if is_fenced {
            let call = lab.call();
            lab.engine.fence(&id("hv2"), call).await.expect("let in");
            reach(&lab, "hv2", "released").await;
        }
        let outcome = lab.fence().await;
        assert_eq!(matches!(outcome, Outcome::Fenced { .. }), is_fenced, "{copy}: {outcome:?}");
        // All that runs on its parent does not go for a proof that cannot be had.
        assert_eq!(lab.received("hv1-bmc").offs > 0, is_fenced, "{copy}");
        let said = format!("{:?}", lab.record().fence.expect("open"));
        assert!(is_fenced || said.contains(&format!("a copy of it may run on {copy}")), "{said}");
    }
}

/// Its record says that it is off. Its BMC has said nothing since, and somebody switched it on.
#[tokio::test(start_paused = true)]
async fn a_record_does_not_show_that_the_machine_of_a_copy_is_off() {
    let mut lab = with(718, |setup| setup.copies = Arc::new(Mutex::new(vec!["hv2".to_owned()]))).await;
    deaf(&lab);
    let call = lab.call();
    lab.engine.fence(&id("hv2"), call).await.expect("let in");
    reach(&lab, "hv2", "released").await;
    lab.fault("hv2-bmc", Fault::Silent);
    lab.happen(Act::Foreign { machine: "hv2".to_owned(), verb: Verb::On });
    let outcome = lab.fence().await;
    assert!(matches!(outcome, Outcome::NeedsOperator(_)), "{outcome:?}");
    assert_eq!(lab.received("hv1-bmc").offs, 0);
    assert_eq!(phase(&lab, "hv2"), "released", "its record is as it was");
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_found_while_the_parent_is_being_fenced_bars_the_proof() {
    let copies: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut lab = with(717, |setup| setup.copies = copies.clone()).await;
    deaf(&lab);
    let fence = lab.open().await;
    reach(&lab, HV, "fencing").await;
    copies.lock().push("hv2".to_owned());
    let outcome = lab.outcome(fence, Until::Released).await;
    assert!(matches!(outcome, Outcome::NeedsOperator(_)), "{outcome:?}");
    assert_eq!(phase(&lab, HV), "released", "what was proven of the parent stands");
}

#[tokio::test(start_paused = true)]
async fn a_breach_of_the_parent_voids_what_it_proved_of_its_child() {
    let mut lab = lab(705).await;
    deaf(&lab);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    let before = lab.record().fence.expect("open").round;
    lab.happen(Act::Foreign { machine: HV.to_owned(), verb: Verb::On });
    // Within two watch intervals, with the time that the off takes.
    reach(&lab, NODE, "fencing").await;
    reach(&lab, NODE, "released").await;
    let fence = lab.record().fence.expect("open");
    assert!(fence.round > before, "the evidence began from zero");
    assert_eq!(phase(&lab, HV), "released");
    assert_eq!(holds(&lab, HV), vec!["child:n1".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn another_leadership_proves_the_parent_anew_before_it_believes_of_the_child() {
    let mut lab = lab(706).await;
    deaf(&lab);
    lab.open().await;
    reach(&lab, HV, "fencing").await;
    lab.kill().await;
    lab.start().await;
    lab.reach("released", s(900)).await;
    // After it is released, too: what was proven died with its leader, and the hold stands in the parent's record.
    lab.kill().await;
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.phase(), phase(&lab, HV)), ("released", "released"));
    lab.happen(Act::Foreign { machine: HV.to_owned(), verb: Verb::On });
    reach(&lab, NODE, "fencing").await;
    lab.reach("released", s(900)).await;
    lab.mend("server");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(900)).await;
    assert!(lab.is_on() && holds(&lab, HV).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_gateway_does_not_shoot_the_parent_of_its_own_machine() {
    let mut lab = with(707, |setup| {
        setup.nodes[0].own_host = true;
        setup.check_at_start = true;
    })
    .await;
    tokio::time::sleep(s(5)).await;
    let refused = {
        let call = lab.call();
        lab.engine.fence(&id(HV), call).await
    };
    assert!(matches!(&refused, Err(EngineError::Blocked { reason: Reason::OwnHost, .. })), "{refused:?}");
    {
        let call = lab.call();
        lab.engine.fence(&id("hv2"), call).await
    }
    .expect("it carries nothing of ours");
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_a_child_s_parent_is_fenced_with_it() {
    let fleet = Limits { min_not_fenced: Some(0), ..Limits::default() };
    let mut lab = with(708, |setup| setup.budget = Budget { fleet, ..Budget::default() }).await;
    deaf(&lab);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
}

#[tokio::test(start_paused = true)]
async fn nobody_else_holds_under_a_child_s_name_and_a_plan_says_whom_the_parent_takes_away() {
    let mut lab = with(709, |setup| setup.check_at_start = true).await;
    let mut call = lab.call();
    call.holder.name = "child:n1".to_owned();
    let refused = lab.engine.fence(&id(HV), call).await;
    assert!(matches!(refused, Err(EngineError::Field { field: "holder", .. })), "{refused:?}");
    let mut call = lab.call();
    call.holder.name = "child:n1".to_owned();
    let refused = lab.engine.drill(&id(HV), call).await;
    assert!(
        matches!(refused, Err(EngineError::Field { field: "holder", .. })),
        "a drill neither: {refused:?}"
    );
    tokio::time::sleep(s(5)).await;
    let call = lab.call();
    let plan = lab.engine.plan(&id(NODE), call).await.expect("a plan");
    let off = plan.steps.iter().find(|step| step.target == PARENT).expect("its step");
    assert!(off.text.contains("fences hv1") && off.text.contains("nothing else"), "{off:?}");
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_in_breach_while_its_child_is_brought_back_is_let_go_all_the_same() {
    let mut lab = lab(710).await;
    deaf(&lab);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    lab.mend("server");
    lab.fault("hv1-bmc", Fault::OffTakes { least: s(20), most: s(20) });
    lab.unfence().await.expect("unfenced");
    lab.happen(Act::Foreign { machine: HV.to_owned(), verb: Verb::On });
    lab.reach("normal", s(1_200)).await;
    assert!(holds(&lab, HV).is_empty(), "{:?}", holds(&lab, HV));
}

/// `n1` is fenced by `hv1`, and comes to that phase; then it is evacuated to `hv2`, as a server that is stopped.
async fn evacuated(lab: &mut Lab, in_phase: &str) {
    deaf(lab);
    lab.open().await;
    lab.reach(in_phase, s(1_200)).await;
    lab.mend("server");
    lab.happen(Act::Move { machine: NODE.to_owned(), moving: Moving::Arrives("hv2".to_owned()) });
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
}

/// S22: its own device can stop it where it came to, and all that runs there would go for nothing.
#[tokio::test(start_paused = true)]
async fn the_machine_to_which_a_fenced_server_was_evacuated_is_not_fenced_before_its_own_level_is_spent() {
    for (seed, dies) in [(712, false), (713, true)] {
        let mut lab = lab(seed).await;
        lab.answers(&[Answer::Accept]);
        evacuated(&mut lab, "fenced").await;
        if dies {
            lab.crash().await;
        }
        let level = || lab.record().fence.and_then(|fence| fence.evidence).map(|evidence| evidence.level);
        let proven = async {
            while level() != Some(1) {
                tokio::time::sleep(s(1)).await;
            }
        };
        let proven = tokio::time::timeout(s(120), proven).await;
        assert_eq!((phase(&lab, "hv2"), lab.received("hv2-bmc").offs), ("normal", 0), "dies: {dies}");
        proven.expect("proven off by its own device");
        assert!(holds(&lab, "hv2").is_empty() && holds(&lab, HV) == ["child:n1"]);
        lab.answers(&[Answer::Complete]);
        lab.reach("released", s(900)).await;
        lab.unfence().await.expect("unfenced");
        lab.reach("normal", s(900)).await;
        reach(&lab, HV, "normal").await;
        assert!(lab.is_on() && holds(&lab, HV).is_empty());
    }
}

/// While a person is asked no level has its turn.
#[tokio::test(start_paused = true)]
async fn nor_is_it_while_a_person_is_asked() {
    let mut lab = lab(714).await;
    lab.fault("hv1-bmc", Fault::OffRefused);
    evacuated(&mut lab, "needs_operator").await;
    tokio::time::sleep(s(300)).await;
    let hv2 = |lab: &Lab| (phase(lab, "hv2"), lab.received("hv2-bmc").offs);
    assert_eq!((lab.phase(), hv2(&lab)), ("needs_operator", ("normal", 0)));
    // Tried again, it is proven by its own device.
    lab.engine.retry(&id(NODE), person()).await.expect("let in");
    lab.reach("released", s(900)).await;
    assert_eq!(hv2(&lab), ("normal", 0));
}

/// Where its own device does nothing, the machine on which it runs now has its turn.
#[tokio::test(start_paused = true)]
async fn it_is_fenced_once_its_own_level_is_spent() {
    let mut lab = lab(715).await;
    lab.answers(&[Answer::Accept]);
    evacuated(&mut lab, "fenced").await;
    deaf(&lab);
    reach(&lab, "hv2", "fencing").await;
    lab.answers(&[Answer::Complete]);
    lab.reach("released", s(900)).await;
    assert_eq!(holds(&lab, "hv2"), ["child:n1"]);
}
