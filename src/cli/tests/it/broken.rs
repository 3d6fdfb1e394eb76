//! The way to the gateway breaks, or was never there.

use std::time::Duration;

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{ended, good_fence, node, outcome, update};
use crate::common::{ask, picket, run};
use picket_proto::v1::*;
use tonic::Status;

fn script(streams: Vec<Vec<Step>>) -> Script {
    Script {
        nodes: vec![node("r1n07")],
        streams: [("r1n07".to_owned(), streams.into())].into(),
        ..Default::default()
    }
}

fn say(updates: Vec<FenceUpdate>) -> Vec<Step> {
    updates.into_iter().map(Step::Say).collect()
}

#[tokio::test]
async fn a_cut_stream_is_joined_again_with_the_same_key() {
    let first = vec![
        Step::Say(update("r1n07", 0, Phase::Fencing, "opened for alice")),
        Step::Fail(Status::unavailable("connection reset")),
    ];
    // One that ends without an outcome is cut too.
    let second = say(vec![update("r1n07", 1, Phase::Fencing, "off accepted by bmc")]);
    let gateway = Gateway::start(script(vec![first, second, say(good_fence("r1n07"))])).await;
    let ran = ask(&gateway, "fence r1n07 --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("connection lost (connection reset); trying again in 0.2 s"), "{}", ran.out);
    assert!(ran.out.contains("ended without an outcome"), "{}", ran.out);
    let asked = gateway.script().fenced.clone();
    assert_eq!(asked.len(), 3);
    assert!(
        asked.iter().all(|request| *request == asked[0]),
        "the same request, with the same key: {asked:?}"
    );
}

#[tokio::test]
async fn a_gateway_that_dies_and_comes_back_is_joined_again() {
    let first = vec![
        Step::Say(update("r1n07", 0, Phase::Fencing, "opened for alice")),
        Step::Rest(Duration::from_secs(60)),
    ];
    let mut gateway = Gateway::start(script(vec![first, say(good_fence("r1n07"))])).await;
    let mut command = picket("fence r1n07 --yes");
    command.args(["--endpoint", &gateway.endpoint()]);
    let running = tokio::spawn(run(command));
    while gateway.script().open.0 == 0 {
        tokio::task::yield_now().await;
    }
    gateway.restart(Duration::from_millis(300)).await;
    let ran = running.await.expect("it runs");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("trying again"), "{}", ran.out);
    let asked = gateway.script().fenced.clone();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].idempotency_key, asked[1].idempotency_key);
}

#[tokio::test]
async fn patience_ends_and_the_key_is_told() {
    let first = say(vec![update("r1n07", 0, Phase::Fencing, "opened for alice")]);
    let gateway = Gateway::start(script(vec![first])).await;
    let ran = ask(&gateway, "fence r1n07 --yes --patience 500ms --key night-7").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.out.contains("whether it began is not known"), "{}", ran.out);
    assert!(ran.out.contains("picket fence r1n07 --key night-7"), "{}", ran.out);
}

#[tokio::test]
async fn a_refusal_after_a_break_is_final() {
    let first = vec![Step::Fail(Status::unavailable("connection reset"))];
    let second = vec![Step::Fail(Status::invalid_argument("the key was used with other parameters"))];
    let gateway = Gateway::start(script(vec![first, second, say(good_fence("r1n07"))])).await;
    let ran = ask(&gateway, "fence r1n07 --yes").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(gateway.script().fenced.len(), 2);
}

#[tokio::test]
async fn time_over_is_10_and_the_fence_goes_on() {
    let mut told = Vec::new();
    // How far it comes in that time is the machine's matter.
    for time in ["400ms", "4s", "20s"] {
        let slow = vec![
            Step::Say(update("r1n07", 0, Phase::Fencing, "opened for alice")),
            Step::Rest(Duration::from_secs(600)),
        ];
        let gateway = Gateway::start(script(vec![slow])).await;
        let ran = ask(&gateway, &format!("fence r1n07 --yes --timeout {time} -o json")).await;
        assert_eq!(ran.code, 10, "{ran:?}");
        assert!(ran.out.contains("\"left\": \"timed_out\""), "{}", ran.out);
        if ran.out.contains("\"phase\": \"fencing\"") {
            return;
        }
        told.push(ran.out);
    }
    panic!("the phase is not told: {told:?}");
}

#[tokio::test]
async fn nobody_at_the_port_is_5_and_says_what_to_check() {
    let gateway = Gateway::start(Script::default()).await;
    let endpoint = gateway.endpoint();
    gateway.kill().await;
    for line in ["fence r1n07 --yes", "nodes", "status", "watch", "history", "retry r1n07 --yes"] {
        let mut command = picket(line);
        command.args(["--endpoint", &endpoint]);
        let ran = run(command).await;
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{line}: {ran:?}");
        assert!(ran.err.contains(&format!("no gateway answers at {endpoint}")), "{}", ran.err);
        assert!(
            ran.err.contains("nobody listens there") && ran.err.contains("PICKET_ENDPOINT"),
            "{}",
            ran.err
        );
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_without_a_word_is_5() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("it is bound"));
    let hangs_up = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    for line in ["nodes", "fence r1n07 --yes"] {
        let mut command = picket(line);
        command.args(["--endpoint", &endpoint]);
        let ran = run(command).await;
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
        assert!(ran.err.contains(&format!("no gateway answers at {endpoint}")), "{}", ran.err);
        assert!(!ran.err.contains("transport error"), "the cause is told: {}", ran.err);
    }
    hangs_up.abort();
}

#[tokio::test]
async fn a_socket_that_is_not_there_or_dead_is_5_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("picket.sock");
    let ask = |words: &'static str| {
        let mut command = picket("nodes");
        command.env("PICKET_ENDPOINT", format!("unix:{}", socket.display()));
        async move {
            let ran = run(command).await;
            assert_eq!(ran.code, 5, "{ran:?}");
            assert!(ran.err.contains(words), "{}", ran.err);
        }
    };
    ask("there is no such socket").await;
    // A dead gateway leaves its socket behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound"));
    ask("nobody listens").await;
}

#[tokio::test]
async fn unfencing_and_the_rest_follow_a_break_too() {
    let back = || {
        say(vec![ended("r1n07", 30, Phase::Normal, outcome(OutcomeKind::Unfenced, Reason::Unspecified, ""))])
    };
    let cut = || vec![Step::Fail(Status::unavailable("gone"))];
    let gateway = Gateway::start(script(vec![cut(), back(), cut(), back()])).await;
    assert_eq!(ask(&gateway, "unfence r1n07").await.code, 0);
    assert_eq!(ask(&gateway, "retry r1n07 --yes").await.code, 0);
    let script = gateway.script();
    assert_eq!(script.unfenced[0], script.unfenced[1]);
    assert_eq!(script.retried[0], script.retried[1]);
    assert_eq!(script.retried[0].expected_generation, Some(6), "of what was seen");
}
