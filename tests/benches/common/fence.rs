//! A fence, asked for as a caller would.

use picket_proto::v1::{FenceRequest, FenceResponse, FenceUntil, NodeSelector, node_selector};
use picket_tests::Client;
use tonic::Streaming;

use crate::Wrong;

/// Asks for a fence of `node`, until it is confirmed.
pub async fn ask(client: &mut Client, node: String) -> Result<Streaming<FenceResponse>, Wrong> {
    let request = FenceRequest {
        node: Some(NodeSelector { by: Some(node_selector::By::Name(node)) }),
        reason: "a bench".to_owned(),
        until: FenceUntil::Confirmed.into(),
        ..FenceRequest::default()
    };
    Ok(client.fence(request).await?.into_inner())
}
