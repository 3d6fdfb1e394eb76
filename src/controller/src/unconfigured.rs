//! Nodes that a policy would have fenced, and that no gateway knows: found before they fail.

use futures::StreamExt;
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{GetNodeRequest, NodeSelector};
use serde::Deserialize;
use tonic::Code;

use crate::api::Api;
use crate::fault::Fault;
use crate::mind::{self, Node};
use crate::object::{self, SeenNode, SeenPolicy};
use crate::settings::Settings;
use crate::{ask, crd, gateway, spec};

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
        let by = ask::selected(&node, settings.select)?;
        let node_selector = Some(NodeSelector { by: Some(by) });
        let mut client = FencingServiceClient::new(gateways.clone());
        let answer =
            client.get_node(GetNodeRequest { node: node_selector, ..GetNodeRequest::default() }).await;
        match answer {
            Err(status)
                if matches!(
                    status.code(),
                    Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition
                ) =>
            {
                Err(format!("no node of the gateway is Node {}: {}", node.name, status.message()))
            }
            // Who does not answer, or refuses, is told as a gateway.
            Ok(_) | Err(_) => Ok(()),
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
    let names = mind::spoken_for(&policies, &nodes);
    Ok(nodes.into_iter().filter(|node| names.contains(&node.name)).collect())
}
