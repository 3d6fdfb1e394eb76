//! Bringing a node back.

use picket_core::roles::Role;
use picket_core::time::Clock;
use picket_driver_sim::Fault;
use picket_proto::v1::{DropHoldRequest, FenceRequest, OutcomeKind, Phase, UnfenceRequest};
use picket_server::Limits;
use tonic_types::StatusExt;

use crate::lab::{Updates, fence_request, kind, lab, named, reason, s, unfence_request};
use crate::roles::{mine, side};

#[tokio::test(start_paused = true)]
async fn an_unfence_tells_its_own_steps_and_not_those_of_the_fence() {
    let lab = lab().await;
    lab.fence("k").await;
    let all = lab.back(unfence_request("u")).await.expect("let in").all().await;
    let texts: Vec<&str> = all.iter().map(|update| update.text.as_str()).collect();
    assert!(texts[0].starts_with("hold db dropped"), "{texts:#?}");
    assert!(texts.iter().any(|text| text.starts_with("on: bmc")), "{texts:#?}");
    assert!(texts.iter().any(|text| text.ends_with("seen on")), "{texts:#?}");
    assert!(!texts.iter().any(|text| text.starts_with("confirmed off")), "{texts:#?}");
    let last = all.last().expect("an end");
    assert_eq!(last.outcome.as_ref().map(kind), Some(OutcomeKind::Unfenced));
    assert_eq!((last.phase(), last.generation), (Phase::Normal, 2));
    assert!(all.iter().all(|update| update.evidence.is_none()));
    assert!(lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn an_unfence_during_a_fence_is_refused_with_what_would_help() {
    let lab = lab().await;
    let opened = lab.open(fence_request("k")).await.expect("let in").update().await;
    let refused = lab.back(unfence_request("u")).await.err().expect("refused");
    let (word, metadata) = reason(&refused);
    assert_eq!((refused.code(), word.as_str()), (tonic::Code::FailedPrecondition, "FENCE_OPEN"));
    assert_eq!(
        (metadata["fence"].as_str(), metadata["phase"].as_str()),
        (opened.fence_id.as_str(), "FENCING")
    );
    let details = refused.get_error_details();
    let violation = &details.precondition_failure().expect("a precondition").violations[0];
    assert_eq!((violation.r#type.as_str(), violation.subject.as_str()), ("PHASE", "n1"));
    assert!(violation.description.contains("wait until"), "{}", violation.description);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_fenced_is_unfenced_at_once() {
    let lab = lab().await;
    let all = lab.back(unfence_request("u")).await.expect("let in").all().await;
    let [only] = all.as_slice() else { panic!("{all:#?}") };
    assert_eq!(only.outcome.as_ref().map(kind), Some(OutcomeKind::Unfenced));
    let detail = only.outcome.as_ref().map(|outcome| outcome.detail.as_str());
    assert_eq!(detail, Some("it was not fenced, so nothing was to be done"));
}

#[tokio::test(start_paused = true)]
async fn an_unfence_under_way_is_joined() {
    let lab = lab().await;
    lab.fence("k").await;
    lab.fault("n1-bmc", Fault::OnTakes { least: s(20), most: s(20) });
    let request = UnfenceRequest { expected_generation: Some(1), ..unfence_request("") };
    let mut first = lab.back(request.clone()).await.expect("let in");
    first.update().await;
    // The same again, as after a broken connection: what it expected has happened since.
    let second = lab.back(request).await.expect("let in");
    assert_eq!(kind(&first.outcome().await), OutcomeKind::Unfenced);
    assert_eq!(kind(&second.outcome().await), OutcomeKind::Unfenced);
    let stale = UnfenceRequest { expected_generation: Some(7), ..unfence_request("") };
    let refused = lab.back(stale).await.err().expect("refused");
    let (word, metadata) = reason(&refused);
    assert_eq!(word, "GENERATION_MISMATCH");
    assert_eq!((metadata["expected"].as_str(), metadata["found"].as_str()), ("7", "2"));
}

#[tokio::test(start_paused = true)]
async fn a_late_repetition_of_an_unfence_does_not_bring_a_fenced_node_back() {
    let lab = lab().await;
    lab.fence("k1").await;
    assert_eq!(kind(&lab.unfence("u").await), OutcomeKind::Unfenced);
    lab.fence("k2").await;
    let outcome = lab.unfence("u").await;
    assert_eq!(outcome.kind(), OutcomeKind::Superseded);
    tokio::time::sleep(s(60)).await;
    assert!(!lab.is_on("n1"));
    let other = UnfenceRequest { reason: "another".to_owned(), ..unfence_request("u") };
    assert_eq!(reason(&lab.back(other).await.err().expect("refused")).0, "KEY_REUSED");
}

#[tokio::test(start_paused = true)]
async fn what_others_hold_stays_off_and_a_hold_that_is_not_there_is_told() {
    let lab = lab().await;
    let mut other = fence_request("k0");
    other.holder = "backup".to_owned();
    let joined = lab.open(fence_request("k")).await.expect("let in");
    lab.open(other).await.expect("let in").outcome().await;
    joined.outcome().await;
    let outcome = lab.unfence("u1").await;
    assert_eq!((outcome.kind(), outcome.detail.as_str()), (OutcomeKind::StillHeld, "still held by backup"));
    let refused = lab.back(unfence_request("u2")).await.err().expect("refused");
    let (word, metadata) = reason(&refused);
    assert_eq!((refused.code(), word.as_str()), (tonic::Code::NotFound, "HOLD_NOT_FOUND"));
    assert_eq!(metadata["holders"], "backup");
    assert!(!lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_seen_on_is_told_and_tried_again() {
    let lab = lab().await;
    lab.fence("k").await;
    lab.fault("n1-bmc", Fault::OnDropped { times: 1_000 });
    let outcome = lab.unfence("u").await;
    assert_eq!(outcome.kind(), OutcomeKind::PowerOnFailed);
    assert!(outcome.detail.contains("not seen on"), "{}", outcome.detail);
    lab.mend("n1-bmc");
    let outcome = crate::people::retry(&lab, "r").await.expect("let in").outcome().await;
    assert_eq!(outcome.kind(), OutcomeKind::Unfenced);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_ones_own_ends_the_stream_and_not_the_unfence() {
    let lab = lab().await;
    lab.fence("k").await;
    lab.fault("n1-bmc", Fault::OnTakes { least: s(60), most: s(60) });
    let deadline = Some(prost_types::Duration { seconds: 20, nanos: 0 });
    let request = UnfenceRequest { deadline, ..unfence_request("u") };
    let outcome = lab.back(request).await.expect("let in").outcome().await;
    assert_eq!(outcome.kind(), OutcomeKind::PowerOnFailed);
    lab.reach("normal").await;
}

/// S16: a retry is an operator's. Somebody may have the chassis open, and each of these unfences would be a new generation.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_seen_on_is_switched_on_again_by_no_controller() {
    let lab = lab().await;
    let ons = || lab.world.lock().received("n1-bmc", lab.clock.boot()).ons;
    lab.fence("k").await;
    lab.fault("n1-bmc", Fault::OnDropped { times: 1_000 });
    assert_eq!(lab.unfence("u").await.kind(), OutcomeKind::PowerOnFailed);
    let sent = ons();
    let side = side(&lab, vec![mine(Role::Controller)], Limits::default()).await;
    let mut client = side.client.clone();
    // Once it was fenced anew this one has a hold, and what it asked before undoes nothing of that.
    let own = |key: &str| UnfenceRequest { holder: String::new(), ..unfence_request(key) };
    let stream = client.unfence(own("c")).await.expect("let in").into_inner();
    let outcome = Updates::of(stream, |answer| answer.update).outcome().await;
    assert_eq!(outcome.kind(), OutcomeKind::PowerOnFailed);
    assert!(outcome.detail.contains("not seen on"), "{}", outcome.detail);
    let drop_hold = DropHoldRequest { node: named("n1"), reason: "why".to_owned(), ..Default::default() };
    let node = client.drop_hold(drop_hold).await.expect("it is so already").into_inner().node;
    assert_eq!(node.map(|node| (node.phase(), node.generation)), Some((Phase::PowerOnFailed, 2)));
    tokio::time::sleep(s(60)).await;
    assert_eq!(ons(), sent, "the chassis may be open");

    lab.mend("n1-bmc");
    assert_eq!(lab.unfence("u2").await.kind(), OutcomeKind::Unfenced, "an admin is an operator, too");
    let again = FenceRequest { holder: String::new(), ..fence_request("k2") };
    let stream = client.fence(again).await.expect("let in").into_inner();
    Updates::of(stream, |answer| answer.update).outcome().await;
    let stream = client.unfence(own("c")).await.expect("let in").into_inner();
    let late = Updates::of(stream, |answer| answer.update).outcome().await;
    assert_eq!((late.kind(), lab.is_on("n1")), (OutcomeKind::Superseded, false));
}
