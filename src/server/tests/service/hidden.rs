//! What a caller with a role for some nodes is told of the others.

use std::collections::BTreeSet;

use picket_core::ids::NodeId;
use picket_core::roles::{Grant, Role, Scope};
use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::{
    DropHoldRequest, FenceRequest, FenceView, GetFenceRequest, GetNodeRequest, ListFencesRequest,
    ListNodesRequest, NodeSet, PauseRequest, PauseScope, PlanFenceRequest, ResumeRequest, WatchNodesRequest,
    node_set, pause_scope,
};
use picket_server::Limits;
use tokio_stream::StreamExt;
use tonic::Code;

use crate::lab::{Lab, fence_request, lab, named, reason};
use crate::roles::{Side, mine, side};

fn for_n1(role: Role) -> Grant {
    let id = NodeId::new("n1").expect("a good name");
    let hosts = Some(("n1".to_owned(), BTreeSet::from([id])));
    Grant { nodes: Scope { hosts, ..Scope::default() }, ..mine(role) }
}

async fn limited(lab: &Lab, role: Role) -> Side {
    side(lab, vec![for_n1(role)], Limits::default()).await
}

/// Texts for people name other nodes: twins, parents, orphans, whoever shares a unit; here it is a person who does.
#[tokio::test(start_paused = true)]
async fn a_text_names_no_node_that_the_caller_may_not_look_at() {
    let lab = lab().await;
    let mut request = fence_request("k");
    request.reason = "n2 says so, and n1 is silent".to_owned();
    let mut stream = lab.open(request).await.expect("let in");
    let opened = stream.update().await;
    assert!(opened.text.contains("n2 says so"), "an admin may know: {opened:?}");
    stream.outcome().await;
    let side = limited(&lab, Role::Controller).await;
    let mut client = side.client.clone();
    let all = ListFencesRequest { view: FenceView::Full.into(), ..Default::default() };
    let id = GetFenceRequest { fence_id: opened.fence_id, ..Default::default() };
    let plan = FenceRequest { holder: String::new(), reason: "n2".to_owned(), ..fence_request("p") };
    let join = FenceRequest { holder: String::new(), ..fence_request("j") };
    let told = [
        format!("{:?}", client.get_node(GetNodeRequest { node: named("n1"), fresh: false }).await),
        format!("{:?}", client.list_nodes(ListNodesRequest::default()).await),
        format!("{:?}", client.list_fences(all).await),
        format!("{:?}", client.get_fence(id).await),
        format!("{:?}", client.plan_fence(PlanFenceRequest { fence: Some(plan) }).await),
        format!("{:?}", client.fence(join).await.expect("let in").into_inner().message().await),
    ];
    for text in &told {
        assert!(text.contains("n1") && !text.contains("n2"), "{text}");
    }
    assert!(told[0].contains("another node says so, and n1 is silent"), "{}", told[0]);
    let mut watch = client.watch_nodes(WatchNodesRequest::default()).await.expect("let in").into_inner();
    let first = watch.next().await.expect("an event").expect("no error").event;
    assert!(matches!(&first, Some(Event::Node(node)) if node.name == "n1"), "{first:?}");
    assert!(!format!("{first:?}").contains("n2"), "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn pauses_of_other_nodes_are_told_to_those_alone_who_may_know_of_them() {
    let lab = lab().await;
    let lasts = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let scope = |of| Some(PauseScope { of: Some(of) });
    let node = |name: &str| scope(pause_scope::Of::Node(name.to_owned()));
    let mut admin = lab.client.clone();
    for name in ["n1", "n2"] {
        let request = PauseRequest { scope: node(name), reason: format!("{name} and n10"), lasts };
        admin.pause(request).await.expect("paused");
    }
    let side = limited(&lab, Role::Operator).await;
    let mut client = side.client.clone();
    let resume = |name: &str| ResumeRequest { scope: node(name), reason: "why".to_owned() };
    let left = client.resume(resume("n1")).await.expect("its own").into_inner();
    assert_eq!(left.pauses, []);
    let refused = client.resume(resume("n1")).await.expect_err("it is not paused any more");
    assert_eq!(reason(&refused).0, "PAUSE_NOT_FOUND");
    assert!(refused.message().ends_with("nothing is paused"), "{refused}");
    let refused = admin.resume(resume("n1")).await.expect_err("it is not paused any more");
    assert!(refused.message().contains("n2"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_host_list_does_not_tell_how_many_nodes_there_are() {
    let lab = lab().await;
    let side = limited(&lab, Role::Viewer).await;
    let list = |hosts: &str| ListNodesRequest {
        nodes: Some(NodeSet { of: Some(node_set::Of::Hosts(hosts.to_owned())) }),
        ..Default::default()
    };
    let mut client = side.client.clone();
    // Of these n1, n2 and n10 are nodes.
    let refused = client.list_nodes(list("n[1-40]")).await.expect_err("some are not there");
    assert_eq!(reason(&refused).0, "NODE_NOT_FOUND");
    assert!(refused.message().ends_with("and 31 more"), "{refused}");
    let refused = lab.client.clone().list_nodes(list("n[1-40]")).await.expect_err("some are not there");
    assert!(refused.message().ends_with("and 29 more"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_no_node_that_the_caller_may_not_look_at() {
    let lab = lab().await;
    lab.open(FenceRequest { holder: "n2".to_owned(), ..fence_request("k") })
        .await
        .expect("let in")
        .outcome()
        .await;
    let side = limited(&lab, Role::Operator).await;
    let drop_own =
        || DropHoldRequest { node: named("n1"), reason: "why".to_owned(), ..DropHoldRequest::default() };
    let refused = side.client.clone().drop_hold(drop_own()).await.expect_err("it holds nothing");
    let (word, metadata) = reason(&refused);
    assert_eq!((refused.code(), word.as_str()), (Code::NotFound, "HOLD_NOT_FOUND"));
    assert!(refused.message().ends_with("holds: another node"), "{refused}");
    assert_eq!(metadata["holders"], "n2", "by that name it is dropped");
    let refused = lab.client.clone().drop_hold(drop_own()).await.expect_err("it holds nothing");
    assert!(refused.message().ends_with("holds: n2"), "{refused}");
}

/// Whoever names a group does not name its nodes.
#[tokio::test(start_paused = true)]
async fn a_pause_of_a_group_names_no_node_of_it_that_the_caller_may_not_look_at() {
    let lab = lab().await;
    let side = limited(&lab, Role::Operator).await;
    let scope = || Some(PauseScope { of: Some(pause_scope::Of::Group("rack=r1".to_owned())) });
    let lasts = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let pause = PauseRequest { scope: scope(), reason: "why".to_owned(), lasts };
    let paused = side.client.clone().pause(pause).await.expect_err("n2 and n10 are in it");
    let resume = ResumeRequest { scope: scope(), reason: "why".to_owned() };
    let resumed = side.client.clone().resume(resume).await.expect_err("n2 and n10 are in it");
    for refused in [paused, resumed] {
        let (word, metadata) = reason(&refused);
        assert_eq!((refused.code(), word.as_str()), (Code::PermissionDenied, "ROLE_MISSING"));
        assert!(refused.message().contains("some node of group rack=r1 wants it"), "{refused}");
        let told = format!("{} {metadata:?}", refused.message());
        assert!(!told.contains("n2") && !told.contains("n10"), "{told}");
    }
    let told: Vec<_> = side.told().iter().map(|denial| denial.detail.clone()).collect();
    assert!(told[0].contains("n10 wants it"), "the audit names it: {told:?}");
}
