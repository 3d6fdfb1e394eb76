//! What becomes of streams when the node, or the gateway, moves on.

use picket_driver_sim::{Act, Verb};
use picket_proto::v1::{OutcomeKind, Phase};

use crate::lab::{fence_request, kind, lab, reason, s, unfence_request};

#[tokio::test(start_paused = true)]
async fn a_key_whose_fence_has_ended_is_superseded_with_what_it_had_come_to() {
    let lab = lab().await;
    assert_eq!(kind(&lab.fence("k").await), OutcomeKind::Fenced);
    assert_eq!(kind(&lab.unfence("u").await), OutcomeKind::Unfenced);
    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    let [only] = all.as_slice() else { panic!("{all:#?}") };
    assert_eq!(only.phase(), Phase::Normal);
    let outcome = only.outcome.clone().expect("an outcome");
    assert_eq!(outcome.kind(), OutcomeKind::Superseded);
    let had = outcome.superseded.expect("what it had come to");
    assert!(had.kind() == OutcomeKind::Fenced && had.released && !outcome.released);
    assert!(only.evidence.is_none() && lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn a_breach_supersedes_the_fence_that_is_followed() {
    let lab = lab().await;
    lab.volumes_only_accept(true);
    let stream = lab.open(fence_request("k")).await.expect("let in");
    lab.reach("fenced").await;
    lab.happen(Act::Foreign { machine: "n1".to_owned(), verb: Verb::On });
    let outcome = stream.outcome().await;
    assert_eq!(outcome.kind(), OutcomeKind::Superseded);
    assert!(!outcome.released);
}

#[tokio::test(start_paused = true)]
async fn a_fence_during_an_unfence_wins() {
    let lab = lab().await;
    assert_eq!(kind(&lab.fence("k1").await), OutcomeKind::Fenced);
    lab.fault("n1-bmc", picket_driver_sim::Fault::OnTakes { least: s(60), most: s(60) });
    let back = lab.back(unfence_request("u")).await.expect("let in");
    lab.reach("unfencing").await;
    let fence = lab.open(fence_request("k2")).await.expect("let in");
    assert_eq!(kind(&back.outcome().await), OutcomeKind::Superseded);
    assert_eq!(kind(&fence.outcome().await), OutcomeKind::Fenced);
    assert!(!lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_stops_nothing() {
    let lab = lab().await;
    let mut stream = lab.open(fence_request("k")).await.expect("let in");
    stream.update().await;
    drop(stream);
    lab.reach("released").await;
    assert!(!lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_leadership_ends_streams_with_an_error_and_the_key_joins_again() {
    let lab = lab().await;
    lab.fault("n1-bmc", picket_driver_sim::Fault::OffTakes { least: s(30), most: s(30) });
    let mut stream = lab.open(fence_request("k")).await.expect("let in");
    let opened = stream.update().await;
    lab.clock.jump_wall(60_000);
    let error = stream.error().await;
    assert_eq!((error.code(), reason(&error).0.as_str()), (tonic::Code::Unavailable, "NO_LEADER"));
    lab.engine.until_leading().await;
    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    let last = all.last().expect("an end");
    assert_eq!(last.fence_id, opened.fence_id);
    assert_eq!(last.outcome.as_ref().map(kind), Some(OutcomeKind::Fenced));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_stops_ends_streams_with_an_error() {
    let mut lab = lab().await;
    lab.fault("n1-bmc", picket_driver_sim::Fault::OffIgnored);
    let mut stream = lab.open(fence_request("k")).await.expect("let in");
    stream.update().await;
    let began = tokio::time::Instant::now();
    lab.stop.cancel();
    let error = stream.error().await;
    assert_eq!(error.code(), tonic::Code::Unavailable, "{error:?}");
    assert_eq!(reason(&error).0, "SHUTTING_DOWN");
    lab.serving.take().expect("serving").await.expect("ended");
    assert!(began.elapsed() < s(5), "{:?}", began.elapsed());
    assert!(!lab.socket.exists());
}
