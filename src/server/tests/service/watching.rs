//! Watches: the present, then every change, from where one left off.

use hyper_util::rt::TokioIo;
use picket_audit::Audit;
use picket_core::ids::{NodeId, Version};
use picket_core::record::NodeRecord;
use picket_core::store::{Guard, Write};
use picket_driver_sim::Fault;
use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::{
    CheckDevicesRequest, FenceRequest, NodeSet, Phase, WatchNodesRequest, WatchNodesResponse, node_set,
};
use picket_server::Limits;
use tokio_stream::StreamExt;
use tonic::transport::{Endpoint, Uri};
use tonic::{Status, Streaming};

use crate::lab::{Client, Lab, fence_request, lab, lab_of, named, reason, s, wrong_fields};

async fn watch(lab: &Lab, hosts: &str, revision: &str) -> Result<Streaming<WatchNodesResponse>, Status> {
    let nodes = (!hosts.is_empty()).then(|| NodeSet { of: Some(node_set::Of::Hosts(hosts.to_owned())) });
    let request = WatchNodesRequest { nodes, revision: revision.to_owned() };
    lab.client.clone().watch_nodes(request).await.map(tonic::Response::into_inner)
}

async fn next(stream: &mut Streaming<WatchNodesResponse>) -> WatchNodesResponse {
    let message = tokio::time::timeout(s(600), stream.next()).await.expect("within ten minutes");
    message.expect("an event").expect("no error")
}

fn node(message: &WatchNodesResponse) -> Option<(&str, Phase)> {
    match message.event.as_ref()? {
        Event::Node(node) => Some((node.name.as_str(), node.phase())),
        Event::Removed(_) | Event::Synced(_) => None,
    }
}

