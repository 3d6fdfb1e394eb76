//! What stands beside the service: health, reflection, and who calls over what.

use picket_proto::v1::GetNodeRequest;
use picket_proto::v1::OutcomeKind;
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_server::{Addresses, serve};
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::lab::{Lab, channel, fence_request, lab, named, reason, s};

async fn health(lab: &Lab, service: &str) -> ServingStatus {
    let mut client = HealthClient::new(channel(&lab.socket).await);
    let request = HealthCheckRequest { service: service.to_owned() };
    client.check(request).await.expect("answered").into_inner().status()
}

#[tokio::test(start_paused = true)]
async fn the_service_is_healthy_while_this_gateway_leads() {
    let lab = lab().await;
    tokio::time::sleep(s(1)).await;
    assert_eq!(health(&lab, "").await, ServingStatus::Serving);
    assert_eq!(health(&lab, picket_proto::SERVICE_NAME).await, ServingStatus::Serving);
    let mut client = HealthClient::new(channel(&lab.socket).await);
    let request = HealthCheckRequest { service: picket_proto::SERVICE_NAME.to_owned() };
    let mut watch = client.watch(request).await.expect("let in").into_inner();
    assert_eq!(watch.next().await.expect("a status").expect("no error").status(), ServingStatus::Serving);
    lab.clock.jump_wall(60_000);
    assert_eq!(watch.next().await.expect("a status").expect("no error").status(), ServingStatus::NotServing);
    assert_eq!(health(&lab, "").await, ServingStatus::Serving);
    assert_eq!(watch.next().await.expect("a status").expect("no error").status(), ServingStatus::Serving);
}

#[tokio::test(start_paused = true)]
async fn nodes_are_not_told_while_nobody_leads() {
    let lab = lab().await;
    lab.clock.jump_wall(60_000);
    let leading = || lab.engine.leading().is_ok();
    while leading() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let request = GetNodeRequest { node: named("n1"), fresh: false };
    let refused = lab.client.clone().get_node(request).await.expect_err("nobody leads");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (tonic::Code::Unavailable, "NO_LEADER"));
}

#[tokio::test(start_paused = true)]
async fn reflection_tells_of_the_service() {
    let lab = lab().await;
    let mut client = ServerReflectionClient::new(channel(&lab.socket).await);
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers =
        client.server_reflection_info(tokio_stream::iter([ask])).await.expect("let in").into_inner();
    let answer: ServerReflectionResponse = answers.next().await.expect("an answer").expect("no error");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}")
    };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    assert!(names.contains(&picket_proto::SERVICE_NAME.to_owned()), "{names:?}");
    assert!(names.contains(&"grpc.health.v1.Health".to_owned()), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn over_loopback_tcp_the_address_is_all_that_is_known_of_a_caller() {
    let lab = lab().await;
    let tcp = Some("127.0.0.1:0".parse().expect("an address"));
    let listeners = Addresses { unix: None, tcp }.bind().await.expect("bound");
    let address = listeners.tcp_address().expect("an address");
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(lab.engine.clone(), listeners, stop.clone()));
    let mut client = FencingServiceClient::connect(format!("http://{address}")).await.expect("connected");
    let mut stream = client.fence(fence_request("k")).await.expect("let in").into_inner();
    let mut outcome = None;
    while let Some(answer) = stream.next().await {
        outcome = answer.expect("no error").update.and_then(|update| update.outcome);
    }
    assert_eq!(outcome.expect("an outcome").kind(), OutcomeKind::Fenced);
    let node = picket_core::ids::NodeId::new("n1").expect("a good name");
    let holds = lab.engine.node(&node).expect("known").stored.record.holds.clone();
    assert_eq!(holds["db"].by, "tcp:127.0.0.1");
    stop.cancel();
    serving.await.expect("ended").expect("served");
}
