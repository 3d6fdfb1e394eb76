//! S14: a request that waited, for devices, for the store or behind others, is judged by the roles of the moment in which it is done.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::budget::Quorum;
use picket_core::budget::pause::PauseScope;
use picket_core::event::BoundKey;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::SetAside;
use picket_core::roles::{Grant, Pattern, Person, Proof, Role, Roles, Scope};
use picket_driver_sim::Fault;
use picket_engine::{Acting, Asides, Ask, Engine, EngineError, FenceCall, ReceiptCall, Until};

use crate::lab::{Lab, NODE, budget_aside, node, person, s};
use crate::setup::Setup;

const SUE: &str = "sue";

/// `sue` has these roles, and acts for `db`.
fn roles(of_sue: &[Role]) -> Roles {
    roles_for("db", of_sue)
}

fn roles_for(holder: &str, of_sue: &[Role]) -> Roles {
    let pattern = |text: &str| Pattern::new(text).expect("a good pattern");
    let grant = |role: &Role| Grant {
        name: role.word().to_owned(),
        role: *role,
        callers: vec![pattern(SUE)],
        uids: Vec::new(),
        gids: Vec::new(),
        nodes: Scope::default(),
        holders: vec![pattern(holder)],
    };
    Roles::new(of_sue.iter().map(grant).collect())
}

async fn lab(seed: u64, of_sue: &[Role]) -> Lab {
    let setup = Setup { roles: roles(of_sue), ..Setup::new(NODE, &[&["bmc"]]) };
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await
}

fn sue() -> Person {
    Person { name: SUE.to_owned(), proof: Proof::Certificate }
}

/// The engine, asked by `sue` for what needs that role.
fn asked_by_sue(lab: &Lab, role: Role) -> Engine {
    lab.engine.acting_as(Acting { roles: role.word().to_owned(), right: Some((sue(), role)) })
}

fn is_lost<T: std::fmt::Debug>(answer: Result<T, EngineError>, lost: &str) {
    match answer {
        Err(EngineError::RoleLost(words)) => assert!(words.contains(lost), "{words}"),
        other => panic!("{other:?}"),
    }
}

/// After a second of waiting `sue` has these roles alone.
async fn reload(lab: &mut Lab, of_sue: &[Role]) {
    reload_as(lab, roles(of_sue)).await;
}

async fn reload_as(lab: &mut Lab, roles: Roles) {
    tokio::time::sleep(s(1)).await;
    lab.setup.roles = roles;
    lab.reload().await.expect("taken");
}

/// The host devices are silent, and each is waited for: that is when somebody's word counts.
#[tokio::test(start_paused = true)]
async fn the_word_of_somebody_who_may_not_attest_any_more_lets_nothing_go() {
    for loses in [true, false] {
        let mut lab = lab(6300, &[Role::Attest]).await;
        lab.fault("bmc", Fault::Silent);
        lab.open().await;
        let engine = asked_by_sue(&lab, Role::Attest);
        let ask = Ask { by_person: false, ..person().into() };
        let asked = tokio::spawn(async move { engine.attest(&node(), ask).await });
        let left: &[Role] = if loses { &[Role::Admin] } else { &[Role::Attest] };
        reload(&mut lab, left).await;
        assert!(!asked.is_finished());
        let answer = asked.await.expect("answered");
        if loses {
            is_lost(answer, "sue has not the role attest for n1 any more");
            assert_eq!((lab.phase(), lab.attempts()), ("fencing", 0));
        } else {
            answer.expect("by the roles of now");
        }
    }
}

/// Its key is looked for in a store that hangs.
#[tokio::test(start_paused = true)]
async fn an_unfence_that_waits_has_no_right_that_was_taken_meanwhile() {
    for (left, lost) in [
        (roles(&[Role::Viewer]), "sue has not the role controller for n1 any more"),
        (roles_for("other", &[Role::Controller]), "sue may not act for \"db\" on n1 any more"),
    ] {
        let mut lab = lab(6301, &[Role::Controller]).await;
        lab.fence().await;
        let engine = asked_by_sue(&lab, Role::Controller);
        let key = Some(BoundKey::of("db", "late", "d".to_owned()));
        let ask = Ask { key, by_person: false, ..person().into() };
        lab.store.reads_take(s(60));
        let asked = tokio::spawn(async move { engine.unfence(&node(), "db".to_owned(), ask).await });
        reload_as(&mut lab, left).await;
        is_lost(asked.await.expect("answered"), lost);
        lab.store.reads_take(s(0));
        assert!(!lab.is_on() && lab.record().holds.contains_key("db"));
    }
}

