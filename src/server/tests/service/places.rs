//! How much is taken in: what one kind of request takes is not missing to another.

use std::sync::Arc;

use picket_core::roles::Roles;
use picket_proto::v1::{AbandonReleaseRequest, GetNodeRequest, ListNodesRequest, WatchNodesRequest};
use picket_server::{AccessRules, Addresses, DiscardDenials, Limits, SocketFile, serve_by};
use tokio_stream::StreamExt;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::half::half;
use crate::lab::{Client, channel, connect, fence_request, lab, lab_within, named, reason, s};

fn is_limit(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted && reason(status).0 == "LIMIT"
}

#[tokio::test(start_paused = true)]
async fn who_looks_takes_no_place_of_who_fences() {
    let limits = Limits { streams: 3, streams_each: 2, calls: 1, calls_each: 1, ..Limits::default() };
    let lab = lab_within(limits).await;
    let mut client = lab.client.clone();
    let mut watches = Vec::new();
    for _ in 0..2 {
        let mut watch = client.watch_nodes(WatchNodesRequest::default()).await.expect("let in").into_inner();
        watch.next().await.expect("an event").expect("no error");
        watches.push(watch);
    }
    let refused = client.watch_nodes(WatchNodesRequest::default()).await.expect_err("all are taken");
    assert!(is_limit(&refused), "{refused}");
    lab.open(fence_request("k")).await.expect("a fence has places of its own").outcome().await;

    let waiting = half(channel(&lab.socket).await, "/picket.v1.FencingService/GetNode");
    let refused = loop {
        let asked = client.get_node(GetNodeRequest { node: named("n1"), fresh: false }).await;
        match asked {
            Ok(_) => tokio::task::yield_now().await,
            Err(status) => break status,
        }
    };
    assert!(is_limit(&refused), "{refused}");
    let acted = client.abandon_release(AbandonReleaseRequest::default()).await.expect_err("empty");
    assert_eq!(reason(&acted).0, "BAD_REQUEST", "it was let in");
    assert_eq!(reason(&waiting.await.expect("ended")).0, "TOO_SLOW");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_send_the_whole_request_is_waited_for_ten_seconds() {
    let lab = lab_within(Limits { asides: 3, asides_each: 2, ..Limits::default() }).await;
    for path in [
        "/picket.v1.FencingService/Fence",
        "/picket.v1.FencingService/ListNodes",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
    ] {
        let began = tokio::time::Instant::now();
        let status = half(channel(&lab.socket).await, path).await.expect("ended");
        assert_eq!(
            (status.code(), reason(&status).0.as_str()),
            (Code::DeadlineExceeded, "TOO_SLOW"),
            "{path}"
        );
        assert_eq!(began.elapsed().as_secs(), 10, "{path}");
    }
    let begun = [(); 2].map(|()| HealthCheckRequest::default());
    let mut health = HealthClient::new(channel(&lab.socket).await);
    for request in begun {
        health.check(request).await.expect("their places are free again");
    }
}

#[tokio::test(start_paused = true)]
async fn health_and_reflection_have_limits_too() {
    let lab = lab_within(Limits { asides: 3, asides_each: 2, ..Limits::default() }).await;
    let mut health = HealthClient::new(channel(&lab.socket).await);
    let mut watches = Vec::new();
    for _ in 0..2 {
        let mut watch = health.watch(HealthCheckRequest::default()).await.expect("let in").into_inner();
        watch.next().await.expect("a status").expect("no error");
        watches.push(watch);
    }
    let refused = health.check(HealthCheckRequest::default()).await.expect_err("all are taken");
    assert!(is_limit(&refused), "{refused}");
    lab.client.clone().list_nodes(ListNodesRequest::default()).await.expect("another kind");
    watches.pop();
    while let Err(refused) = health.check(HealthCheckRequest::default()).await {
        assert!(is_limit(&refused), "{refused}");
    }

    let large = HealthCheckRequest { service: "x".repeat(Limits::default().message) };
    let refused = health.check(large).await.expect_err("too large");
    assert_eq!(reason(&refused).0, "BAD_REQUEST", "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_crowd_on_the_loopback_leaves_places_for_the_socket() {
    let lab = lab().await;
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let unix = Some(SocketFile { path: socket.clone(), mode: SocketFile::MODE });
    let tcp = Some("127.0.0.1:0".parse().expect("an address"));
    let listeners = Addresses { unix, tcp }.bind().await.expect("bound");
    let address = listeners.tcp_address().expect("an address");
    let limits = Limits { connections: 8, connections_each: 8, rate: 1, burst: 20, ..Limits::default() };
    let rules = AccessRules {
        limits,
        roles: Roles::of_this_machine(),
        denials: Arc::new(DiscardDenials),
        metrics: Default::default(),
    };
    let serving = serve_by(rules, lab.engine.clone(), listeners, lab.stop.clone());
    tokio::spawn(async move { serving.await.expect("served") });

    let mut crowd = Vec::new();
    for last in 1..=20 {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 7, last], 0).into()).expect("an address of ours");
        crowd.push(socket.connect(address).await.expect("connected"));
    }
    tokio::time::sleep(s(1)).await;
    let mut admin = connect(&socket).await;
    admin
        .list_nodes(ListNodesRequest::default())
        .await
        .expect("there is a place for who comes by the socket");
    drop(crowd);
    tokio::time::sleep(s(1)).await;

    let mut others = Vec::new();
    for last in 1..=4 {
        others.push(from([127, 0, 8, last], address).await);
    }
    let mut answered = 0;
    for number in 0..80 {
        answered += u32::from(others[number % 4].list_nodes(ListNodesRequest::default()).await.is_ok());
    }
    assert!((1..=30).contains(&answered), "one bucket for all of the loopback: {answered}");
    admin.list_nodes(ListNodesRequest::default()).await.expect("and none of the socket's");
}

async fn from(own: [u8; 4], gateway: std::net::SocketAddr) -> Client {
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{gateway}")).expect("an address");
    let channel = endpoint.local_address(Some(own.into())).connect().await;
    Client::new(channel.expect("connected"))
}
