//! Streams of callers whose roles go by labels, when a reload changes these.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::roles::{Grant, Role, Roles, Scope};
use picket_driver_sim::Fault;
use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::{
    CheckDevicesRequest, GetNodeRequest, ListNodesRequest, NodeSet, WatchNodesRequest, node_set,
};
use picket_server::Limits;
use tokio_stream::StreamExt;
use tonic::Code;

use crate::lab::{Updates, fence_request, lab, named, reason, s};
use crate::roles::{mine, side};

/// A role for the nodes of rack r1.
fn in_rack(role: Role) -> Grant {
    let labels = BTreeMap::from([("rack".to_owned(), "r1".to_owned())]);
    Grant { nodes: Scope { labels, hosts: None }, ..mine(role) }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_node_by_its_name_ends_with_the_label_that_let_it_in() {
    let lab = lab().await;
    // Somebody else fences it by then.
    let roles = || Roles::new(vec![in_rack(Role::Viewer), mine(Role::Admin)]);
    lab.label("rack", "r1", roles()).await;
    let side = side(&lab, vec![in_rack(Role::Viewer)], Limits::default()).await;
    let nodes = Some(NodeSet { of: Some(node_set::Of::Hosts("n1".to_owned())) });
    let request = WatchNodesRequest { nodes, ..Default::default() };
    let mut watch = side.client.clone().watch_nodes(request).await.expect("let in").into_inner();
    let mut next = async || watch.next().await.expect("an event").expect("no error").event.expect("an event");
    assert!(matches!(next().await, Event::Node(node) if node.name == "n1"));
    assert!(matches!(next().await, Event::Synced(_)));
    lab.label("rack", "r2", roles()).await;
    lab.fence("k").await;
    loop {
        match next().await {
            Event::Synced(_) => {}
            Event::Removed(name) => break assert_eq!(name, "n1"),
            Event::Node(node) => panic!("it is told of {} in {:?}", node.name, node.phase()),
        }
    }
    for _ in 0..3 {
        assert!(matches!(next().await, Event::Synced(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn who_follows_a_fence_is_told_no_more_once_the_label_that_let_them_in_is_gone() {
    let lab = lab().await;
    let roles = || Roles::new(vec![in_rack(Role::Controller)]);
    lab.label("rack", "r1", roles()).await;
    let side = side(&lab, vec![in_rack(Role::Controller)], Limits::default()).await;
    // Its off is still to be sent.
    lab.fault("n1-bmc", Fault::Slow(Duration::from_millis(1_500)));
    let mut request = fence_request("k");
    request.holder.clear();
    let stream = side.client.clone().fence(request).await.expect("let in").into_inner();
    let mut stream = Updates::of(stream, |answer| answer.update);
    stream.update().await;
    lab.label("rack", "r2", roles()).await;
    let ended = loop {
        match stream.next().await.expect("an end") {
            Ok(update) => assert_eq!(update.outcome, None, "{update:?}"),
            Err(status) => break status,
        }
    };
    assert_eq!((ended.code(), reason(&ended).0.as_str()), (Code::PermissionDenied, "ROLE_MISSING"));
    // Nobody who asked for it may have it any more, and nothing was sent for it (S14).
    tokio::time::timeout(s(600), lab.reach("normal")).await.expect("it ends");
}

/// Its device takes its time, and a label changes meanwhile.
#[tokio::test(start_paused = true)]
async fn a_check_asks_and_tells_by_the_labels_of_the_moment() {
    for keeps in [true, false] {
        let lab = lab().await;
        let roles = || Roles::new(vec![in_rack(Role::Operator)]);
        lab.label("rack", "r1", roles()).await;
        let side = side(&lab, vec![in_rack(Role::Operator)], Limits::default()).await;
        lab.fault("n1-bmc", Fault::Slow(Duration::from_millis(1_500)));
        let nodes = Some(NodeSet { of: Some(node_set::Of::Hosts("n1".to_owned())) });
        let request = CheckDevicesRequest { nodes, ..Default::default() };
        let mut told = side.client.clone().check_devices(request).await.expect("let in").into_inner();
        tokio::time::sleep(s(1)).await;
        lab.label("rack", if keeps { "r1" } else { "r2" }, roles()).await;
        let first = told.next().await.expect("an answer");
        if keeps {
            assert_eq!(first.expect("told").node, "n1");
        } else {
            let ended = first.expect_err("it is another rack's by now");
            assert_eq!((ended.code(), reason(&ended).0.as_str()), (Code::PermissionDenied, "ROLE_MISSING"));
        }
    }
}

/// Its device takes its time for whoever wants to know more than is known, and a label changes meanwhile.
#[tokio::test(start_paused = true)]
async fn what_a_device_said_is_told_by_the_labels_of_the_moment() {
    for keeps in [true, false] {
        let lab = lab().await;
        let roles = || Roles::new(vec![in_rack(Role::Operator)]);
        lab.label("rack", "r1", roles()).await;
        let side = side(&lab, vec![in_rack(Role::Operator)], Limits::default()).await;
        lab.fault("n1-bmc", Fault::Slow(Duration::from_millis(1_500)));
        let (mut one, mut all) = (side.client.clone(), side.client.clone());
        let one = tokio::spawn(async move {
            let request = GetNodeRequest { node: named("n1"), fresh: true };
            one.get_node(request).await.map(|told| told.into_inner().node.expect("a node").name)
        });
        let all = tokio::spawn(async move {
            let told = all.list_nodes(ListNodesRequest { fresh: true, ..Default::default() }).await;
            told.map(|told| told.into_inner().nodes.into_iter().map(|node| node.name).collect::<String>())
        });
        tokio::time::sleep(s(1)).await;
        lab.label("rack", if keeps { "r1" } else { "r2" }, roles()).await;
        assert!(!one.is_finished(), "its device is waited for");
        let told = one.await.expect("answered");
        if keeps {
            assert_eq!(told.expect("its rack's"), "n1");
        } else {
            let refused = told.expect_err("it is another rack's by now");
            assert_eq!(reason(&refused).0, "ROLE_MISSING");
        }
        let told = all.await.expect("answered").expect("whatever is left to tell");
        assert_eq!(told, if keeps { "n1" } else { "" });
    }
}
