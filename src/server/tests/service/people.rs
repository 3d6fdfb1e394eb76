//! The exits for people.

use picket_core::roles::Role;
use picket_driver_sim::Fault;
use picket_proto::v1::{
    AbandonReleaseRequest, HoldRequest, OutcomeKind, Phase, Reason, ReleaseStage, RetryRequest,
    StandDownRequest,
};
use tonic::Status;

use picket_server::Limits;

use crate::lab::{Lab, Updates, fence_request, kind, lab, named, reason, s};
use crate::roles::{mine, side};

pub async fn retry(lab: &Lab, key: &str) -> Result<Updates, Status> {
    let request = RetryRequest {
        node: named("n1"),
        reason: "a test".to_owned(),
        idempotency_key: key.to_owned(),
        ..Default::default()
    };
    let stream = lab.client.clone().retry(request).await?.into_inner();
    Ok(Updates::of(stream, |answer| answer.update))
}

async fn stand_down(lab: &Lab, key: &str) -> Result<Updates, Status> {
    let request = StandDownRequest {
        node: named("n1"),
        reason: "a test".to_owned(),
        idempotency_key: key.to_owned(),
        ..Default::default()
    };
    let stream = lab.client.clone().stand_down(request).await?.into_inner();
    Ok(Updates::of(stream, |answer| answer.update))
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_needs_an_operator_says_why_and_can_be_tried_again() {
    let lab = lab().await;
    lab.fault("n1-bmc", Fault::Silent);
    let outcome = lab.fence("k").await;
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, Reason::LevelsSpent));
    assert!(outcome.detail.contains("no answer"), "{}", outcome.detail);
    lab.mend("n1-bmc");
    let first = retry(&lab, "r").await.expect("let in");
    // As after a broken connection: the same key follows the same motion.
    let second = retry(&lab, "r").await.expect("let in");
    assert_eq!(kind(&first.outcome().await), OutcomeKind::Fenced);
    assert_eq!(kind(&second.outcome().await), OutcomeKind::Fenced);
    // And once it is over: what became of it.
    assert_eq!(kind(&retry(&lab, "r").await.expect("let in").outcome().await), OutcomeKind::Fenced);
    let refused = retry(&lab, "r2").await.err().expect("refused");
    let (word, metadata) = reason(&refused);
    assert_eq!(word, "WRONG_PHASE");
    assert_eq!(
        (metadata["phase"].as_str(), metadata["wanted"].as_str()),
        ("RELEASED", "NEEDS_OPERATOR,POWER_ON_FAILED")
    );
}

#[tokio::test(start_paused = true)]
async fn who_was_alive_is_stood_down_and_keeps_running() {
    let lab = lab().await;
    lab.fault("n1-bmc", Fault::OffIgnored);
    let stream = lab.open(fence_request("k")).await.expect("let in");
    assert_eq!(kind(&stream.outcome().await), OutcomeKind::NeedsOperator);
    lab.mend("n1-bmc");
    let outcome = stand_down(&lab, "s").await.expect("let in").outcome().await;
    assert_eq!(outcome.kind(), OutcomeKind::StoodDown);
    lab.reach("normal").await;
    assert!(lab.is_on("n1"));
    let fence = lab.open(fence_request("k")).await.expect("let in").outcome().await;
    assert_eq!(fence.superseded.map(|had| had.kind()), Some(OutcomeKind::StoodDown));
}

#[tokio::test(start_paused = true)]
async fn a_release_is_given_up_by_name() {
    let lab = lab().await;
    lab.volumes_only_accept(true);
    let stream = lab.open(fence_request("k")).await.expect("let in");
    lab.reach("fenced").await;
    let abandon = |release: &str| AbandonReleaseRequest {
        node: named("n1"),
        release: release.to_owned(),
        reason: "a test".to_owned(),
        ..Default::default()
    };
    let refused = lab.client.clone().abandon_release(abandon("detch")).await.expect_err("no such release");
    let (word, metadata) = reason(&refused);
    assert_eq!((word.as_str(), metadata["releases"].as_str()), ("RELEASE_NOT_FOUND", "detach"));
    let stale = AbandonReleaseRequest { expected_generation: Some(9), ..abandon("detach") };
    let refused = lab.client.clone().abandon_release(stale).await.expect_err("another generation");
    assert_eq!(reason(&refused).0, "GENERATION_MISMATCH");
    let node = lab.client.clone().abandon_release(abandon("detach")).await.expect("taken").into_inner().node;
    assert_eq!(node.expect("a node").phase(), Phase::Released);
    let all = stream.all().await;
    let last = all.last().expect("an end");
    let outcome = last.outcome.as_ref().expect("an outcome");
    assert!(outcome.released && outcome.detail.contains("given up by name: detach"), "{}", outcome.detail);
    assert_eq!(last.releases[0].stage(), ReleaseStage::Abandoned);
    tokio::time::sleep(s(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_stood_down_and_is_dark_can_be_fenced_again() {
    let lab = lab().await;
    lab.fault("n1-bmc", Fault::OffIgnored);
    assert_eq!(kind(&lab.fence("k1").await), OutcomeKind::NeedsOperator);
    lab.mend("n1-bmc");
    lab.happen(picket_driver_sim::Act::Foreign {
        machine: "n1".to_owned(),
        verb: picket_driver_sim::Verb::Off,
    });
    let outcome = stand_down(&lab, "s").await.expect("let in").outcome().await;
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, Reason::StandDownUnseen));
    let outcome = lab.fence("k2").await;
    assert_eq!((outcome.kind(), outcome.released), (OutcomeKind::Fenced, true));
    assert!(!lab.is_on("n1"));
}

/// Held by a call of its own it would heed no recovery (K9), and be switched off by a program's word.
#[tokio::test(start_paused = true)]
async fn a_program_s_fence_that_sent_nothing_is_made_a_person_s_by_an_operator_alone() {
    let lab = lab().await;
    lab.fault("n1-bmc", Fault::Silent);
    let _stream = lab.open(fence_request("k")).await.expect("let in");
    lab.reach("fencing").await;
    let hold = || HoldRequest { node: named("n1"), reason: "a test".to_owned(), ..Default::default() };
    let program = side(&lab, vec![mine(Role::Controller)], Limits::default()).await;
    let refused = program.client.clone().hold(hold()).await.expect_err("it asks for a fence");
    assert_eq!(reason(&refused).0, "WRONG_PHASE");
    assert!(refused.message().contains("ask for a fence"), "{}", refused.message());
    let operator = side(&lab, vec![mine(Role::Operator)], Limits::default()).await;
    operator.client.clone().hold(hold()).await.expect("a person's to decide");
    lab.mend("n1-bmc");
    lab.reach("released").await;
    program.client.clone().hold(hold()).await.expect("it is off");
}
