//! Many at once: ten thousand requests of one caller, and connections that come to nothing.

use std::net::SocketAddr;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use picket_proto::v1::{GetNodeRequest, ListNodesRequest, NodeSelector, node_selector};
use picket_tests::Result;
use picket_tests::peers::HANGS;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;
use tonic::Code;

use crate::doors::scene::Scene;

/// Less than the gateway waits for a handshake: by then no room is free that nobody was turned out of.
const GIVEN_UP: Duration = Duration::from_secs(3);

/// Connections of that address that say nothing.
async fn silent(gateway: SocketAddr, last: u8, count: usize) -> Vec<TcpStream> {
    let mut silent = Vec::new();
    for _ in 0..count {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).expect("an address of ours");
        silent.push(socket.connect(gateway).await.expect("connected"));
    }
    silent
}

#[tokio::test]
async fn who_never_finishes_a_handshake_keeps_nobody_out() -> Result<()> {
    let scene = Scene::open().await?;
    let alice = scene.caller("alice@example.org");
    let gateway = scene.endpoint.trim_start_matches("https://").parse().expect("an address");
    // Many addresses fill the whole room, and hinder a newcomer no more than one does.
    for (addresses, each) in [(9..10, 400), (10..26, 32)] {
        // A busy machine is slow to everybody: the best of some counts.
        let mut took = Vec::new();
        while took.len() < 5 && took.last().is_none_or(|took| *took >= GIVEN_UP) {
            let mut held = Vec::new();
            for last in addresses.clone() {
                held.extend(silent(gateway, last, each).await);
            }
            let began = Instant::now();
            assert_eq!(scene.picket(&alice, &["nodes"]).await?.code, 0, "{}", scene.gateway.log());
            took.push(began.elapsed());
        }
        assert!(took.iter().any(|took| *took < GIVEN_UP), "{addresses:?}: {took:?}");
    }
    scene.logged(&["audit", "tls:127.0.0.9", "newer ones needed its room"]).await;
    Ok(())
}

const REQUESTS: usize = 10_000;
const CONNECTIONS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_requests_of_one_caller_do_not_hinder_another() -> Result<()> {
    let scene = Scene::with("[limits]\nrate = 100\nburst = 1000\n").await?;
    let (greedy, alice) = (scene.caller("screen.example.org"), scene.caller("alice@example.org"));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(scene.client(&greedy).await);
    }
    let node = Some(NodeSelector { by: Some(node_selector::By::Name("n1".to_owned())) });
    let began = Instant::now();
    let crowd: FuturesUnordered<_> = (0..REQUESTS)
        .map(|number| {
            let mut client = clients[number % CONNECTIONS].clone();
            let node = node.clone();
            async move {
                client.get_node(GetNodeRequest { node, fresh: false }).await.map_err(|status| status.code())
            }
        })
        .collect();
    let crowd = tokio::spawn(crowd.collect::<Vec<_>>());

    let mut other = scene.client(&alice).await;
    let (mut asked, mut meanwhile) = (0, 0);
    while !crowd.is_finished() || asked < 20 {
        let answer = tokio::time::timeout(HANGS, other.list_nodes(ListNodesRequest::default()));
        let answer = answer.await.expect("it hangs").expect("not refused");
        assert_eq!(answer.into_inner().nodes.len(), 4);
        meanwhile += usize::from(!crowd.is_finished());
        asked += 1;
    }
    let answers = crowd.await.expect("ended");
    let took = began.elapsed();
    println!("{asked} requests of the other one, {meanwhile} of them within the {took:?} of the crowd");
    // Whoever waited for the crowd to be served would have had none.
    assert!(meanwhile >= 3, "{meanwhile} of {asked}");
    assert_eq!(answers.len(), REQUESTS);
    let answered = answers.iter().filter(|answer| answer.is_ok()).count();
    let refused = answers.iter().filter(|answer| matches!(answer, Err(Code::ResourceExhausted))).count();
    assert_eq!(answered + refused, REQUESTS, "nothing but the limit refuses");
    // The burst, and what the rate gives in the meantime.
    let most = 1_000 + took.as_secs() as usize * 100 + 100;
    assert!(answered > 0 && answered <= most, "{answered} of at most {most}");
    let denied =
        scene.gateway.log().lines().filter(|line| line.contains("audit") && line.contains("LIMIT")).count();
    assert!(denied <= 2, "{denied} lines for {refused} refusals");
    Ok(())
}
