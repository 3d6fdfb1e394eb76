//! The plan and the fence agree: what the plan says would block blocks, what it says would begin begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, Limits};
use picket_core::ids::NodeId;
use picket_core::record::Phase;
use picket_core::store::{FenceQuery, Store};
use picket_core::time::Clock;
use picket_driver_sim::{Fault, Random};
use picket_engine::{Admission, Engine, EngineError, FenceCall, PlanAction, Planned, ReceiptCall};
use picket_liveness::Look;

use crate::budget::{fleet, name, setup};
use crate::lab::{Lab, budget_aside, node, person, s};
use crate::liveness::as_seen;

/// What a plan could have changed: fences, and of a node at rest its record and its power. What is under way goes on.
async fn present(lab: &Lab, node: &NodeId) -> (usize, Option<(u64, usize)>) {
    let fences =
        lab.store.fences(FenceQuery { limit: 1_000, ..FenceQuery::default() }).await.expect("a store");
    let view = lab.engine.node(node).expect("known");
    let mut world = lab.world.lock();
    let edges = world.edges(node.as_str(), lab.clock.boot()).len();
    let at_rest = view.stored.record.phase == Phase::Normal;
    (fences.len(), at_rest.then_some((view.stored.version.0, edges)))
}

/// Plans, looks that nothing was stored or switched, then asks, and compares.
async fn agree(lab: &Lab, index: usize, call: FenceCall) {
    let before = present(lab, &name(index)).await;
    let plan = lab.engine.plan(&name(index), call.clone()).await;
    let after = present(lab, &name(index)).await;
    assert_eq!(after.0, before.0, "a plan opens no fence");
    if before.1.is_some() {
        assert_eq!(after.1, before.1, "a plan changes nothing of a node at rest");
    }
    let fence = lab.engine.fence(&name(index), call.clone()).await;
    match (&plan.map(|plan| plan.planned), &fence) {
        (Ok(Planned::Opens(_)), Ok(Admission::Opened(_))) => {}
        (Ok(Planned::Joins(planned)), Ok(Admission::Joined(joined))) => assert_eq!(planned, joined),
        (Ok(Planned::ProvenAnew(planned, _)), Ok(Admission::Joined(joined))) => assert_eq!(planned, joined),
        (Ok(Planned::Already { .. }), Ok(Admission::Already(_))) => {}
        (Ok(Planned::Barred(planned)), Err(EngineError::Barred(bar))) => {
            assert_eq!((planned.kind, &planned.whose, planned.found), (bar.kind, &bar.whose, bar.found));
        }
        (Ok(Planned::Blocked(planned, _)), Err(EngineError::Blocked { reason, .. })) => {
            assert_eq!(planned, reason);
        }
        (Err(planned), Err(asked)) => assert_eq!(planned.to_string(), asked.to_string()),
        // A fence that was under way was ended at its last look in between: then a plan of now says what became of the request.
        (Ok(Planned::Joins(_)), Err(EngineError::Barred(bar))) => {
            let now = lab.engine.plan(&name(index), call).await.map(|plan| plan.planned);
            assert!(matches!(&now, Ok(Planned::Barred(now)) if now.kind == bar.kind), "{now:?} {bar:?}");
        }
        (plan, fence) => panic!("n{index}: planned {plan:?}, and it became {fence:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn over_random_histories_the_plan_and_the_fence_agree() {
    for seed in 0..12 {
        let limits = Limits { at_once: Some(2), min_not_fenced: Some(2), ..Limits::default() };
        let limits = Limits { per_window: Some((4, s(120))), ..limits };
        let budget = Budget {
            fleet: limits,
            cool_down: s(60),
            brake_least: 5,
            brake_percent: 80,
            ..Budget::default()
        };
        let mut setup = setup(6, budget);
        setup.nodes[5].own_host = true;
        let mut lab = Lab::set_up(340 + seed, setup, |world| {
            for index in 1..=6 {
                world
                    .add_machine(name(index).as_str())
                    .add_host(name(index).as_str(), &format!("bmc{index}"));
            }
        })
        .await;
        let mut random = Random::new(seed);
        for _ in 0..60 {
            let index = 1 + (random.bits() % 6) as usize;
            match random.bits() % 10 {
                0..=4 => {
                    let mut call = lab.call();
                    if random.bits().is_multiple_of(5) {
                        call.set_aside = Some(budget_aside("a test"));
                    }
                    if random.bits().is_multiple_of(8) {
                        call.expected_generation = Some(picket_core::ids::Generation(1));
                    }
                    agree(&lab, index, call).await;
                }
                5 => drop(lab.engine.unfence(&name(index), "db".to_owned(), person()).await),
                6 => drop(lab.engine.pause(PauseScope::Node(name(index)), person(), s(20)).await),
                7 => drop(lab.engine.resume(PauseScope::Everything, person()).await),
                8 if random.bits().is_multiple_of(4) => lab.crash().await,
                _ => tokio::time::sleep(s(random.bits() % 30)).await,
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_tells_every_step_with_its_longest_time_and_what_is_in_the_way() {
    let mut lab = fleet(360, 2, Budget::default()).await;
    let mut call = lab.call();
    call.holder.then = picket_core::record::Then::PowerOn;
    let plan = lab.engine.plan(&node(), call.clone()).await.expect("planned");
    let actions: Vec<PlanAction> = plan.steps.iter().map(|step| step.action).collect();
    use PlanAction::*;
    assert_eq!(actions[..5], [LastLook, Identify, Hold, Off, Confirm]);
    assert_eq!(actions.last(), Some(&PowerOn));
    assert!(actions.contains(&Release));
    let confirm = &plan.steps[4];
    assert_eq!((confirm.level, confirm.at_most), (1, Some(s(180))));
    assert!(confirm.grade.is_some());
    assert!(plan.steps[1].obstacles[0].contains("not asked yet"), "{:?}", plan.steps[1]);
    assert_eq!(plan.planned, Planned::Opens(String::new()));
    assert!(lab.is_on() && lab.phase() == "normal");
    assert_eq!(lab.store.fences(Default::default()).await.map(|fences| fences.len()), Ok(0));

    lab.engine.pause(PauseScope::Everything, person(), s(60)).await.expect("paused");
    let plan = lab.engine.plan(&node(), call).await.expect("planned");
    assert!(matches!(plan.planned, Planned::Barred(_)) && !plan.steps[0].obstacles.is_empty());
}

/// A fence stands behind one of those who only look, and not behind all of them; nor behind those who hung up.
#[tokio::test(start_paused = true)]
async fn many_who_look_keep_no_fence_waiting() {
    for hang_up in [false, true] {
        let mut lab = crate::lab::lab(2821).await;
        lab.fence().await;
        let call =
            ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() };
        let id = lab.engine.receipt(&node(), call).await.expect("proven off").id;
        lab.fault("bmc", Fault::Slow(s(1)));
        let mut looking = Vec::new();
        for _ in 0..20 {
            let (engine, call) = (lab.engine.clone(), lab.call());
            looking.push(tokio::spawn(async move { drop(engine.plan(&node(), call).await) }));
            let engine = lab.engine.clone();
            looking.push(tokio::spawn(async move { drop(engine.verify_receipt(&node(), id, true).await) }));
            if hang_up {
                // Each has its turn before it is gone.
                tokio::time::sleep(s(1) / 100).await;
                looking.drain(..).for_each(|one| one.abort());
            }
        }
        tokio::time::sleep(s(1) / 100).await;
        let (call, at) = (lab.call(), lab.clock.boot());
        let joined = lab.engine.fence(&node(), call).await;
        assert!(matches!(joined, Ok(Admission::Already(_))), "{joined:?}");
        let waited = lab.clock.boot().since(at);
        assert!(waited < s(6), "{waited:?}, hang up: {hang_up}");
    }
}

/// However many plans are asked for, the node's liveness source is asked once at a time.
#[tokio::test(start_paused = true)]
async fn plans_beside_one_another_ask_the_liveness_source_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    // The first question is not answered.
    let source = as_seen(move || {
        let is_first = counts.fetch_add(1, Ordering::SeqCst) == 0;
        (!is_first).then(|| Look::NotRecovered("not ready".to_owned()))
    });
    let mut lab = crate::lab::lab(2820).await;
    lab.kill().await;
    lab.setup.liveness = Some(source);
    lab.start().await;
    let plans: Vec<_> = (0..20).map(|_| (lab.engine.clone(), lab.call())).collect();
    let plan = async |(engine, call): (Engine, FenceCall)| engine.plan(&node(), call).await.expect("planned");
    futures::future::join_all(plans.into_iter().map(plan)).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let call = lab.call();
    lab.engine.plan(&node(), call).await.expect("planned");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "what was answered before is of before");
}
