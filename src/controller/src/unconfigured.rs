//! Nodes that a policy would have fenced, and that no gateway knows, or takes for another machine: found before they fail.

use futures::StreamExt;
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{
    ErrorReason, FenceRequest, GetNodeRequest, KubernetesNode, NodeSelector, PlanFenceRequest,
};
use serde::Deserialize;
use tonic::{Code, Status};

use crate::api::Api;
use crate::decider::{self, Node};
use crate::fault::Fault;
use crate::object::{self, SeenNode, SeenPolicy};
use crate::outcome::reason;
use crate::settings::Settings;
use crate::{crd, gateway, request, spec};

/// So many are asked for side by side.
const AT_ONCE: usize = 16;
/// So many are told one by one; the rest is counted.
const TOLD: usize = 20;

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

/// What a gateway does not know of the Nodes for which policies speak, a line each; where there is no policy, of all Nodes.
pub async fn nodes(settings: &Settings, api: &Api) -> Vec<String> {
    let nodes = match spoken_for(api).await {
        Ok(nodes) => nodes,
        Err(fault) => return vec![format!("nodes: {fault}")],
    };
    let gateways = gateway::gateways(settings);
    let asked = nodes.into_iter().map(async |node| {
        let by = request::selected(&node, settings.select)?;
        let node_selector = Some(NodeSelector { by: Some(by) });
        let mut client = FencingServiceClient::new(gateways.clone());
        let known = GetNodeRequest { node: node_selector.clone(), ..GetNodeRequest::default() };
        match client.get_node(known).await {
            Err(status)
                if matches!(
                    status.code(),
                    Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition
                ) =>
            {
                Err(format!("no node of the gateway is Node {}: {}", node.name, status.message()))
            }
            // A gateway that does not answer, or refuses, is told as a gateway.
            Err(_) => Ok(()),
            // The plan goes as far as the fence would, and compares the Node in the same way.
            Ok(_) => match client.plan_fence(plan(&node, node_selector, &settings.holder)).await {
                Err(status) => mismatch(&node, &status),
                Ok(_) => Ok(()),
            },
        }
    });
    let answers: Vec<Result<(), String>> = futures::stream::iter(asked).buffered(AT_ONCE).collect().await;
    let mut told: Vec<String> =
        answers.into_iter().filter_map(Result::err).map(|why| format!("node: {why}")).collect();
    if let Some(more @ 1..) = told.len().checked_sub(TOLD) {
        told.truncate(TOLD);
        told.push(format!("node: and {more} more"));
    }
    told
}

/// Asks what a fence of that Node would do; nothing is stored or sent by it.
fn plan(node: &Node, selector: Option<NodeSelector>, holder: &str) -> PlanFenceRequest {
    let fence = FenceRequest {
        node: selector,
        reason: "picket-controller check".to_owned(),
        holder: holder.to_owned(),
        kubernetes_node: Some(KubernetesNode { name: node.name.clone(), uid: node.uid.clone() }),
        ..FenceRequest::default()
    };
    PlanFenceRequest { fence: Some(fence) }
}

/// What a plan says of the Node that is none of the gateway's node. What else it may say hangs on the moment.
fn mismatch(node: &Node, status: &Status) -> Result<(), String> {
    match reason(status) {
        Some(ErrorReason::KubernetesNodeMismatch) => {
            Err(format!("no fence of Node {} would begin: {}", node.name, status.message()))
        }
        _ => Ok(()),
    }
}

async fn spoken_for(api: &Api) -> Result<Vec<Node>, Fault> {
    let found: List<SeenNode> = api.get("/api/v1/nodes").await?;
    let nodes: Vec<Node> = found.items.into_iter().map(object::node).collect();
    let path = format!("/apis/{}/{}/{}", crd::GROUP, crd::VERSION, crd::PLURAL);
    // Where the definition is missing that is told.
    let policies: Option<List<SeenPolicy>> = api.find(&path).await?;
    let policies = policies.into_iter().flat_map(|list| list.items);
    let policies: Vec<_> = policies.filter_map(|policy| spec::of(&policy).ok()).collect();
    if policies.is_empty() {
        return Ok(nodes);
    }
    let names = decider::spoken_for(&policies, &nodes);
    Ok(nodes.into_iter().filter(|node| names.contains(&node.name)).collect())
}

#[cfg(test)]
mod tests {
    use picket_proto::DOMAIN;
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;

    /// K1: what a fence would be refused for at the first failure is told before.
    #[test]
    fn a_node_that_the_gateway_takes_for_another_machine_is_told() {
        let node = Node { name: "n1".to_owned(), uid: "u-1".to_owned(), ..Node::default() };
        let asked = plan(&node, None, "me").fence.and_then(|fence| fence.kubernetes_node);
        assert_eq!(asked.map(|one| (one.name, one.uid)), Some(("n1".to_owned(), "u-1".to_owned())));
        let refused = |why: ErrorReason| {
            let details = ErrorDetails::with_error_info(why.word(), DOMAIN, [] as [(String, String); 0]);
            Status::with_error_details(Code::FailedPrecondition, "r1 is another machine", details)
        };
        let told = mismatch(&node, &refused(ErrorReason::KubernetesNodeMismatch)).expect_err("it is told");
        assert!(told.contains("Node n1") && told.contains("another machine"), "{told}");
        for other in [refused(ErrorReason::KubernetesAway), Status::unimplemented("an older gateway")] {
            assert_eq!(mismatch(&node, &other), Ok(()), "{other:?}");
        }
    }
}
