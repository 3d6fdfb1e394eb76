//! The queue: stored, fair, bounded; it expires, and a caller who leaves stops nothing.

use std::time::Duration;

use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, LimitKind};
use picket_core::ids::{Generation, NodeId};
use picket_core::outcome::Reason;
use picket_core::roles::{Grant, Pattern, Person, Proof, Role, Roles, Scope};
use picket_core::store::Store;
use picket_engine::{Ask, EngineError, FenceCall, LetIn, WaitState, Waits};

use crate::budget::{at_once, fleet, name};
use crate::lab::{Lab, node, person, s};

pub async fn wait(lab: &Lab, node: &NodeId, call: FenceCall, at_most: Option<Duration>) -> Waits {
    match lab.engine.fence_or_wait(node, call, at_most).await.expect("let in") {
        LetIn::Waits(waits) => waits,
        LetIn::In(admission) => panic!("{admission:?}"),
    }
}

pub fn end(waits: &Waits) -> Option<Result<(), EngineError>> {
    match &*waits.state.borrow() {
        WaitState::Over(end) => Some((**end).clone().map(drop)),
        WaitState::Barred(_) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_expires_and_its_key_is_not_bound() {
    let mut lab = fleet(330, 3, at_once(1)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let call = lab.call();
    let long = wait(&lab, &node(), call.clone(), None).await;
    let other = lab.call();
    let short = wait(&lab, &node(), other, Some(s(20))).await;
    assert!(long.ticket < short.ticket);
    assert_eq!(
        wait(&lab, &node(), call.clone(), None).await.ticket,
        long.ticket,
        "with its key it is the same"
    );
    let mut changed = call.clone();
    changed.key.as_mut().expect("a key").digest = "other".to_owned();
    assert!(lab.engine.fence_or_wait(&node(), changed, None).await.is_err());
    tokio::time::sleep(s(21)).await;
    match end(&short) {
        Some(Err(EngineError::Blocked { reason, detail })) => {
            assert_eq!(reason, Reason::Expired);
            assert!(detail.contains("was not begun: node n1 is paused"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
    assert!(end(&long).is_none());
    tokio::time::sleep(s(600)).await;
    assert!(matches!(end(&long), Some(Err(EngineError::Blocked { reason: Reason::Expired, .. }))));
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
    lab.engine.resume(PauseScope::Node(node()), person()).await.expect("resumed");
    assert!(lab.engine.fence(&node(), call).await.is_ok(), "asked again, it is decided again");
}

/// Another leader, whose clock is behind, would begin what stands in the store still.
#[tokio::test(start_paused = true)]
async fn a_request_is_told_to_be_over_once_it_is_out_of_the_store() {
    let mut lab = fleet(337, 3, at_once(1)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let call = lab.call();
    let short = wait(&lab, &node(), call, Some(s(20))).await;
    tokio::time::sleep(s(10)).await;
    lab.store.away(s(30));
    tokio::time::sleep(s(15)).await;
    assert!(end(&short).is_none(), "its note stands: {:?}", end(&short));
    // Its time is over all the same.
    lab.engine.resume(PauseScope::Node(node()), person()).await.expect_err("the store is away");
    tokio::time::sleep(s(20)).await;
    assert!(matches!(end(&short), Some(Err(EngineError::Blocked { reason: Reason::Expired, .. }))));
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
    assert_eq!(lab.phase(), "normal");
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_on_waiting_without_its_caller_and_after_a_death_with_what_is_left() {
    let mut lab = fleet(331, 3, at_once(9)).await;
    lab.engine.pause(PauseScope::Everything, person(), s(3_600)).await.expect("paused");
    let (first, second) = (lab.call(), lab.call());
    drop(wait(&lab, &name(1), first, Some(s(100))).await);
    drop(wait(&lab, &name(2), second.clone(), None).await);
    tokio::time::sleep(s(60)).await;
    lab.kill().await;
    tokio::time::sleep(s(60)).await;
    lab.start().await;
    let again = wait(&lab, &name(2), second, None).await;
    tokio::time::sleep(s(1)).await;
    assert_eq!(lab.engine.office_numbers().waiting, 1, "the first one's time was over");
    lab.engine.resume(PauseScope::Everything, person()).await.expect("resumed");
    tokio::time::sleep(s(1)).await;
    assert!(matches!(end(&again), Some(Ok(()))), "{:?}", end(&again));
    assert_eq!(lab.engine.node(&name(2)).expect("known").stored.record.phase.label(), "fencing");
    assert_eq!(lab.phase(), "normal");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_void_once_its_node_was_fenced_and_brought_back() {
    let mut lab = fleet(332, 2, at_once(9)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let call = lab.call();
    let waits = wait(&lab, &node(), call, None).await;
    // While we are down somebody else's store has the node two generations on.
    lab.kill().await;
    let note = lab.store.notes("queue/").await.expect("a store").remove(0).1;
    let older = note.text.replace("\"generation\":0", "\"generation\":7");
    assert_ne!(older, note.text);
    let term = lab.store.take_term().await.expect("a term");
    let guard = picket_core::store::Guard { term, incarnation: lab.store.incarnation() };
    let stored = lab.store.notes("queue/").await.expect("a store").remove(0);
    lab.store.put_note(guard, &stored.0, stored.1.version, Some(older)).await.expect("written");
    drop(waits);
    lab.start().await;
    lab.engine.resume(PauseScope::Node(node()), person()).await.expect("resumed");
    tokio::time::sleep(s(5)).await;
    assert_eq!(lab.phase(), "normal", "it opens no fence in another generation");
    assert!(lab.is_on());
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_node_that_somebody_else_fences_joins() {
    let mut lab = fleet(333, 3, at_once(1)).await;
    let busy = lab.call();
    lab.engine.fence(&name(2), busy).await.expect("let in");
    let mut call = lab.call();
    call.holder.name = "waiter".to_owned();
    let waits = wait(&lab, &node(), call, None).await;
    let mut aside = lab.call();
    aside.set_aside = Some(crate::lab::budget_aside("now"));
    lab.engine.fence(&node(), aside).await.expect("let in");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(matches!(end(&waits), Some(Ok(()))), "{:?}", end(&waits));
    assert!(lab.record().holds.contains_key("waiter"));
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_a_newcomer_does_not_pass_who_waits() {
    let mut lab = fleet(334, 5, Budget { queue_most: 1, ..at_once(1) }).await;
    lab.open().await;
    let call = lab.call();
    let second = wait(&lab, &name(2), call, None).await;
    let call = lab.call();
    match lab.engine.fence_or_wait(&name(3), call, None).await {
        Err(EngineError::Barred(bar)) => assert_eq!((bar.kind, bar.found), (LimitKind::Queue, 1)),
        other => panic!("{other:?}"),
    }
    lab.reach("released", s(60)).await;
    let call = lab.call();
    let passed = lab.engine.fence(&name(4), call).await;
    assert!(matches!(passed, Err(EngineError::Barred(_))), "{passed:?}");
    tokio::time::sleep(s(1)).await;
    assert!(matches!(end(&second), Some(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_seen_and_withdrawn_by_its_holder_alone() {
    let mut lab = fleet(335, 2, at_once(9)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let (call, mut other) = (lab.call(), lab.call());
    other.holder.name = "web".to_owned();
    let ours = wait(&lab, &node(), call.clone(), None).await;
    let theirs = wait(&lab, &node(), other, None).await;
    let seen = lab.engine.waiting_for(&node());
    assert_eq!(seen.iter().map(|one| one.ticket).collect::<Vec<_>>(), [ours.ticket, theirs.ticket]);
    assert_eq!(
        (seen[0].holder.as_str(), seen[0].by.as_str(), seen[0].bar.kind),
        ("db", "tester", LimitKind::Pause)
    );
    let mut stale = Ask::from(person());
    stale.expected_generation = Some(Generation(7));
    assert!(lab.engine.withdraw(&node(), "db", &stale).await.expect("answered").is_empty());
    assert!(end(&ours).is_none());

    let ended = lab.engine.withdraw(&node(), "db", &person().into()).await.expect("withdrawn");
    assert_eq!(ended, [ours.ticket]);
    match end(&ours) {
        Some(Err(EngineError::Blocked { reason: Reason::Withdrawn, detail })) => {
            assert!(detail.starts_with(&format!("it was withdrawn by {}", person().name)), "{detail}");
        }
        other => panic!("{other:?}"),
    }
    assert!(end(&theirs).is_none());
    assert_eq!(lab.store.notes("queue/").await.expect("a store").len(), 1, "it is out of the store already");
    assert_eq!(lab.engine.withdraw(&node(), "web", &person().into()).await.expect("withdrawn").len(), 1);
    assert!(lab.engine.waiting_for(&node()).is_empty());

    lab.kill().await;
    lab.start().await;
    lab.engine.resume(PauseScope::Node(node()), person()).await.expect("resumed");
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.phase(), lab.is_on()), ("normal", true), "nobody shoots it any more");
    assert!(lab.engine.fence(&node(), call).await.is_ok(), "its key was not bound");
}

/// An unfence of a node that was not fenced binds no key: its copy, sent again by a caller whose connection broke, must not
/// withdraw what was asked for after it.
#[tokio::test(start_paused = true)]
async fn a_copy_of_an_unfence_withdraws_nothing_that_came_after_it() {
    let mut lab = fleet(2403, 2, at_once(9)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let call = lab.call();
    let first = wait(&lab, &node(), call, None).await;
    let mut ask = Ask::from(person());
    ask.key = Some(picket_core::event::BoundKey { key: "u1".to_owned(), digest: "d".to_owned() });
    assert_eq!(lab.engine.withdraw(&node(), "db", &ask).await.expect("withdrawn"), [first.ticket]);
    let _not_fenced = lab.engine.unfence(&node(), "db".to_owned(), ask.clone()).await;
    let call = lab.call();
    let second = wait(&lab, &node(), call, None).await;
    let ended = lab.engine.withdraw(&node(), "db", &ask).await.expect("answered");
    assert!(end(&second).is_none(), "the copy withdrew {ended:?}, which was asked for after it");
}

/// S14: a request that a pause bars keeps no place while it waits.
#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_paused_node_keeps_nobody_else_waiting() {
    let mut lab = fleet(2410, 3, at_once(1)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let (first, second, third) = (lab.call(), lab.call(), lab.call());
    let paused = wait(&lab, &node(), first, None).await;
    lab.engine.fence(&name(2), second).await.expect("nothing else is fenced");
    let behind = wait(&lab, &name(3), third, None).await;
    lab.reach_of(&name(2), "released", s(60)).await;
    tokio::time::sleep(s(10)).await;
    assert!(matches!(end(&behind), Some(Ok(()))), "{:?}", end(&behind));
    assert!(end(&paused).is_none() && lab.is_on());
}

/// S14: however often one caller asks, others find room in the queue.
#[tokio::test(start_paused = true)]
async fn no_caller_fills_the_queue() {
    let mut lab = fleet(2411, 3, Budget { queue_most: 3, ..at_once(9) }).await;
    lab.engine.pause(PauseScope::Everything, person(), s(3_600)).await.expect("paused");
    let mut call = lab.call();
    call.key = None;
    let first = wait(&lab, &node(), call.clone(), None).await;
    assert_eq!(wait(&lab, &node(), call, None).await.ticket, first.ticket, "it asks for the same");
    let (second, third) = (lab.call(), lab.call());
    wait(&lab, &node(), second, None).await;
    match lab.engine.fence_or_wait(&node(), third, None).await {
        Err(EngineError::Barred(bar)) => {
            assert_eq!((bar.kind, bar.found), (LimitKind::Queue, 2));
            assert!(bar.text.starts_with("tester has 2 of the 3 requests"), "{}", bar.text);
        }
        other => panic!("{other:?}"),
    }
    let (mut another, mut late) = (lab.call(), lab.call());
    another.holder.by = "monitor".to_owned();
    wait(&lab, &name(2), another, None).await;
    late.holder.by = "late".to_owned();
    match lab.engine.fence_or_wait(&name(3), late, None).await {
        Err(EngineError::Barred(bar)) => assert_eq!((bar.kind, bar.found), (LimitKind::Queue, 3)),
        other => panic!("{other:?}"),
    }
}

/// A process that reaches the loopback chooses any of its addresses.
#[tokio::test(start_paused = true)]
async fn no_process_fills_the_queue_by_many_addresses() {
    let mut lab = fleet(2412, 3, Budget { queue_most: 3, ..at_once(9) }).await;
    lab.engine.pause(PauseScope::Everything, person(), s(3_600)).await.expect("paused");
    let mut calls: Vec<FenceCall> = (0..3).map(|_| lab.call()).collect();
    for (at, call) in calls.iter_mut().enumerate() {
        call.holder.by = format!("tcp:127.0.0.{}", at + 1);
    }
    for call in &calls[..2] {
        wait(&lab, &node(), call.clone(), None).await;
    }
    let third = lab.engine.fence_or_wait(&node(), calls[2].clone(), None).await;
    assert!(matches!(&third, Err(EngineError::Barred(bar)) if bar.found == 2), "{third:?}");
}

/// Whoever has a role for all nodes, as a person or as a program.
fn roles(role: Option<Role>) -> Roles {
    let grant = |role| Grant {
        name: "db".to_owned(),
        role,
        callers: vec![Pattern::new("db").expect("a good pattern")],
        uids: Vec::new(),
        gids: Vec::new(),
        nodes: Scope::default(),
        holders: Vec::new(),
    };
    Roles::new(role.map(grant).into_iter().collect())
}

fn asked_by_db(lab: &mut Lab) -> FenceCall {
    let mut call = lab.call();
    call.holder.by_person = true;
    call.holder.asker = Some(Person { name: "db".to_owned(), proof: Proof::Certificate });
    call
}

/// S14: one reload takes the role and what barred the request; another gateway leads, to whose settings the caller is a stranger.
#[tokio::test(start_paused = true)]
async fn whoever_lost_its_role_is_not_let_go() {
    for dies in [false, true] {
        let mut lab = fleet(2503, 3, Budget { cool_down: s(600), ..at_once(1) }).await;
        lab.setup.roles = roles(Some(Role::Operator));
        lab.reload().await.expect("changed");
        lab.fence().await;
        lab.unfence().await.expect("unfenced");
        lab.reach("normal", s(120)).await;
        let generation = lab.record().generation;
        let call = asked_by_db(&mut lab);
        let waits = wait(&lab, &node(), call, None).await;
        lab.setup.roles = roles(None);
        lab.setup.budget.cool_down = Duration::ZERO;
        match dies {
            true => lab.crash().await,
            false => drop(lab.reload().await.expect("changed")),
        }
        tokio::time::sleep(s(60)).await;
        if !dies {
            let ended = end(&waits);
            let lost = |why: &str| why.starts_with("db has no role any more that may fence n1");
            assert!(matches!(&ended, Some(Err(EngineError::RoleLost(why))) if lost(why)), "{ended:?}");
        }
        assert_eq!((lab.phase(), lab.record().generation), ("normal", generation));
        assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_no_person_any_more_does_not_ask_as_one() {
    let mut lab = fleet(2502, 3, at_once(1)).await;
    lab.setup.roles = roles(Some(Role::Operator));
    lab.reload().await.expect("changed");
    lab.engine.pause(PauseScope::Node(node()), person(), s(30)).await.expect("paused");
    let call = asked_by_db(&mut lab);
    wait(&lab, &node(), call, None).await;
    lab.setup.roles = roles(Some(Role::Controller));
    lab.reload().await.expect("changed");
    lab.reach("released", s(120)).await;
    assert!(!lab.record().fence.expect("open").by_person);
}

/// A member of the store that stood still writes it long after its caller was told that nobody knows.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_written_late_is_begun_by_nobody() {
    let mut lab = fleet(344, 3, at_once(1)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    lab.store.writes_the_next_note_late(s(5));
    let call = lab.call();
    assert!(lab.engine.fence_or_wait(&node(), call, None).await.is_err(), "nobody knows");
    tokio::time::sleep(s(10)).await;
    lab.crash().await;
    tokio::time::sleep(s(5)).await;
    lab.engine.resume(PauseScope::Node(node()), person()).await.expect("resumed");
    tokio::time::sleep(s(30)).await;
    assert_eq!((lab.phase(), lab.is_on()), ("normal", true));
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
}