/// A drill, and a limit that is set aside.
#[tokio::test(start_paused = true)]
async fn what_only_an_operator_or_an_admin_may_goes_by_the_roles_of_now() {
    let by_sue = |lab: &mut Lab| {
        let mut call = lab.call();
        call.holder.asker = Some(sue());
        call
    };
    let mut lab = lab(6302, &[Role::Admin]).await;
    lab.fault("bmc", Fault::Slow(s(2)));
    let (engine, call) = (asked_by_sue(&lab, Role::Operator), by_sue(&mut lab));
    let asked = tokio::spawn(async move { engine.drill(&node(), call).await });
    reload(&mut lab, &[Role::Controller]).await;
    is_lost(asked.await.expect("answered"), "sue has not the role operator for n1 any more");
    lab.mend("bmc");
    lab.setup.roles = roles(&[Role::Admin]);
    lab.reload().await.expect("taken");
    lab.store.reads_take(s(60));
    let (engine, call) = (asked_by_sue(&lab, Role::Controller), by_sue(&mut lab));
    let call = FenceCall { set_aside: Some(budget_aside("it burns")), ..call };
    let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
    reload(&mut lab, &[Role::Controller]).await;
    is_lost(asked.await.expect("answered"), "sue has not the role admin for n1 any more");
    assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0));
}

/// The node carries a member of the store, and the others are asked before its fence begins: some of them take their time.
#[tokio::test(start_paused = true)]
async fn a_limit_is_set_aside_by_the_roles_after_the_members_of_the_store_were_asked() {
    for loses in [true, false] {
        let mut setup = Setup { roles: roles(&[Role::Admin]), ..Setup::new(NODE, &[&["bmc"]]) };
        let members =
            ["e1", "e2", "e3"].map(|member| (member.to_owned(), Some(node()).filter(|_| member == "e1")));
        setup.budget.quorum = Quorum { members: members.into() };
        let mut lab = Lab::set_up(6311, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
        })
        .await;
        lab.store.hears_nothing_of(&["e2"]);
        lab.store.members_take(s(3));
        let who = SetAside { by: SUE.to_owned(), reason: "it is gone for good".to_owned() };
        let set_aside = Some(Asides { budget: None, quorum: Some(who) });
        let mut call = FenceCall { set_aside, ..lab.call() };
        call.holder.asker = Some(sue());
        let engine = asked_by_sue(&lab, Role::Controller);
        let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
        let left: &[Role] = if loses { &[Role::Controller] } else { &[Role::Admin] };
        reload(&mut lab, left).await;
        assert!(!asked.is_finished(), "members are asked");
        let answer = asked.await.expect("answered");
        if loses {
            is_lost(answer, "sue has not the role admin for n1 any more");
            tokio::time::sleep(s(60)).await;
            assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0), "its member votes still");
        } else {
            answer.expect("by the roles of now");
        }
    }
}

/// An operator's fence heeds no recovery (K9), and so does a fence that an operator holds.
#[tokio::test(start_paused = true)]
async fn a_person_who_is_a_program_by_now_fences_as_one() {
    let mut lab = lab(6303, &[Role::Operator]).await;
    lab.fault("bmc", Fault::Silent);
    lab.store.reads_take(s(60));
    let mut call = lab.call();
    (call.holder.asker, call.holder.by_person) = (Some(sue()), true);
    let engine = asked_by_sue(&lab, Role::Controller);
    let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
    reload(&mut lab, &[Role::Controller]).await;
    asked.await.expect("answered").expect("let in");
    lab.store.reads_take(s(0));
    assert!(!lab.record().fence.expect("open").by_person);
    let ask = Ask { by_person: true, ..person().into() };
    let engine = asked_by_sue(&lab, Role::Controller);
    is_lost(engine.hold(&node(), "db".to_owned(), ask).await, "sue has not the role operator");
}

