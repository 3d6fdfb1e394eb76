//! What becomes of streams when the node, or the gateway, moves on.

use picket_core::event::Person;
use picket_core::ids::NodeId;
use picket_driver_sim::{Act, Verb};
use picket_engine::Engine;
use picket_proto::v1::{FenceUntil, OutcomeKind, Phase};
use tokio_util::sync::CancellationToken;

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

/// Leads, goes on with the fence of `n1`, and brings the node back.
async fn brings_back(gateway: Engine) {
    let running = gateway.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await.expect("a whole store") });
    gateway.until_leading().await;
    let node = NodeId::new("n1").expect("a good name");
    let mut view = gateway.follow(&node).expect("known");
    let released = view.wait_for(|view| view.stored.record.phase.label() == "released").await;
    drop(released.expect("it runs"));
    let person = Person { name: "ada".to_owned(), reason: "a test".to_owned() };
    gateway.unfence(&node, "db".to_owned(), person).await.expect("unfenced");
    let back = view.wait_for(|view| view.stored.record.phase.label() == "normal").await;
    drop(back.expect("it runs"));
}

/// S6, S20: a gateway stands still between the store's answer and its own. Another gateway leads meanwhile, proves the node off
/// anew, and brings it back. The first caller's stream is no place to say FENCED either.
async fn stopped_at(point: &'static str, until: FenceUntil) {
    let lab = lab().await;
    let request = picket_proto::v1::FenceRequest { until: until.into(), ..fence_request("k") };
    let (other, clock, points) = (lab.another_gateway(), lab.clock.clone(), lab.points.clone());
    points.at(point, async move {
        brings_back(other).await;
        // Its clocks show how long it stood still: its leadership is over.
        clock.jump_wall(60_000);
    });
    let error = lab.open(request).await.expect("let in").error().await;
    assert!(lab.is_on("n1"), "the other gateway brought it back");
    assert_eq!((error.code(), reason(&error).0.as_str()), (tonic::Code::Unavailable, "NO_LEADER"));
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_does_not_say_fenced_once_it_is_confirmed() {
    stopped_at("saved confirmed", FenceUntil::Confirmed).await;
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_does_not_say_fenced_once_it_is_released() {
    stopped_at("saved release_progress", FenceUntil::Released).await;
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
