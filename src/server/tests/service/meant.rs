//! The Node of Kubernetes that a caller names beside the node (K1).

use picket_core::cluster_node::Belongs;
use picket_proto::v1::{
    FenceRequest, KubernetesNode, ListFencesRequest, NodeSelector, OutcomeKind, PlanFenceRequest,
    node_selector,
};

use crate::lab::{Lab, fence_request, kind, lab, reason, wrong_fields};

/// A fence of the node that is found so, for Node `w1`.
fn request(by: node_selector::By) -> FenceRequest {
    FenceRequest {
        node: Some(NodeSelector { by: Some(by) }),
        kubernetes_node: Some(KubernetesNode { name: "w1".to_owned(), uid: "u-w1".to_owned() }),
        ..fence_request("k")
    }
}

fn name() -> node_selector::By {
    node_selector::By::Name("n1".to_owned())
}

fn provider_id() -> node_selector::By {
    node_selector::By::ProviderId("aws:///eu-central-1a/i-1".to_owned())
}

fn system_uuid(lab: &Lab) -> node_selector::By {
    let uuid = lab.world.lock().identity("n1").uuid.clone();
    node_selector::By::SystemUuid(uuid.expect("it has one"))
}

/// Refused, and nothing was begun or stored; the reason.
async fn refused(lab: &Lab, by: node_selector::By) -> String {
    let plan = PlanFenceRequest { fence: Some(request(by.clone())) };
    let planned = lab.client.clone().plan_fence(plan).await.expect_err("no plan either");
    let status = lab.open(request(by)).await.err().expect("refused");
    let (word, metadata) = reason(&status);
    assert_eq!(reason(&planned).0, word);
    assert_eq!((metadata["node"].as_str(), metadata["wanted"].as_str()), ("n1", "w1"));
    assert!(status.message().contains("nothing new was begun"), "{}", status.message());
    let fences = lab.client.clone().list_fences(ListFencesRequest::default()).await.expect("told");
    assert!(fences.into_inner().fences.is_empty());
    assert!(lab.is_on("n1"));
    word
}

fn says(lab: &Lab, belongs: Option<Belongs>) {
    *lab.volumes.belongs.lock() = belongs;
}

/// A kubelet wrote another machine's identity into its own Node.
#[tokio::test(start_paused = true)]
async fn a_node_that_another_node_is_known_to_be_is_not_fenced_by_whatever_it_was_found() {
    let lab = lab().await;
    says(&lab, Some(Belongs::No("its Node is m1".to_owned())));
    for by in [name(), provider_id(), system_uuid(&lab)] {
        assert_eq!(refused(&lab, by.clone()).await, "KUBERNETES_NODE_MISMATCH", "{by:?}");
    }
}

/// It was found by a word of a kubelet's, and nobody else knows whose machine it is.
#[tokio::test(start_paused = true)]
async fn a_node_of_which_nobody_knows_whose_it_is_is_fenced_by_its_name_alone() {
    let lab = lab().await;
    for by in [provider_id(), system_uuid(&lab)] {
        says(&lab, None);
        assert_eq!(refused(&lab, by.clone()).await, "KUBERNETES_NODE_MISMATCH", "{by:?}");
        // It may be told soon.
        says(&lab, Some(Belongs::Untold("no answer".to_owned())));
        assert_eq!(refused(&lab, by).await, "KUBERNETES_AWAY");
    }
    let outcome = lab.open(request(name())).await.expect("let in").outcome().await;
    assert_eq!(kind(&outcome), OutcomeKind::Fenced);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_known_to_be_that_node_is_fenced() {
    let lab = lab().await;
    says(&lab, Some(Belongs::Yes));
    let outcome = lab.open(request(system_uuid(&lab))).await.expect("let in").outcome().await;
    assert_eq!(kind(&outcome), OutcomeKind::Fenced);
}

/// Who names no Node goes by what he knows himself.
#[tokio::test(start_paused = true)]
async fn who_names_no_node_is_asked_for_none() {
    let lab = lab().await;
    let request = FenceRequest { kubernetes_node: None, ..request(system_uuid(&lab)) };
    let outcome = lab.open(request).await.expect("let in").outcome().await;
    assert_eq!(kind(&outcome), OutcomeKind::Fenced);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_named_by_its_name_and_its_uid() {
    let lab = lab().await;
    let request = FenceRequest { kubernetes_node: Some(KubernetesNode::default()), ..fence_request("k") };
    let status = lab.open(request).await.err().expect("refused");
    assert_eq!(wrong_fields(&status), ["kubernetes_node.name", "kubernetes_node.uid"]);
}
