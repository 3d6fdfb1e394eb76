//! Whose word reaches the machine on which a node runs (S22): by the roles of whoever asks for the node, or by the machine's own settings.

use std::collections::BTreeSet;

use picket_core::budget::{Budget, Limits};
use picket_core::ids::NodeId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::SetAside;
use picket_core::roles::{Grant, Pattern, Person, Proof, Role, Roles, Scope};
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Asides, EngineError, FenceCall, Until};

use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::{NodeSetup, PARENT, Setup, named};

const HV: &str = "hv1";

fn id(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

/// By which `ops` is known, and by no name.
const OPS: u32 = 4_001;

/// The tenant is a controller of `n1` alone; `ops`, or somebody else in its place, of `n1` and of `hv1`.
fn roles(of_both: &str) -> Roles {
    let known = |name: &str| match name {
        "ops" => (Vec::new(), vec![OPS]),
        name => (vec![Pattern::new(name).expect("a good pattern")], Vec::new()),
    };
    let grant = |name: &str, nodes: &[&str]| Grant {
        name: name.to_owned(),
        role: Role::Controller,
        callers: known(name).0,
        uids: known(name).1,
        gids: Vec::new(),
        nodes: Scope {
            hosts: Some((nodes.join(","), nodes.iter().map(|name| id(name)).collect())),
            ..Scope::default()
        },
        // Whoever has a role for both may act for the tenant.
        holders: vec![Pattern::new("tenant").expect("a good pattern")],
    };
    Roles::new(vec![grant("tenant", &[NODE]), grant(of_both, &[NODE, HV])])
}

/// `n1` runs on `hv1`. Its own device refuses each off.
async fn lab(seed: u64, change: impl FnOnce(&mut Setup)) -> Lab {
    let mut setup = Setup::new(NODE, &[&["server"], &[PARENT]]);
    let levels = named(&[&["hv1-bmc"]]);
    setup.nodes.push(NodeSetup { name: HV.to_owned(), levels, own_host: false });
    setup.roles = roles("ops");
    change(&mut setup);
    let lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(HV).add_host(HV, "hv1-bmc");
        world.add_machine(NODE).add_host(NODE, "server").set_parent(NODE, HV);
    })
    .await;
    lab.fault("server", Fault::OffRefused);
    lab
}

fn call_of(lab: &mut Lab, name: &str) -> FenceCall {
    let mut call = lab.call();
    (call.holder.name, call.holder.by) = (name.to_owned(), name.to_owned());
    let proof = match name {
        "ops" => Proof::Kernel { uid: OPS, gids: [OPS].into(), shown: None },
        _ => Proof::Certificate,
    };
    call.holder.asker = Some(Person { name: name.to_owned(), proof });
    call
}

async fn fence_as(lab: &mut Lab, name: &str, which: &str) -> picket_core::ids::FenceId {
    let call = call_of(lab, name);
    lab.engine.fence(&id(which), call).await.expect("let in").fence()
}

fn holder(lab: &Lab) -> Option<String> {
    let view = lab.engine.node(&id(HV)).expect("a node");
    view.stored.record.holds.get("child:n1").map(|hold| hold.by.clone())
}

fn phase(lab: &Lab) -> &'static str {
    lab.engine.node(&id(HV)).expect("a node").stored.record.phase.label()
}

fn moments(lab: &Lab) -> String {
    let fence = lab.record().fence.expect("open");
    fence.moments.iter().map(|moment| moment.what.as_str()).collect::<Vec<_>>().join("\n")
}

