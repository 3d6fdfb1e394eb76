//! Who may what: a second door of the same gateway, with roles of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::ids::NodeId;
use picket_core::record::Fence;
use picket_core::roles::{Grant, Pattern, Role, Roles, Scope};
use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::{
    AttestRequest, DropHoldRequest, FenceRequest, FenceResponse, FenceUpdate, GetFenceRequest,
    GetNodeRequest, LimitOverride, ListFencesRequest, ListNodesRequest, NodeSelector, NodeSet, PauseRequest,
    PauseScope, PlanFenceRequest, QueueWish, RetryRequest, WatchNodesRequest, node_selector, node_set,
    pause_scope,
};
use picket_server::{AccessRules, Addresses, Denial, DenialSink, Limits, SocketFile, serve_by};
use tempfile::TempDir;
use tokio_stream::StreamExt;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::lab::{Client, Lab, channel, connect, fence_request, lab, named, reason, s, unfence_request};

/// Who is told of denials here.
#[derive(Debug, Default)]
pub struct Told(Mutex<Vec<Denial>>);

impl DenialSink for Told {
    fn denied(&self, denial: &Denial) {
        self.0.lock().push(denial.clone());
    }
}

impl Told {
    fn reasons(&self) -> Vec<(String, &'static str)> {
        let told = self.0.lock();
        told.iter().map(|denial| (denial.call.clone(), denial.reason)).collect()
    }
}

/// The second door.
pub struct Side {
    pub client: Client,
    told: Arc<Told>,
    dir: TempDir,
}

impl Side {
    /// The denials of which the audit was told.
    pub fn told(&self) -> Vec<Denial> {
        self.told.0.lock().clone()
    }
}

pub async fn side(lab: &Lab, grants: Vec<Grant>, limits: Limits) -> Side {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let unix = Some(SocketFile { path: socket.clone(), mode: SocketFile::MODE });
    let listeners = Addresses { unix, tcp: None }.bind().await.expect("bound");
    let told = Arc::new(Told::default());
    let rules =
        AccessRules { limits, roles: Roles::new(grants), denials: told.clone(), metrics: Default::default() };
    let serving = serve_by(rules, lab.engine.clone(), listeners, lab.stop.clone());
    tokio::spawn(async move { serving.await.expect("served") });
    Side { client: connect(&socket).await, told, dir }
}

/// A role for whoever runs the test.
pub fn mine(role: Role) -> Grant {
    let any = vec![Pattern::new("uid:*").expect("a good pattern")];
    Grant {
        name: role.word().to_owned(),
        role,
        callers: any,
        uids: vec![],
        gids: vec![],
        nodes: Scope::default(),
        holders: vec![],
    }
}

fn only(node: &str) -> Scope {
    let id = NodeId::new(node).expect("a good name");
    Scope { hosts: Some((node.to_owned(), BTreeSet::from([id]))), ..Scope::default() }
}

fn refused<T>(answer: Result<T, Status>) -> (Status, String) {
    let status = answer.err().expect("refused");
    assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    let word = reason(&status).0;
    (status, word)
}

fn own_fence(node: &str) -> FenceRequest {
    FenceRequest { node: named(node), holder: String::new(), ..fence_request("k") }
}

#[tokio::test(start_paused = true)]
async fn a_role_that_is_missing_is_named_and_nothing_is_begun() {
    let lab = lab().await;
    let side = side(&lab, vec![mine(Role::Viewer)], Limits::default()).await;
    let mut client = side.client.clone();
    client.list_nodes(ListNodesRequest::default()).await.expect("a viewer looks");
    for _ in 0..3 {
        let (status, word) = refused(client.fence(fence_request("k")).await);
        let metadata = reason(&status).1;
        assert_eq!((word.as_str(), metadata["role"].as_str()), ("ROLE_MISSING", "controller"));
        assert!(metadata["caller"].starts_with("uid:") && metadata["roles"] == "viewer", "{metadata:?}");
    }
    let (status, _) = refused(client.retry(RetryRequest::default()).await);
    assert_eq!(reason(&status).1["role"], "operator", "before anything of the request is looked at");
    assert!(lab.is_on("n1"));
    let expected = [("Fence".to_owned(), "ROLE_MISSING"), ("Retry".to_owned(), "ROLE_MISSING")];
    assert_eq!(side.told.reasons(), expected, "equal ones once");
}