/// Whoever joins what is proven off has it looked at, and its BMC is silent by then.
#[tokio::test(start_paused = true)]
async fn who_joins_a_proven_fence_joins_by_the_roles_after_the_look() {
    for loses in [true, false] {
        let mut lab = lab(6304, &[Role::Controller]).await;
        lab.fence().await;
        lab.fault("bmc", Fault::Silent);
        let mut call = lab.call();
        (call.holder.name, call.holder.asker) = ("db".to_owned(), Some(sue()));
        call.holder.by = SUE.to_owned();
        let engine = asked_by_sue(&lab, Role::Controller);
        let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
        let left: &[Role] = if loses { &[Role::Viewer] } else { &[Role::Controller] };
        reload(&mut lab, left).await;
        assert!(!asked.is_finished(), "its device is waited for");
        let answer = asked.await.expect("answered");
        let is_held = lab.record().holds.get("db").is_some_and(|hold| hold.by == SUE);
        if loses {
            is_lost(answer, "sue");
            assert!(!is_held);
        } else {
            answer.expect("by the roles of now");
        }
    }
}

/// Notes of the fleet are written one after the other, and the store takes its time for the one before. `sue` loses her role, or the node has another
/// tenant by then.
#[tokio::test(start_paused = true)]
async fn a_pause_and_its_end_go_by_the_roles_and_labels_of_now() {
    let of = |tenant: &str| [("tenant".to_owned(), tenant.to_owned())].into();
    for (scope, left, tenant) in [
        (PauseScope::Everything, &[Role::Viewer][..], "a"),
        (PauseScope::Everything, &[Role::Operator], "a"),
        (PauseScope::Node(node()), &[Role::Operator], "a"),
        (PauseScope::Node(node()), &[Role::Operator], "b"),
        (PauseScope::Group("tenant=a".to_owned()), &[Role::Operator], "b"),
    ] {
        let by_label = scope != PauseScope::Everything;
        let roles = |of_sue: &[Role]| {
            let grants = roles(of_sue);
            let labels = if by_label { of("a") } else { BTreeMap::new() };
            let scoped = |grant: &Grant| Grant {
                nodes: Scope { labels: labels.clone(), ..Scope::default() },
                ..grant.clone()
            };
            Roles::new(grants.grants().map(scoped).collect())
        };
        let setup =
            Setup { roles: roles(&[Role::Operator]), labels: of("a"), ..Setup::new(NODE, &[&["bmc"]]) };
        let mut lab = Lab::set_up(6306, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
        })
        .await;
        for begins in [true, false] {
            (lab.setup.roles, lab.setup.labels) = (roles(&[Role::Operator]), of("a"));
            lab.reload().await.expect("taken");
            if !begins {
                lab.engine.pause(scope.clone(), person(), s(3_600)).await.expect("paused");
            }
            lab.store.notes_take(s(60));
            let (before, engine, of_sue) =
                (lab.engine.clone(), asked_by_sue(&lab, Role::Operator), scope.clone());
            let before = tokio::spawn(async move {
                let other = PauseScope::Group("other".to_owned());
                before.pause(other, person(), s(90)).await.expect("paused");
            });
            let asked = tokio::spawn(async move {
                match begins {
                    true => engine.pause(of_sue, person(), s(3_600)).await.map(|_| ()),
                    false => engine.resume(of_sue, person()).await.map(|_| ()),
                }
            });
            lab.setup.labels = of(tenant);
            reload_as(&mut lab, roles(left)).await;
            assert!(!asked.is_finished());
            before.await.expect("paused");
            lab.store.notes_take(s(0));
            let answer = asked.await.expect("answered");
            let loses = left != [Role::Operator] || tenant != "a";
            if loses {
                is_lost(answer, &format!("sue has not the role operator for {scope} any more"));
            } else {
                answer.expect("by the roles of now");
            }
            let stands = lab.engine.pauses().iter().any(|pause| pause.scope == scope);
            assert_eq!(stands, begins != loses, "{scope} {begins}");
        }
    }
}

/// Its BMC takes its time for each look.
#[tokio::test(start_paused = true)]
async fn a_receipt_is_signed_by_the_roles_after_the_look() {
    let mut lab = lab(6307, &[Role::Controller]).await;
    lab.fence().await;
    lab.fault("bmc", Fault::Slow(Duration::from_millis(1_500)));
    let engine = asked_by_sue(&lab, Role::Controller);
    let call = || ReceiptCall { by: SUE.to_owned(), fence: None, renews: None, audience: String::new() };
    let asked = tokio::spawn(async move { engine.receipt(&node(), call()).await });
    reload(&mut lab, &[Role::Viewer]).await;
    assert!(!asked.is_finished(), "its device is waited for");
    is_lost(
        asked.await.expect("answered").map(|got| got.id),
        "sue has not the role controller for n1 any more",
    );
    assert!(lab.record().receipts.is_empty());
    // What was signed before is handed back by the roles of now, too.
    reload(&mut lab, &[Role::Controller]).await;
    let got = asked_by_sue(&lab, Role::Controller).receipt(&node(), call()).await.expect("it is dark");
    lab.store.linger(s(2));
    let (other, engine) = (lab.engine.clone(), asked_by_sue(&lab, Role::Controller));
    let other = tokio::spawn(async move { other.hold(&node(), "other".to_owned(), person()).await });
    tokio::task::yield_now().await;
    let asked = tokio::spawn(async move { engine.return_receipt(&node(), got.id, SUE.to_owned()).await });
    reload(&mut lab, &[Role::Viewer]).await;
    assert!(!asked.is_finished(), "it is behind another one");
    other.await.expect("answered").expect("held");
    is_lost(asked.await.expect("answered"), "sue has not the role controller for n1 any more");
}