/// Nothing came to the hypervisor, and the last words say who can go on.
async fn is_out_of_reach(lab: &Lab, fence: picket_core::ids::FenceId) {
    let outcome = lab.outcome(fence, Until::Released).await;
    assert_eq!(outcome, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!((lab.received("hv1-bmc").offs, phase(lab), holder(lab)), (0, "normal", None));
    let told = moments(lab);
    assert!(told.contains("`picket fence hv1`") && told.contains("`picket retry n1`"), "{told}");
}

/// The hypervisor was off, and is back.
async fn is_out_of_reach_after(lab: &Lab, fence: picket_core::ids::FenceId) {
    let outcome = lab.outcome(fence, Until::Released).await;
    assert_eq!(outcome, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!((phase(lab), holder(lab)), ("normal", None));
}

async fn is_fenced_by(lab: &Lab, fence: picket_core::ids::FenceId, by: &str) {
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!((lab.received("hv1-bmc").offs > 0, holder(lab).as_deref()), (true, Some(by)));
}

#[tokio::test(start_paused = true)]
async fn a_role_for_a_child_alone_does_not_reach_its_parent() {
    let mut lab = lab(6101, |_| {}).await;
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    is_out_of_reach(&lab, fence).await;
    // As the last words say.
    let parents = fence_as(&mut lab, "ops", HV).await;
    lab.reach_of(&id(HV), "released", s(900)).await;
    assert_ne!(parents, fence);
    lab.engine.retry(&node(), person()).await.expect("goes on");
    lab.reach("released", s(900)).await;
    assert_eq!(holder(&lab).as_deref(), Some("tenant"), "what is off already is held for it");
}

#[tokio::test(start_paused = true)]
async fn who_has_a_role_for_both_is_named_on_the_parent() {
    let mut lab = lab(6102, |_| {}).await;
    let fence = fence_as(&mut lab, "ops", NODE).await;
    is_fenced_by(&lab, fence, "ops").await;
}

#[tokio::test(start_paused = true)]
async fn who_joins_with_a_role_for_both_brings_it_to_the_parent() {
    let mut lab = lab(6103, |_| {}).await;
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    is_out_of_reach(&lab, fence).await;
    // Under the same holder's name, which an admin may act for.
    let mut call = call_of(&mut lab, "ops");
    call.holder.name = "tenant".to_owned();
    assert_eq!(lab.engine.fence(&node(), call).await.expect("let in").fence(), fence);
    lab.engine.retry(&node(), person()).await.expect("goes on");
    lab.reach("released", s(900)).await;
    is_fenced_by(&lab, fence, "ops").await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_whose_settings_name_the_child_is_fenced_for_it_whoever_asks() {
    let mut lab = lab(6104, |setup| {
        setup.fenced_for.insert(HV.to_owned(), BTreeSet::from([id(NODE)]));
    })
    .await;
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    is_fenced_by(&lab, fence, "tenant").await;
}

#[tokio::test(start_paused = true)]
async fn one_whose_settings_name_another_child_is_not() {
    let mut lab = lab(6110, |setup| {
        setup.fenced_for.insert(HV.to_owned(), BTreeSet::from([id("n2")]));
    })
    .await;
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    is_out_of_reach(&lab, fence).await;
}

/// To hold what is off asks for no off.
#[tokio::test(start_paused = true)]
async fn who_holds_a_child_without_a_fence_brings_no_right_over_its_parent() {
    let mut lab = lab(6111, |setup| setup.roles = roles("manager")).await;
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    let manager = picket_core::event::Person { name: "manager".to_owned(), reason: "a test".to_owned() };
    lab.engine.hold(&node(), "manager".to_owned(), manager).await.expect("held");
    is_out_of_reach(&lab, fence).await;
}

/// A hold would have that fence go on where its parent turns out to be well.
#[tokio::test(start_paused = true)]
async fn a_fence_of_the_parent_is_not_joined_before_its_off() {
    let mut lab = lab(6112, |_| {}).await;
    lab.fault("hv1-bmc", Fault::Silent);
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    let call = FenceCall { deadline: Some(s(3_000)), ..call_of(&mut lab, "ops") };
    lab.engine.fence(&id(HV), call).await.expect("let in");
    let outcome = lab.outcome(fence, Until::Released).await;
    assert_eq!((outcome, holder(&lab)), (Outcome::NeedsOperator(Reason::LevelsSpent), None));
    assert_ne!(phase(&lab), "released");
}

/// It would be off soon, and nobody would wake who waits for it.
#[tokio::test(start_paused = true)]
async fn a_fence_of_the_parent_whose_off_was_sent_is_joined() {
    let mut lab = lab(6113, |_| {}).await;
    lab.fault("hv1-bmc", Fault::OffIgnored);
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    // Within the shares of both: its own device has nearly been given up.
    tokio::time::sleep(s(280)).await;
    fence_as(&mut lab, "ops", HV).await;
    tokio::time::sleep(s(60)).await;
    assert_eq!((phase(&lab), holder(&lab).as_deref()), ("fencing", Some("tenant")));
    lab.mend("hv1-bmc");
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(holder(&lab).as_deref(), Some("tenant"));
}

/// Whoever drills it has it back at once.
#[tokio::test(start_paused = true)]
async fn a_parent_that_comes_back_by_itself_is_not_held_without_a_right() {
    let mut lab = lab(6114, |_| {}).await;
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    let mut call = call_of(&mut lab, "ops");
    call.holder.then = picket_core::record::Then::PowerOn;
    lab.engine.fence(&id(HV), call).await.expect("let in");
    is_out_of_reach_after(&lab, fence).await;
}

/// Of those who ask under one name none takes another's right away.
#[tokio::test(start_paused = true)]
async fn a_right_is_not_lost_to_who_asks_after_it_nor_to_a_hold() {
    let mut lab = lab(6115, |_| {}).await;
    let mut call = call_of(&mut lab, "ops");
    call.holder.name = "tenant".to_owned();
    let fence = lab.engine.fence(&node(), call).await.expect("let in").fence();
    assert_eq!(fence_as(&mut lab, "tenant", NODE).await, fence);
    let tenant = picket_core::event::Person { name: "tenant".to_owned(), reason: "a test".to_owned() };
    lab.engine.hold(&node(), "tenant".to_owned(), tenant).await.expect("held");
    is_fenced_by(&lab, fence, "ops").await;
}

/// The roles of the moment count, and they outlast the leader under whom the fence was asked for.
#[tokio::test(start_paused = true)]
async fn a_right_over_the_parent_that_was_taken_meanwhile_reaches_it_no_more() {
    for dies in [false, true] {
        let mut lab = lab(6105, |_| {}).await;
        let fence = fence_as(&mut lab, "ops", NODE).await;
        lab.reach("fencing", s(60)).await;
        // Who joins may have the node itself fenced still.
        assert_eq!(fence_as(&mut lab, "tenant", NODE).await, fence);
        lab.setup.roles = roles("others");
        match dies {
            true => lab.crash().await,
            false => drop(lab.reload().await.expect("changed")),
        }
        is_out_of_reach(&lab, fence).await;
    }
}

/// Of the same kind: whoever leads next knows by whom the fence was asked for.
#[tokio::test(start_paused = true)]
async fn another_leader_knows_whose_right_it_is() {
    let mut lab = lab(6106, |_| {}).await;
    let fence = fence_as(&mut lab, "ops", NODE).await;
    lab.reach("fencing", s(60)).await;
    lab.crash().await;
    is_fenced_by(&lab, fence, "ops").await;
    // What stands is proven anew, whatever became of the roles: nothing more is switched off.
    let offs = lab.received("hv1-bmc").offs;
    lab.setup.roles = roles("others");
    lab.crash().await;
    tokio::time::sleep(s(60)).await;
    lab.reach("released", s(900)).await;
    assert!(lab.received("hv1-bmc").offs >= offs && phase(&lab) == "released", "{}", phase(&lab));
}

/// S14, S22: an admin of the child alone said so, and of nobody else.
#[tokio::test(start_paused = true)]
async fn what_is_set_aside_for_a_child_bars_its_parent_all_the_same() {
    let fleet = Limits { min_not_fenced: Some(1), ..Limits::default() };
    let budget = Budget { fleet, ..Budget::default() };
    let mut lab = lab(6107, |setup| setup.budget = budget).await;
    let said = SetAside { by: "ops".to_owned(), reason: "a test".to_owned() };
    let aside = || Some(Asides { budget: Some(said.clone()), quorum: None });
    let call = FenceCall { set_aside: aside(), ..call_of(&mut lab, "ops") };
    let fence = lab.engine.fence(&node(), call).await.expect("let in").fence();
    let outcome = lab.outcome(fence, Until::Released).await;
    assert_eq!(outcome, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!((lab.received("hv1-bmc").offs, phase(&lab)), (0, "normal"));
    assert!(moments(&lab).contains("`picket fence hv1 --override-budget"), "{}", moments(&lab));
    let call = FenceCall { set_aside: aside(), ..call_of(&mut lab, "ops") };
    lab.engine.fence(&id(HV), call).await.expect("let in");
    lab.reach_of(&id(HV), "released", s(900)).await;
    lab.engine.retry(&node(), person()).await.expect("goes on");
    lab.reach("released", s(900)).await;
}

/// Whoever may switch a machine on behind our back takes its hypervisor no more than by asking.
#[tokio::test(start_paused = true)]
async fn nor_does_a_breach_of_the_child_reach_the_parent() {
    let mut lab = lab(6108, |_| {}).await;
    lab.mend("server");
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    lab.fault("server", Fault::OffRefused);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("needs_operator", s(3_600)).await;
    assert_eq!((lab.received("hv1-bmc").offs, phase(&lab), holder(&lab)), (0, "normal", None));
}

#[tokio::test(start_paused = true)]
async fn a_plan_tells_who_does_not_reach_the_parent() {
    let mut lab = lab(6109, |setup| setup.check_at_start = true).await;
    tokio::time::sleep(s(5)).await;
    for (name, reaches) in [("tenant", false), ("ops", true)] {
        let call = call_of(&mut lab, name);
        let plan = lab.engine.plan(&node(), call).await.expect("a plan");
        let off = plan.steps.iter().find(|step| step.target == PARENT).expect("its step");
        let told = off.obstacles.iter().any(|why| why.contains("`picket fence hv1`"));
        assert_eq!(told, !reaches, "{name}: {off:?}");
    }
    // What stays off in any case is held for whoever asks.
    let fence = fence_as(&mut lab, "ops", HV).await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    let call = call_of(&mut lab, "tenant");
    let plan = lab.engine.plan(&node(), call).await.expect("a plan");
    let off = plan.steps.iter().find(|step| step.target == PARENT).expect("its step");
    assert!(!off.obstacles.iter().any(|why| why.contains("`picket fence hv1`")), "{off:?}");
}

/// A call that waits for the store is judged by the roles of the moment in which it is let in (S14).
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_the_store_has_no_right_that_was_taken_meanwhile() {
    let mut lab = lab(6118, |_| {}).await;
    let call = call_of(&mut lab, "ops");
    lab.store.reads_take(s(60));
    let engine = lab.engine.clone();
    let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
    tokio::time::sleep(s(1)).await;
    lab.setup.roles = roles("others");
    lab.reload().await.expect("taken");
    let answer = asked.await.expect("answered");
    assert!(matches!(&answer, Err(EngineError::RoleLost(why)) if why.contains("ops")), "{answer:?}");
    assert_eq!(lab.phase(), "normal");
}

/// A node that is not at rest is worked by the settings that it had, and judged by those of now: it may have come to somebody else.
#[tokio::test(start_paused = true)]
async fn a_role_by_labels_goes_with_the_labels_of_now() {
    let of = |tenant: &str| [("tenant".to_owned(), tenant.to_owned())].into();
    let grant = Grant {
        name: "a".to_owned(),
        role: Role::Controller,
        callers: vec![Pattern::new("tenant").expect("a good pattern")],
        uids: Vec::new(),
        gids: Vec::new(),
        nodes: Scope { labels: of("a"), ..Scope::default() },
        holders: Vec::new(),
    };
    let mut lab = lab(6119, |setup| {
        setup.roles = Roles::new(vec![grant]);
        setup.labels = of("a");
    })
    .await;
    lab.mend("server");
    let fence = fence_as(&mut lab, "tenant", NODE).await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    lab.setup.labels = of("b");
    let changed = lab.reload().await.expect("taken");
    assert_eq!(changed.later, [node()]);
    let call = call_of(&mut lab, "tenant");
    let joined = lab.engine.fence(&node(), call).await;
    assert!(matches!(joined, Err(EngineError::RoleLost(_))), "{joined:?}");
    assert_eq!(*lab.engine.labels(&node()).expect("it is there"), of("b"));
}
