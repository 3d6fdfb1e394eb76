//! The Node of Kubernetes that a caller names beside the node: whether it is that node's (K1).

use picket_core::cluster_node::Belongs;
use picket_core::ids::NodeId;
use picket_proto::v1::ErrorReason;

use super::FencingHandlers;
use crate::admission::AuthenticatedCaller;
use crate::convert::request::fence::FenceParameters;
use crate::errors::{self, Verb};
use crate::fault::Fault;
use crate::select::NodeTarget;

impl FencingHandlers {
    /// Refuses a fence of a node that is not the Node that the caller names. What a Node says of its machine a kubelet may write: where the node was
    /// found by that, somebody who knows the Node otherwise has to say that it is this one's. Stores nothing.
    pub(crate) async fn is_meant(
        &self,
        caller: &AuthenticatedCaller,
        node: &NodeId,
        asked: &FenceParameters,
    ) -> Result<(), Fault> {
        let Some(wanted) = &asked.kubernetes_node else { return Ok(()) };
        // A follower's word sends nobody to the leader.
        self.leads()?;
        let said = self.engine.has(node, wanted).await;
        let said = said.map_err(|error| errors::engine(error, Verb::Fence, node, &self.engine))?;
        let is_named = matches!(asked.node, NodeTarget::Name(_));
        let refused = match_of(&said, is_named).map_err(|(reason, why)| {
            let name = &wanted.name;
            let message = format!(
                "Node {name} is asked for, and {node} is not known to be it: {why}; nothing new was begun"
            );
            let fault = Fault::new(reason, message.clone()).with("node", node.as_str()).with("wanted", name);
            match reason {
                ErrorReason::KubernetesAway => fault.retry_after(errors::KUBERNETES),
                _ => fault.precondition("KUBERNETES_NODE", node.as_str(), &message),
            }
        });
        self.heard(caller, "fence", refused)
    }
}

/// Whether what sources say lets a fence begin. `is_named`: the node was found by its name, which is no word of a kubelet's.
fn match_of(said: &[(String, Belongs)], is_named: bool) -> Result<(), (ErrorReason, String)> {
    let no = said.iter().find_map(|(source, said)| match said {
        Belongs::No(why) => Some(format!("{source}: {why}")),
        Belongs::Yes | Belongs::Untold(_) => None,
    });
    if let Some(why) = no {
        return Err((ErrorReason::KubernetesNodeMismatch, why));
    }
    if is_named || said.iter().any(|(_, said)| *said == Belongs::Yes) {
        return Ok(());
    }
    let untold = said.iter().find_map(|(source, said)| match said {
        Belongs::Untold(why) => Some(format!("{source}: {why}")),
        Belongs::Yes | Belongs::No(_) => None,
    });
    match untold {
        Some(why) => Err((ErrorReason::KubernetesAway, why)),
        None => {
            let why = "it was found by what a kubelet may write, and neither a release nor a liveness source of the kind kubernetes says \
                       whose Node it is: select it by its name, or give it one";
            Err((ErrorReason::KubernetesNodeMismatch, why.to_owned()))
        }
    }
}