/// Each join of a proven fence has it looked at, and callers may have many of them under way.
#[tokio::test(start_paused = true)]
async fn callers_of_one_node_keep_no_reload_from_being_taken() {
    let mut lab = lab(6308, &[Role::Controller]).await;
    lab.fence().await;
    lab.fault("bmc", Fault::Slow(s(1)));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let (engine, mut call) = (asked_by_sue(&lab, Role::Controller), lab.call());
        (call.holder.name, call.holder.asker, call.key) = ("db".to_owned(), Some(sue()), None);
        asking.spawn(async move { engine.fence(&node(), call).await });
    }
    tokio::time::sleep(s(1)).await;
    lab.setup.labels = [("rack".to_owned(), "r2".to_owned())].into();
    lab.setup.roles = roles(&[Role::Viewer]);
    let changed = lab.reload().await.expect("taken");
    assert_eq!(changed.later, [node()]);
    // Those that waited behind it go by its roles.
    let mut lost = 0;
    while let Some(answer) = asking.join_next().await {
        lost += usize::from(matches!(answer.expect("answered"), Err(EngineError::RoleLost(_))));
    }
    assert!(lost > 40, "{lost}");
}

/// A hold that the gateway drops by itself is dropped by nobody's role, also not by that of who asked last.
#[tokio::test(start_paused = true)]
async fn what_the_gateway_does_by_itself_is_judged_by_nobody_s_role() {
    let mut lab = crate::families::family(6309, 1, |_| {}).await;
    crate::families::deaf(&lab, 1);
    let hv = picket_core::ids::NodeId::new(crate::families::HV).expect("a good name");
    let mut call = lab.call();
    call.deadline = Some(s(1_800));
    lab.engine.fence(&node(), call).await.expect("let in");
    lab.reach("released", s(900)).await;
    reload(&mut lab, &[Role::Controller]).await;
    let engine = asked_by_sue(&lab, Role::Controller);
    let ask = Ask { by_person: false, ..person().into() };
    engine.unfence(&hv, "db".to_owned(), ask).await.expect_err("it holds nothing there");
    lab.engine.retire(&node(), person()).await.expect("retired");
    lab.reach_of(&hv, "normal", s(300)).await;
}

/// A fence that waits, with nothing sent, goes by the roles of the moment of its first off: for a board that takes none yet, or for the word of a
/// source that is away.
#[tokio::test(start_paused = true)]
async fn a_fence_that_has_sent_nothing_ends_with_the_role_of_who_asked_for_it() {
    for waits_for_word in [false, true] {
        let mut setup = Setup { roles: roles(&[Role::Controller]), ..Setup::new(NODE, &[&["bmc"]]) };
        setup.liveness = waits_for_word.then(crate::liveness::gone);
        let mut lab = Lab::set_up(6310, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
        })
        .await;
        if !waits_for_word {
            lab.fault("bmc", Fault::Silent);
        }
        let mut call = lab.call();
        (call.holder.name, call.holder.by_person) = ("db".to_owned(), false);
        call.holder.asker = Some(sue());
        let fence = lab.engine.fence(&node(), call).await.expect("let in").fence();
        tokio::time::sleep(s(30)).await;
        assert_eq!((lab.phase(), lab.received("bmc").offs), ("fencing", 0));
        reload(&mut lab, &[Role::Viewer]).await;
        let outcome = lab.outcome_within(fence, Until::Released, s(60)).await;
        assert_eq!(outcome, Some(Outcome::Blocked(Reason::Withdrawn)), "{waits_for_word}");
        lab.mend("bmc");
        tokio::time::sleep(s(700)).await;
        assert_eq!((lab.is_on(), lab.received("bmc").offs, lab.phase()), (true, 0, "normal"));
    }
}