/// Reads until the node stands in the phase; the phases in which it was seen, and the last revision.
async fn until(stream: &mut Streaming<WatchNodesResponse>, name: &str, phase: Phase) -> (Vec<Phase>, String) {
    let mut seen = Vec::new();
    loop {
        let message = next(stream).await;
        if let Some((found, now)) = node(&message)
            && found == name
        {
            seen.push(now);
            if now == phase {
                return (seen, message.revision);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_present_comes_first_then_every_change() {
    let lab = lab().await;
    let mut stream = watch(&lab, "", "").await.expect("let in");
    let mut present = Vec::new();
    let synced = loop {
        let message = next(&mut stream).await;
        match node(&message) {
            Some((name, phase)) => {
                assert_eq!((phase, message.revision.as_str()), (Phase::Normal, ""));
                present.push(name.to_owned());
            }
            None => break message,
        }
    };
    assert_eq!(present, ["me", "n1", "n2", "n10"]);
    assert!(matches!(synced.event, Some(Event::Synced(_))) && !synced.revision.is_empty());

    let fence = lab.open(fence_request("k")).await.expect("let in");
    let (mut seen, _) = until(&mut stream, "n1", Phase::Released).await;
    seen.dedup();
    assert_eq!(seen, [Phase::Fencing, Phase::Fenced, Phase::Released]);
    fence.outcome().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_its_revision_and_misses_nothing() {
    let lab = lab().await;
    let mut stream = watch(&lab, "", "").await.expect("let in");
    let fence = lab.open(fence_request("k")).await.expect("let in");
    let (_, revision) = until(&mut stream, "n1", Phase::Fencing).await;
    drop(stream);
    fence.outcome().await;
    let mut resumed = watch(&lab, "", &revision).await.expect("let in");
    let first = next(&mut resumed).await;
    // Folded into the newest.
    assert_eq!(node(&first), Some(("n1", Phase::Released)));
    assert_ne!(first.revision, revision);

    // Up to date, it has nothing to tell but that it lives.
    let mut current = watch(&lab, "", &first.revision).await.expect("let in");
    let sign = next(&mut current).await;
    assert!(matches!(sign.event, Some(Event::Synced(_))), "{sign:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_of_its_own_nodes_alone() {
    let lab = lab().await;
    let mut stream = watch(&lab, "n2", "").await.expect("let in");
    assert_eq!(node(&next(&mut stream).await), Some(("n2", Phase::Normal)));
    assert!(matches!(next(&mut stream).await.event, Some(Event::Synced(_))));
    lab.fence("k").await;
    let sign = next(&mut stream).await;
    assert!(matches!(sign.event, Some(Event::Synced(_))), "{sign:?}");
}

#[tokio::test(start_paused = true)]
async fn foreign_and_unreadable_revisions_are_refused() {
    let lab = lab().await;
    for (revision, code, word) in [
        ("01890a5d-ac96-774b-bcce-b302099a8057.0", tonic::Code::OutOfRange, "REVISION_GONE"),
        ("nonsense", tonic::Code::InvalidArgument, "BAD_REQUEST"),
    ] {
        let refused = watch(&lab, "", revision).await.expect_err("refused");
        assert_eq!((refused.code(), reason(&refused).0.as_str()), (code, word));
    }
    let newer = format!("{}.99", lab.store.incarnation());
    assert_eq!(reason(&watch(&lab, "", &newer).await.expect_err("refused")).0, "REVISION_GONE");
    let refused = watch(&lab, "n[", "").await.expect_err("refused");
    assert_eq!(wrong_fields(&refused), ["nodes.hosts"]);
}

#[tokio::test(start_paused = true)]
async fn who_reads_late_comes_to_the_newest_all_the_same() {
    let lab = lab().await;
    let mut stream = watch(&lab, "n1", "").await.expect("let in");
    for _ in 0..5 {
        lab.fence("").await;
        lab.unfence("").await;
    }
    let node_id = NodeId::new("n1").expect("a good name");
    let newest = lab.engine.node(&node_id).expect("known").stored;
    let mut revisions = Vec::new();
    loop {
        let message = next(&mut stream).await;
        revisions.extend(
            message.revision.rsplit_once('.').map(|(_, revision)| revision.parse::<u64>().expect("a number")),
        );
        if let Some(Event::Node(node)) = &message.event
            && (node.generation, node.phase()) == (newest.record.generation.0, Phase::Normal)
        {
            break;
        }
    }
    assert!(revisions.is_sorted() && revisions.last() == Some(&newest.revision.0), "{revisions:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_in_the_settings_any_more_is_told_to_who_watches_all() {
    let lab = lab().await;
    let mut all = watch(&lab, "", "").await.expect("let in");
    let mut one = watch(&lab, "n2", "").await.expect("let in");
    while !matches!(next(&mut all).await.event, Some(Event::Synced(_))) {}
    while !matches!(next(&mut one).await.event, Some(Event::Synced(_))) {}
    let guard = Guard { term: lab.engine.leading().expect("leads"), incarnation: lab.store.incarnation() };
    let record = NodeRecord::new(NodeId::new("gone").expect("a good name"));
    let write = Write { expected: Version(0), record, fences: Vec::new(), keys: Vec::new() };
    lab.store.write(guard, write).await.expect("written");
    let message = loop {
        let message = next(&mut all).await;
        if !matches!(message.event, Some(Event::Synced(_))) {
            break message;
        }
    };
    assert_eq!(message.event, Some(Event::Removed("gone".to_owned())));
    assert!(matches!(next(&mut one).await.event, Some(Event::Synced(_))));
}

/// A watch of all nodes of whose answers a client that reads nothing takes no more than a kilobyte.
async fn reads_slowly(lab: &Lab) -> Streaming<WatchNodesResponse> {
    let socket = lab.socket.clone();
    let connector = tower::service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    let endpoint = Endpoint::from_static("http://gateway").initial_stream_window_size(1_024);
    let channel = endpoint.connect_with_connector(connector).await.expect("connected");
    Client::new(channel).watch_nodes(WatchNodesRequest::default()).await.expect("let in").into_inner()
}

async fn check_all(lab: &Lab) {
    let request = CheckDevicesRequest::default();
    let mut told = lab.client.clone().check_devices(request).await.expect("let in").into_inner();
    while let Some(one) = told.next().await {
        one.expect("told");
    }
}

/// What devices can changes more often than is kept for a watch that nobody reads.
#[tokio::test(start_paused = true)]
async fn a_watch_that_fell_behind_looks_at_each_node_when_it_is_read() {
    let names: Vec<String> = (1..=400).map(|number| format!("n{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lab =
        lab_of(&names, Limits::default(), Audit::none(), picket_core::budget::Budget::unlimited()).await;
    check_all(&lab).await;
    let mut watch = reads_slowly(&lab).await;
    while !matches!(next(&mut watch).await.event, Some(Event::Synced(_))) {}
    for _ in 0..6 {
        names.iter().for_each(|name| lab.fault(&format!("{name}-bmc"), Fault::Silent));
        check_all(&lab).await;
        names.iter().for_each(|name| lab.mend(&format!("{name}-bmc")));
        check_all(&lab).await;
    }
    // It told a few of the first changes, finds that it fell behind, and is in the middle of telling all of them.
    for _ in 0..200 {
        next(&mut watch).await;
    }
    tokio::time::sleep(s(1)).await;
    let request = FenceRequest { node: named("n400"), ..fence_request("k") };
    lab.open(request).await.expect("let in").outcome().await;
    let last = loop {
        let message = next(&mut watch).await;
        if let Some((name, phase)) = node(&message) {
            assert!(!message.revision.is_empty(), "one can go on from it");
            if name == "n400" {
                break phase;
            }
        }
    };
    assert_eq!(last, Phase::Released);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_looked_at_when_it_is_read_and_not_when_the_watch_begins() {
    let names: Vec<String> = (1..=2_000).map(|number| format!("n{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lab =
        lab_of(&names, Limits::default(), Audit::none(), picket_core::budget::Budget::unlimited()).await;
    let mut watch = reads_slowly(&lab).await;
    tokio::time::sleep(s(1)).await;
    let request = FenceRequest { node: named("n2000"), ..fence_request("k") };
    lab.open(request).await.expect("let in").outcome().await;

    let (mut told, mut last) = (0, None);
    loop {
        match watch.next().await.expect("an event").expect("no error").event {
            Some(Event::Node(node)) => {
                told += 1;
                last = Some(node);
            }
            Some(Event::Synced(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    let last = last.expect("nodes");
    assert_eq!((told, last.name.as_str(), last.phase()), (2_000, "n2000", Phase::Released));
}
