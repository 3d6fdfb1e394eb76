//! Budgets, the queue, pauses and plans, as callers see them.

use picket_audit::Audit;
use picket_core::budget::{Budget, Limits as Numbers};
use picket_proto::v1::*;
use picket_server::Limits;
use tonic::Code;

use crate::lab::{
    Lab, NODES, fence_request, kind, lab, lab_of, named, reason, unfence_request, wrong_fields,
};

pub async fn one_at_once() -> Lab {
    let fleet = Numbers { at_once: Some(1), min_not_fenced: Some(0), ..Numbers::default() };
    lab_of(&NODES, Limits::default(), Audit::none(), Budget { fleet, ..Budget::unlimited() }).await
}

fn of(node: &str, key: &str) -> FenceRequest {
    FenceRequest { node: named(node), ..fence_request(key) }
}

fn aside(reason: &str) -> Option<LimitOverride> {
    Some(LimitOverride { reason: reason.to_owned() })
}

fn scope(of: pause_scope::Of) -> Option<PauseScope> {
    Some(PauseScope { of: Some(of) })
}

fn pause_of(of: pause_scope::Of) -> PauseRequest {
    let lasts = Some(prost_types::Duration { seconds: 3_600, nanos: 0 });
    PauseRequest { scope: scope(of), reason: "a new switch".to_owned(), lasts }
}