/// A person is whoever may decide what a fence of that node does next: of such a fence nobody is asked whether the node recovered.
#[tokio::test(start_paused = true)]
async fn whose_fence_it_is_is_told_by_the_roles_for_that_node() {
    let elsewhere = Grant { nodes: only("n2"), ..mine(Role::Admin) };
    for (grants, by_person) in [
        (vec![mine(Role::Controller)], false),
        (vec![mine(Role::Controller), elsewhere], false),
        (vec![mine(Role::Operator)], true),
        (vec![mine(Role::Controller), mine(Role::Admin)], true),
    ] {
        let lab = lab().await;
        let side = side(&lab, grants, Limits::default()).await;
        let _stream = side.client.clone().fence(own_fence("n1")).await.expect("let in");
        assert_eq!(stored(&lab).by_person, by_person);
    }
    let lab = lab().await;
    let _stream = lab.open(own_fence("n1")).await.expect("let in");
    assert!(stored(&lab).by_person, "without roles everybody here is one");
}

/// What bars a node may count others: who has no role for all of them hears how many, and not which, also in the queue and in a plan.
#[tokio::test(start_paused = true)]
async fn what_bars_names_other_nodes_to_those_alone_who_may_know_of_them() {
    let lab = crate::limits::one_at_once().await;
    let _stream =
        lab.open(FenceRequest { node: named("n2"), ..fence_request("other") }).await.expect("let in");
    let for_one = Grant { nodes: only("n1"), ..mine(Role::Controller) };
    for (grants, knows) in [(vec![for_one.clone()], false), (vec![for_one, mine(Role::Viewer)], true)] {
        let side = side(&lab, grants, Limits::default()).await;
        let mut client = side.client.clone();
        let at_once = client.fence(own_fence("n1")).await.expect("an answer");
        let planned =
            client.plan_fence(PlanFenceRequest { fence: Some(own_fence("n1")) }).await.expect("planned");
        let waits = FenceRequest { queue: Some(QueueWish::default()), ..own_fence("n1") };
        let waits = client.fence(waits).await.expect("let in");
        let texts = [
            first(at_once).await.outcome.expect("barred").detail,
            planned.into_inner().outcome.expect("barred").detail,
            first(waits).await.text,
        ];
        for text in texts {
            assert!(text.contains("may have 1 of its") && text.contains("has 1"), "{text}");
            assert_eq!(text.contains("n2"), knows, "{text}");
        }
    }
}

/// S22: whoever may act for a child's holder, and has no right over the machine on which the child runs, does not bring that machine back.
#[tokio::test(start_paused = true)]
async fn only_an_admin_of_the_node_ends_the_hold_of_a_machine_that_runs_on_it() {
    let lab = lab().await;
    lab.fence("k").await;
    let holders = vec![Pattern::new("child:*").expect("a good pattern")];
    let operator = Grant { holders, ..mine(Role::Operator) };
    let ends = |client: &Client| {
        let mut client = client.clone();
        let request = DropHoldRequest {
            node: named("n1"),
            holder: "child:vm1".to_owned(),
            reason: "forty others run there".to_owned(),
            ..Default::default()
        };
        async move { reason(&client.drop_hold(request).await.expect_err("no child holds it")).0 }
    };
    let side_door = side(&lab, vec![operator], Limits::default()).await;
    assert_eq!(ends(&side_door.client).await, "ROLE_MISSING");
    let side_door = side(&lab, vec![mine(Role::Admin)], Limits::default()).await;
    assert_eq!(ends(&side_door.client).await, "HOLD_NOT_FOUND");
}

async fn first(answer: tonic::Response<tonic::Streaming<FenceResponse>>) -> FenceUpdate {
    let told = answer.into_inner().message().await.expect("told").expect("one");
    told.update.expect("an update")
}

fn stored(lab: &Lab) -> Fence {
    let view = lab.engine.node(&NodeId::new("n1").expect("a good name")).expect("known");
    view.stored.record.fence.clone().expect("it is open")
}

#[tokio::test(start_paused = true)]
async fn attest_is_implied_by_no_other_role() {
    let lab = lab().await;
    let ladder = [Role::Viewer, Role::Controller, Role::Operator, Role::Admin];
    let side = side(&lab, ladder.map(mine).to_vec(), Limits::default()).await;
    let (status, _) = refused(side.client.clone().attest(AttestRequest::default()).await);
    assert_eq!(reason(&status).1["role"], "attest");
    let (_, word) = refused(lab.client.clone().attest(AttestRequest::default()).await);
    assert_eq!(word, "ROLE_MISSING", "nor by the socket's default");
}

