//! Bad input.

use picket_proto::v1::{
    FenceRequest, GetNodeRequest, ListNodesRequest, NodeSelector, NodeSet, Phase, node_selector, node_set,
};
use tonic::Code;
use tonic_types::StatusExt;

use crate::lab::{fence_request, lab, lab_within, named, reason, s, wrong_fields};

#[tokio::test(start_paused = true)]
async fn an_unknown_node_is_told_with_names_like_it() {
    let lab = lab().await;
    let request = FenceRequest { node: named("n11"), ..fence_request("k") };
    let refused = lab.open(request).await.err().expect("refused");
    let (word, metadata) = reason(&refused);
    assert_eq!((refused.code(), word.as_str()), (Code::NotFound, "NODE_NOT_FOUND"));
    assert_eq!(metadata["near"], "n1,n10");
    let details = refused.get_error_details();
    let resource = details.resource_info().expect("a resource");
    assert_eq!((resource.resource_type.as_str(), resource.resource_name.as_str()), ("node", "n11"));
}

#[tokio::test(start_paused = true)]
async fn all_that_is_wrong_is_told_at_once_and_nothing_is_begun() {
    let lab = lab().await;
    let request = FenceRequest {
        node: None,
        reason: String::new(),
        minimum_grade: 4711,
        deadline: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        idempotency_key: "k".repeat(200),
        ..Default::default()
    };
    let refused = lab.open(request).await.err().expect("refused");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::InvalidArgument, "BAD_REQUEST"));
    assert_eq!(wrong_fields(&refused), ["node", "reason", "minimum_grade", "deadline", "idempotency_key"]);
    assert!(refused.message().contains("10 s to 24 h"), "{}", refused.message());
    let node = picket_core::ids::NodeId::new("n1").expect("a good name");
    assert_eq!(lab.engine.node(&node).expect("known").stored.version.0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_request_and_one_for_another_generation_change_nothing() {
    let lab = lab().await;
    let late = FenceRequest {
        not_after: Some(prost_types::Timestamp { seconds: 1_000, nanos: 0 }),
        ..fence_request("k1")
    };
    let refused = lab.open(late).await.err().expect("refused");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::FailedPrecondition, "NOT_AFTER_PASSED"));
    let stale = FenceRequest { expected_generation: Some(3), ..fence_request("k2") };
    let refused = lab.open(stale).await.err().expect("refused");
    assert_eq!(
        (refused.code(), reason(&refused).0.as_str()),
        (Code::FailedPrecondition, "GENERATION_MISMATCH")
    );
    assert!(lab.is_on("n1"));
    let right = FenceRequest { expected_generation: Some(0), ..fence_request("k3") };
    lab.open(right.clone()).await.expect("let in").update().await;
    // A repetition is let through, although the generation has moved on by its own doing.
    lab.open(right).await.expect("let in").update().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_large_is_refused_in_our_words() {
    let lab = lab().await;
    let hosts = (0..40_000).map(|n| format!("n{n}")).collect::<Vec<_>>().join(",");
    let nodes = Some(NodeSet { of: Some(node_set::Of::Hosts(hosts)) });
    let request = ListNodesRequest { nodes, ..Default::default() };
    let refused = lab.client.clone().list_nodes(request).await.expect_err("too large");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::InvalidArgument, "BAD_REQUEST"));
    assert!(refused.message().contains("65536 bytes"), "{}", refused.message());
    let request = FenceRequest { reason: "x".repeat(100_000), ..fence_request("k") };
    let refused = lab.open(request).await.err().expect("too large");
    assert_eq!(reason(&refused).0, "BAD_REQUEST");
    assert!(refused.message().contains("65536 bytes"), "{}", refused.message());
}

#[tokio::test(start_paused = true)]
async fn a_selector_finds_by_identity_and_says_when_it_finds_none() {
    let lab = lab().await;
    let get = |by: node_selector::By| {
        let mut client = lab.client.clone();
        async move {
            let request = GetNodeRequest { node: Some(NodeSelector { by: Some(by) }), fresh: false };
            client.get_node(request).await.map(|answer| answer.into_inner().node.expect("a node").name)
        }
    };
    let identity = lab.world.lock().identity("n2").clone();
    let uuid = identity.uuid.expect("a machine has a UUID");
    assert_eq!(get(node_selector::By::SystemUuid(uuid.to_uppercase())).await.expect("found"), "n2");
    if let Some(serial) = identity.serial {
        assert_eq!(get(node_selector::By::Identity(serial)).await.expect("found"), "n2");
    }
    let provided = node_selector::By::ProviderId("aws:///eu-central-1a/i-1".to_owned());
    assert_eq!(get(provided).await.expect("found"), "n1");
    for by in [
        node_selector::By::ProviderId("aws:///eu-1a/i-7".to_owned()),
        node_selector::By::Identity("nobody's".to_owned()),
        node_selector::By::SystemUuid("00112233445566778899aabbccddeeff".to_owned()),
    ] {
        assert_eq!(reason(&get(by).await.expect_err("none")).0, "NODE_NOT_FOUND");
    }
}

#[tokio::test(start_paused = true)]
async fn beyond_the_limit_streams_are_refused_and_told_when_to_ask_again() {
    let lab = lab_within(picket_server::Limits { streams: 1, ..Default::default() }).await;
    lab.fault("n1-bmc", picket_driver_sim::Fault::OffTakes { least: s(30), most: s(30) });
    let first = lab.open(fence_request("k1")).await.expect("let in");
    let refused = lab.open(fence_request("k2")).await.err().expect("refused");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::ResourceExhausted, "LIMIT"));
    assert!(refused.get_error_details().retry_info().is_some());
    drop(first);
    tokio::time::sleep(s(1)).await;
    lab.open(fence_request("k2")).await.expect("a place is free");
    let phases = vec![i32::from(Phase::Normal)];
    lab.client
        .clone()
        .list_nodes(ListNodesRequest { phases, ..Default::default() })
        .await
        .expect("calls are apart");
}