fn resume_of(of: pause_scope::Of) -> ResumeRequest {
    ResumeRequest { scope: scope(of), reason: "it works".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn what_is_over_the_budget_is_blocked_with_the_limit_and_an_admin_sets_it_aside() {
    let lab = one_at_once().await;
    lab.volumes_only_accept(true);
    let first = lab.open(of("n1", "k1")).await.expect("let in");
    lab.reach("fenced").await;
    let outcome = lab.open(of("n2", "k2")).await.expect("answered").outcome().await;
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::Blocked, Reason::Budget));
    assert!(
        outcome.detail.contains("the fleet may have 1 of its 4 nodes fenced at once"),
        "{}",
        outcome.detail
    );
    let limit = outcome.limit.expect("a limit");
    assert_eq!(
        (limit.name.as_str(), limit.whose.as_str(), limit.allowed, limit.found),
        ("at_once", "the fleet", 1, 1)
    );
    let by_name = FenceRequest { override_budget: aside("both are on fire"), ..of("n2", "k2") };
    let all = {
        lab.volumes_only_accept(false);
        lab.open(by_name).await.expect("let in").all().await
    };
    assert!(
        all.iter()
            .any(|update| update.text.contains("set aside by") && update.text.contains("both are on fire"))
    );
    assert_eq!(
        all.last().and_then(|last| last.outcome.clone()).map(|end| end.kind()),
        Some(OutcomeKind::Fenced)
    );
    drop(first);
    let joins = FenceRequest { override_budget: aside("x"), override_quorum: aside("y"), ..of("n2", "k3") };
    let told = lab.open(joins).await.expect("let in").all().await;
    let words = &told[0].text;
    assert!(words.contains("setting limits aside was of no use"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_tells_what_for_and_whose_and_until_when() {
    let lab = one_at_once().await;
    lab.volumes_only_accept(true);
    let first = lab.open(of("n1", "k1")).await.expect("let in");
    lab.reach("fenced").await;
    let wish = FenceRequest { queue: Some(QueueWish::default()), ..of("n2", "k2") };
    let mut waits = lab.open(wish.clone()).await.expect("let in");
    let told = waits.update().await;
    assert!(told.text.starts_with("waits in the queue as number 1: the fleet may have"), "{}", told.text);
    let wait = told.wait.expect("a wait");
    assert_eq!((wait.what.as_str(), wait.whose.as_str()), ("one of the fences at once", "the fleet"));
    assert!(wait.until.is_some() && wait.otherwise == "blocked (expired)" && told.fence_id.is_empty());
    // Its caller leaves, and comes back with the same key.
    drop(waits);
    let again = lab.open(wish).await.expect("let in");
    lab.volumes_only_accept(false);
    assert_eq!(kind(&first.outcome().await), OutcomeKind::Fenced);
    let all = again.all().await;
    assert!(all[0].text.contains("as number 1"), "{}", all[0].text);
    let end = all.last().and_then(|last| last.outcome.clone()).expect("an outcome");
    assert_eq!((end.kind(), end.released), (OutcomeKind::Fenced, true));
    assert!(!lab.is_on("n2"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_too_long_is_blocked_as_expired() {
    let lab = one_at_once().await;
    let mut client = lab.client.clone();
    client.pause(pause_of(pause_scope::Of::Node("n1".to_owned()))).await.expect("paused");
    let at_most = Some(prost_types::Duration { seconds: 30, nanos: 0 });
    let wish = FenceRequest { queue: Some(QueueWish { at_most }), ..of("n1", "k1") };
    let end = lab.open(wish).await.expect("let in").outcome().await;
    assert_eq!((end.kind(), end.reason()), (OutcomeKind::Blocked, Reason::Expired));
    assert!(end.detail.contains("node n1 is paused by"), "{}", end.detail);
    assert!(lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_listed_with_each_node_that_it_covers_until_it_is_resumed() {
    let lab = lab().await;
    let mut client = lab.client.clone();
    let group = pause_scope::Of::Group("rack=r1".to_owned());
    let paused =
        client.pause(pause_of(group.clone())).await.expect("paused").into_inner().pause.expect("a pause");
    assert_eq!((paused.reason.as_str(), paused.scope), ("a new switch", scope(group.clone())));
    assert!(paused.since.is_some() && paused.expires_at.is_some());
    let listed = client.list_nodes(ListNodesRequest::default()).await.expect("listed").into_inner();
    for node in &listed.nodes {
        assert_eq!(node.pauses.len(), usize::from(node.name != "me"), "{}", node.name);
    }
    let blocked = lab.fence("k").await;
    assert_eq!((blocked.kind(), blocked.reason()), (OutcomeKind::Blocked, Reason::Paused));
    assert_eq!(blocked.limit.expect("a limit").name, "pause");
    let refused = client.resume(resume_of(pause_scope::Of::Everything(true))).await.expect_err("not paused");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::NotFound, "PAUSE_NOT_FOUND"));
    assert!(refused.message().contains("paused is group rack=r1"), "{}", refused.message());
    let left = client.resume(resume_of(group)).await.expect("resumed").into_inner().pauses;
    assert_eq!(left, []);
    assert_eq!(kind(&lab.fence("k").await), OutcomeKind::Fenced, "the key was not bound");
    for (of, word) in [
        (pause_scope::Of::Group("rack=r9".to_owned()), "GROUP_NOT_FOUND"),
        (pause_scope::Of::Node("n11".to_owned()), "NODE_NOT_FOUND"),
    ] {
        let refused = client.pause(pause_of(of)).await.expect_err("unknown");
        assert_eq!(reason(&refused).0, word);
    }
    let refused = client.pause(PauseRequest::default()).await.expect_err("nothing in it");
    assert_eq!(wrong_fields(&refused), ["lasts", "scope", "reason"]);
}

#[tokio::test(start_paused = true)]
async fn a_plan_and_a_dry_run_say_what_the_fence_would_come_to_and_change_nothing() {
    let lab = one_at_once().await;
    let mut client = lab.client.clone();
    let plan = |request: FenceRequest| PlanFenceRequest { fence: Some(request) };
    let planned = client.plan_fence(plan(of("n1", "k"))).await.expect("planned").into_inner();
    assert_eq!((planned.node.as_str(), planned.generation, planned.phase()), ("n1", 0, Phase::Normal));
    assert_eq!(planned.outcome.expect("an outcome").kind(), OutcomeKind::DryRun);
    let actions: Vec<PlanAction> = planned.steps.iter().map(PlanStep::action).collect();
    assert_eq!(
        actions[..5],
        [PlanAction::LastLook, PlanAction::Identify, PlanAction::Hold, PlanAction::Off, PlanAction::Confirm]
    );
    assert_eq!(planned.steps[4].grade(), Grade::Observed);
    assert!(planned.steps.iter().any(|step| step.action() == PlanAction::Release && step.target == "detach"));

    let dry = lab.open(FenceRequest { dry_run: true, ..of("n1", "k") }).await.expect("let in").all().await;
    assert_eq!(dry.len(), planned.steps.len() + 1);
    assert!(dry[3].text.starts_with("would off bmc (at most"), "{}", dry[3].text);
    assert_eq!(
        dry.last().and_then(|last| last.outcome.clone()).map(|end| end.kind()),
        Some(OutcomeKind::DryRun)
    );
    assert!(dry.iter().all(|update| update.fence_id.is_empty()) && lab.is_on("n1"));

    let me = client
        .plan_fence(plan(of("me", "k")))
        .await
        .expect("planned")
        .into_inner()
        .outcome
        .expect("an outcome");
    assert_eq!((me.kind(), me.reason()), (OutcomeKind::Blocked, Reason::Self_));
    assert_eq!(kind(&lab.fence("k1").await), OutcomeKind::Fenced);
    let already = client.plan_fence(plan(of("n1", "k"))).await.expect("planned").into_inner();
    assert_eq!(
        already.outcome.map(|end| (end.kind(), end.released)),
        Some((OutcomeKind::AlreadyFenced, true))
    );
    assert_eq!(already.steps, []);
    let refused = client.plan_fence(PlanFenceRequest::default()).await.expect_err("nothing in it");
    assert_eq!(wrong_fields(&refused), ["node", "reason"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_seen_at_its_node_and_an_unfence_withdraws_it() {
    let lab = one_at_once().await;
    lab.volumes_only_accept(true);
    let first = lab.open(of("n1", "k1")).await.expect("let in");
    lab.reach("fenced").await;
    let wish = FenceRequest { queue: Some(QueueWish::default()), ..of("n2", "k2") };
    let mut waits = lab.open(wish.clone()).await.expect("let in");
    waits.update().await;
    let mut client = lab.client.clone();
    let get = GetNodeRequest { node: named("n2"), ..Default::default() };
    let node = client.get_node(get.clone()).await.expect("known").into_inner().node.expect("a node");
    let wait = node.wait.expect("a wait");
    assert_eq!((node.phase, wait.whose.as_str()), (Phase::Normal.into(), "the fleet"));
    assert!(
        wait.what.starts_with("one of the fences at once, in the queue as number 1, asked by "),
        "{}",
        wait.what
    );
    assert!(wait.what.ends_with(" for db") && wait.until.is_some(), "{wait:?}");

    let unfence = |holder: &str| UnfenceRequest {
        node: named("n2"),
        holder: holder.to_owned(),
        // Bound, also where nothing is to be done.
        ..unfence_request(holder)
    };
    let others = lab.back(unfence("web")).await.expect("let in").outcome().await;
    assert_eq!(others.detail, "it was not fenced, so nothing was to be done");
    let ours = lab.back(unfence("db")).await.expect("let in").outcome().await;
    assert_eq!(kind(&ours), OutcomeKind::Unfenced);
    assert_eq!(
        ours.detail,
        "it was not fenced, and what waited in the queue for db was withdrawn (number 1)"
    );
    let end = waits.outcome().await;
    assert_eq!((end.kind(), end.reason()), (OutcomeKind::Blocked, Reason::Withdrawn));
    assert!(end.detail.contains("it was withdrawn by") && end.detail.contains("a test"), "{}", end.detail);
    let node = client.get_node(get).await.expect("known").into_inner().node.expect("a node");
    assert_eq!(node.wait, None);
    let copy = lab.back(unfence("db")).await.expect("let in").outcome().await;
    assert_eq!(kind(&copy), OutcomeKind::Unfenced);
    assert_eq!(copy.detail, "it was not fenced when this was asked first, so nothing was to be done");
    let other = UnfenceRequest { reason: "another test".to_owned(), ..unfence("db") };
    let refused = lab.back(other).await.err().expect("the key is bound");
    let (word, more) = reason(&refused);
    assert_eq!((word.as_str(), more.get("fence")), ("KEY_REUSED", None));

    // A dropped hold withdraws as well.
    let again = lab.open(wish).await.expect("let in");
    let drop_hold = DropHoldRequest {
        node: named("n2"),
        holder: "db".to_owned(),
        reason: "a test".to_owned(),
        ..Default::default()
    };
    client.drop_hold(drop_hold).await.expect("dropped");
    assert_eq!(again.outcome().await.reason(), Reason::Withdrawn);
    lab.volumes_only_accept(false);
    assert_eq!(kind(&first.outcome().await), OutcomeKind::Fenced);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(lab.is_on("n2"), "nobody shoots it any more");

    // A copy that comes once the node is fenced does not bring it back.
    assert_eq!(
        kind(&lab.back(unfence_request("k1-back")).await.expect("let in").outcome().await),
        OutcomeKind::Unfenced
    );
    assert_eq!(kind(&lab.open(of("n2", "k3")).await.expect("let in").outcome().await), OutcomeKind::Fenced);
    let late = lab.back(unfence("db")).await.expect("let in").outcome().await;
    assert_eq!(kind(&late), OutcomeKind::Superseded);
    assert!(late.detail.ends_with("was fenced since: it is in phase released"), "{}", late.detail);
    assert!(!lab.is_on("n2"));
}