#[tokio::test(start_paused = true)]
async fn a_role_for_some_nodes_shows_and_touches_no_others() {
    let lab = lab().await;
    lab.open(FenceRequest { node: named("n2"), ..fence_request("k2") })
        .await
        .expect("an admin")
        .outcome()
        .await;
    let grants = vec![Grant { nodes: only("n1"), ..mine(Role::Controller) }];
    let side = side(&lab, grants, Limits::default()).await;
    let mut client = side.client.clone();

    let listed = client.list_nodes(ListNodesRequest::default()).await.expect("let in").into_inner();
    let names: Vec<&str> = listed.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!((names.as_slice(), listed.total_size), (&["n1"][..], 1));
    let two = Some(NodeSet { of: Some(node_set::Of::Hosts("n[1-2]".to_owned())) });
    refused(client.list_nodes(ListNodesRequest { nodes: two, ..Default::default() }).await);

    let (status, word) = refused(client.get_node(GetNodeRequest { node: named("n2"), fresh: false }).await);
    let metadata = reason(&status).1;
    assert_eq!(
        (word.as_str(), metadata["node"].as_str(), metadata["groups"].as_str()),
        ("ROLE_MISSING", "n2", "n1")
    );
    refused(client.fence(own_fence("n2")).await);
    client.fence(own_fence("n1")).await.expect("its own");

    let history = client.list_fences(ListFencesRequest::default()).await.expect("let in").into_inner();
    assert!(history.fences.iter().all(|fence| fence.node == "n1"), "{history:?}");
    let all =
        lab.client.clone().list_fences(ListFencesRequest::default()).await.expect("let in").into_inner();
    let other = all.fences.iter().find(|fence| fence.node == "n2").expect("it was fenced");
    let hidden = client.get_fence(GetFenceRequest { fence_id: other.id.clone(), ..Default::default() }).await;
    let hidden = hidden.expect_err("it is another's");
    assert_eq!((hidden.code(), reason(&hidden).0.as_str()), (Code::NotFound, "FENCE_NOT_FOUND"));
    assert!(!hidden.message().contains("n2"), "{hidden}");

    let mut watch = client.watch_nodes(WatchNodesRequest::default()).await.expect("let in").into_inner();
    let mut seen = BTreeSet::new();
    lab.back(crate::lab::unfence_request("k3")).await.err();
    while let Ok(Some(Ok(event))) = tokio::time::timeout(s(30), watch.next()).await {
        if let Some(Event::Node(node)) = event.event {
            seen.insert(node.name);
        }
    }
    assert_eq!(seen, BTreeSet::from(["n1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn nodes_of_others_are_named_to_nobody_who_did_not_name_them() {
    let lab = lab().await;
    let uuid = lab.world.lock().identity("n2").uuid.clone().expect("it has one");
    let side = side(&lab, vec![Grant { nodes: only("n1"), ..mine(Role::Viewer) }], Limits::default()).await;
    let mut client = side.client.clone();
    let by = Some(NodeSelector { by: Some(node_selector::By::SystemUuid(uuid)) });
    let hidden =
        client.get_node(GetNodeRequest { node: by.clone(), fresh: false }).await.expect_err("hidden");
    assert_eq!((hidden.code(), reason(&hidden).0.as_str()), (Code::NotFound, "NODE_NOT_FOUND"));
    assert!(!hidden.message().contains("n2"), "{hidden}");
    assert_eq!(side.told.reasons(), [("GetNode".to_owned(), "ROLE_MISSING")], "who keeps the audit knows");
    lab.client.clone().get_node(GetNodeRequest { node: by, fresh: false }).await.expect("an admin finds it");

    let unknown =
        client.get_node(GetNodeRequest { node: named("n3"), fresh: false }).await.expect_err("none");
    assert_eq!(reason(&unknown).1["near"], "n1");
    assert!(!unknown.message().contains("n2"), "{unknown}");
    let near = lab.client.clone().get_node(GetNodeRequest { node: named("n3"), fresh: false }).await;
    assert!(reason(&near.expect_err("none")).1["near"].contains("n2"));
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_is_told_at_an_orderly_stop() {
    let lab = lab().await;
    let side = side(&lab, vec![], Limits::default()).await;
    for _ in 0..5 {
        refused(side.client.clone().list_nodes(ListNodesRequest::default()).await);
    }
    lab.stop.cancel();
    tokio::time::sleep(s(5)).await;
    let told = side.told.0.lock();
    assert_eq!(told.iter().map(|denial| denial.count).collect::<Vec<_>>(), [1, 4]);
}

#[tokio::test(start_paused = true)]
async fn who_makes_up_calls_is_told_of_once_and_hides_nobody() {
    let lab = lab().await;
    let side = side(&lab, vec![mine(Role::Viewer)], Limits::default()).await;
    let channel = channel(&side.dir.path().join("s")).await;
    for number in 0..40 {
        let path = format!("/picket.v1.FencingService/Shoot{number}");
        let status = crate::half::half(channel.clone(), &path).await.expect("answered");
        assert_eq!((status.code(), reason(&status).0.as_str()), (Code::Unimplemented, "NOT_OFFERED"));
    }
    refused(side.client.clone().fence(fence_request("k")).await);
    let expected = [("unknown".to_owned(), "NOT_OFFERED"), ("Fence".to_owned(), "ROLE_MISSING")];
    assert_eq!(side.told.reasons(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_holder_is_the_caller_or_one_that_the_role_lists() {
    let lab = lab().await;
    let listed = vec![Pattern::new("db*").expect("a good pattern")];
    let grants = vec![Grant { holders: listed, ..mine(Role::Controller) }];
    let side = side(&lab, grants, Limits::default()).await;
    let mut client = side.client.clone();
    let of = |holder: &str| FenceRequest { holder: holder.to_owned(), ..fence_request(holder) };
    let (status, word) = refused(client.fence(of("somebody")).await);
    let metadata = reason(&status).1;
    assert_eq!((word.as_str(), metadata["holder"].as_str()), ("HOLDER_NOT_ALLOWED", "somebody"));
    assert!(lab.is_on("n1"));
    client.fence(of("db-1")).await.expect("listed");
    lab.open(of("somebody")).await.expect("an admin acts for any").outcome().await;
    let unfence = |holder: &str| picket_proto::v1::UnfenceRequest {
        holder: holder.to_owned(),
        ..unfence_request(&format!("u{holder}"))
    };
    assert_eq!(refused(client.unfence(unfence("somebody")).await).1, "HOLDER_NOT_ALLOWED");
    client.unfence(unfence("db-1")).await.expect("its own");
}

#[tokio::test(start_paused = true)]
async fn who_has_no_role_may_ask_for_health_and_nothing_else() {
    let lab = lab().await;
    let side = side(&lab, vec![], Limits::default()).await;
    let (status, _) = refused(side.client.clone().list_nodes(ListNodesRequest::default()).await);
    assert!(status.message().contains("has no role"), "{status}");
    let mut health = HealthClient::new(channel(&side.dir.path().join("s")).await);
    health.check(HealthCheckRequest::default()).await.expect("health is for everybody");
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_in_a_second_are_told_when_to_come_back() {
    let lab = lab().await;
    let limits = Limits { rate: 2, burst: 5, ..Limits::default() };
    let side = side(&lab, vec![mine(Role::Viewer)], limits).await;
    let mut client = side.client.clone();
    for _ in 0..5 {
        client.list_nodes(ListNodesRequest::default()).await.expect("within the burst");
    }
    let refused = client.list_nodes(ListNodesRequest::default()).await.expect_err("beyond it");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::ResourceExhausted, "LIMIT"));
    let details = refused.get_error_details();
    let wait = details.retry_info().and_then(|info| info.retry_delay).expect("when");
    tokio::time::sleep(wait).await;
    client.list_nodes(ListNodesRequest::default()).await.expect("after that time");
    assert_eq!(side.told.reasons(), [("ListNodes".to_owned(), "LIMIT")]);
}

#[tokio::test(start_paused = true)]
async fn pausing_everything_wants_the_role_for_all_nodes_and_setting_a_budget_aside_wants_an_admin() {
    let lab = lab().await;
    let of_n1 = Grant { nodes: only("n1"), ..mine(Role::Operator) };
    let side = side(&lab, vec![of_n1], Limits::default()).await;
    let mut client = side.client.clone();
    let lasts = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let pause =
        |of| PauseRequest { scope: Some(PauseScope { of: Some(of) }), reason: "why".to_owned(), lasts };
    for of in [
        pause_scope::Of::Everything(true),
        pause_scope::Of::Group("rack=r1".to_owned()),
        pause_scope::Of::Node("n2".to_owned()),
    ] {
        let (_, word) = refused(client.pause(pause(of)).await);
        assert_eq!(word, "ROLE_MISSING");
    }
    client.pause(pause(pause_scope::Of::Node("n1".to_owned()))).await.expect("its own node");
    let aside = Some(LimitOverride { reason: "storm".to_owned() });
    let (status, word) =
        refused(client.fence(FenceRequest { override_budget: aside, ..own_fence("n1") }).await);
    let metadata = reason(&status).1;
    assert_eq!((word.as_str(), metadata["role"].as_str()), ("ROLE_MISSING", "admin"));
    assert!(status.message().contains("setting a budget aside on n1 needs admin"), "{status:?}");
    assert_eq!(lab.engine.pauses().len(), 1);
}
