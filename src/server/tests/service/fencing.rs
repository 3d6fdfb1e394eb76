//! A fence's stream: what it tells, in which order, and to whom.

use picket_proto::v1::{FenceThen, FenceUntil, Grade, OutcomeKind, Phase, Power, Reason, ReleaseStage};

use crate::lab::{fence_request, kind, lab, named, reason, s, wrong_fields};

#[tokio::test(start_paused = true)]
async fn a_fence_tells_each_step_in_order_and_its_outcome_last() {
    let lab = lab().await;
    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    let texts: Vec<&str> = all.iter().map(|update| update.text.as_str()).collect();
    let order = [
        "fence opened by ",
        "hold: bmc",
        "off: bmc",
        "confirmed off",
        "release detach: attempt 1",
        "released",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|word| {
            texts
                .iter()
                .position(|text| text.starts_with(word))
                .unwrap_or_else(|| panic!("{word}: {texts:#?}"))
        })
        .collect();
    assert!(places.is_sorted(), "{texts:#?}");

    let last = all.last().expect("an end");
    let outcome = last.outcome.clone().expect("an outcome");
    assert_eq!((outcome.kind(), outcome.released), (OutcomeKind::Fenced, true));
    assert!(all[..all.len() - 1].iter().all(|update| update.outcome.is_none()));
    assert_eq!(last.phase(), Phase::Released);
    assert_eq!(last.evidence.as_ref().map(|evidence| evidence.grade()), Some(Grade::Observed));
    assert_eq!(last.releases[0].stage(), ReleaseStage::Complete);
    assert!(last.releases[0].changed_at.is_some());

    let confirmed = places[3];
    assert!(all[..confirmed].iter().all(|update| update.evidence.is_none() && update.releases.is_empty()));
    assert!(all[confirmed..].iter().all(|update| update.evidence.is_some()));
    let readings: Vec<Power> =
        all.iter().flat_map(|update| &update.readings).map(|reading| reading.power()).collect();
    assert!(readings.contains(&Power::Off), "{all:#?}");
    assert!(all.iter().any(|update| update.wait.is_some()));
    assert!(
        all.iter()
            .all(|update| update.fence_id == last.fence_id && update.node == "n1" && update.generation == 1)
    );
    let elapsed: Vec<_> = all
        .iter()
        .map(|update| update.elapsed.expect("a span"))
        .map(|span| (span.seconds, span.nanos))
        .collect();
    assert!(elapsed.is_sorted(), "{elapsed:?}");
    assert!(!lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn readings_do_not_flood_a_long_fence() {
    let lab = lab().await;
    lab.fault("n1-bmc", picket_driver_sim::Fault::OffTakes { least: s(60), most: s(60) });
    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    assert!((30..150).contains(&all.len()), "{} messages", all.len());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_proof_alone_is_answered_before_the_release() {
    let lab = lab().await;
    lab.volumes_only_accept(true);
    let request = |key: &str, until: FenceUntil| picket_proto::v1::FenceRequest {
        until: until.into(),
        ..fence_request(key)
    };
    let outcome = lab.open(request("k1", FenceUntil::Confirmed)).await.expect("let in").outcome().await;
    assert_eq!((outcome.kind(), outcome.released), (OutcomeKind::Fenced, false));
    let already = lab.open(request("k2", FenceUntil::Confirmed)).await.expect("let in").outcome().await;
    assert_eq!((already.kind(), already.released), (OutcomeKind::AlreadyFenced, false));
    let follower = lab.open(request("k3", FenceUntil::Released)).await.expect("let in");
    lab.volumes_only_accept(false);
    let outcome = follower.outcome().await;
    assert_eq!((outcome.kind(), outcome.released), (OutcomeKind::AlreadyFenced, true));
}

#[tokio::test(start_paused = true)]
async fn another_caller_joins_and_is_told_where_it_stands_first() {
    let lab = lab().await;
    let mut first = lab.open(fence_request("k1")).await.expect("let in");
    let opened = first.update().await;
    let mut request = fence_request("k2");
    request.holder = "backup".to_owned();
    let mut second = lab.open(request).await.expect("let in");
    let joined = second.update().await;
    assert_eq!((joined.phase(), joined.fence_id), (Phase::Fencing, opened.fence_id));
    assert_eq!(kind(&first.outcome().await), OutcomeKind::Fenced);
    assert_eq!(kind(&second.outcome().await), OutcomeKind::Fenced);
    let node = picket_core::ids::NodeId::new("n1").expect("a good name");
    let holds = lab.engine.node(&node).expect("known").stored.record.holds.clone();
    assert_eq!(holds.keys().collect::<Vec<_>>(), ["backup", "db"]);
    assert!(holds.values().all(|hold| hold.by.starts_with("uid:")), "{holds:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_key_is_the_same_fence_and_with_other_parameters_an_error() {
    let lab = lab().await;
    let opened = lab.open(fence_request("k")).await.expect("let in").update().await;
    // The first stream is dropped here: who leaves stops nothing.
    let mut other = fence_request("k");
    other.reason = "another".to_owned();
    let refused = lab.open(other).await.err().expect("refused");
    let (word, metadata) = reason(&refused);
    assert_eq!((refused.code(), word.as_str()), (tonic::Code::InvalidArgument, "KEY_REUSED"));
    assert_eq!(metadata["fence"], opened.fence_id);
    assert_eq!(wrong_fields(&refused), ["idempotency_key"]);

    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    let last = all.last().expect("an end");
    assert_eq!(last.fence_id, opened.fence_id);
    assert_eq!(last.outcome.as_ref().map(kind), Some(OutcomeKind::Fenced));
    // Also once it is over, and under a new stream's words.
    let mut again = fence_request("k");
    again.until = FenceUntil::Confirmed.into();
    let again = lab.open(again).await.expect("let in").all().await;
    assert_eq!(again.last().expect("an end").fence_id, opened.fence_id);
    assert_eq!(again.last().and_then(|update| update.outcome.as_ref()).map(kind), Some(OutcomeKind::Fenced));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_another_holder_has_used_is_not_taken() {
    let lab = lab().await;
    let mut early = fence_request("k");
    early.holder = "mallory".to_owned();
    let opened = lab.open(early).await.expect("let in").update().await;
    let mut joined = lab.open(fence_request("k")).await.expect("let in");
    assert_eq!(joined.update().await.fence_id, opened.fence_id);
    assert_eq!(kind(&joined.outcome().await), OutcomeKind::Fenced);
    assert_eq!(kind(&lab.unfence("u").await), OutcomeKind::StillHeld);
}

#[tokio::test(start_paused = true)]
async fn the_gateways_own_machine_is_blocked_which_is_an_outcome() {
    let lab = lab().await;
    let mut request = fence_request("k");
    request.node = named("me");
    let all = lab.open(request).await.expect("let in").all().await;
    let [only] = all.as_slice() else { panic!("{all:#?}") };
    let outcome = only.outcome.as_ref().expect("an outcome");
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::Blocked, Reason::Self_));
    assert_eq!((only.fence_id.as_str(), only.phase()), ("", Phase::Normal));
    assert!(lab.is_on("me"));
}

#[tokio::test(start_paused = true)]
async fn power_on_afterwards_is_fenced_for_the_one_who_asked_for_it() {
    let lab = lab().await;
    let mut request = fence_request("k");
    request.then = FenceThen::PowerOn.into();
    let outcome = lab.open(request).await.expect("let in").outcome().await;
    assert_eq!((outcome.kind(), outcome.released), (OutcomeKind::Fenced, true));
    lab.reach("normal").await;
    assert!(lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn a_grade_and_a_deadline_are_each_callers_own() {
    let lab = lab().await;
    lab.fault("n1-bmc", picket_driver_sim::Fault::OffTakes { least: s(40), most: s(40) });
    let first = lab.open(fence_request("k1")).await.expect("let in");
    let mut hurried = fence_request("k2");
    hurried.deadline = Some(prost_types::Duration { seconds: 20, nanos: 0 });
    let outcome = lab.open(hurried).await.expect("let in").outcome().await;
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, Reason::Deadline));
    assert_eq!(kind(&first.outcome().await), OutcomeKind::Fenced);
}

/// Nor does the deadline of whoever opened a fence bind one who joins with longer; and it is told to its own caller when it is over.
#[tokio::test(start_paused = true)]
async fn the_first_callers_deadline_binds_nobody_who_has_longer() {
    let lab = lab().await;
    lab.fault("n1-bmc", picket_driver_sim::Fault::OffTakes { least: s(40), most: s(40) });
    let mut hurried = fence_request("k1");
    hurried.deadline = Some(prost_types::Duration { seconds: 20, nanos: 0 });
    let first = lab.open(hurried).await.expect("let in");
    let joins = picket_proto::v1::FenceRequest { holder: "web".to_owned(), ..fence_request("k2") };
    let second = lab.open(joins).await.expect("let in");
    let began = tokio::time::Instant::now();
    let outcome = first.outcome().await;
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, Reason::Deadline));
    assert!(outcome.detail.contains("your own deadline; the fence goes on"), "{}", outcome.detail);
    assert_eq!(began.elapsed().as_secs(), 20);
    assert_eq!(kind(&second.outcome().await), OutcomeKind::Fenced);
}

#[tokio::test(start_paused = true)]
async fn a_grade_below_the_callers_own_is_no_success_for_this_caller() {
    let lab = lab().await;
    let node = |key: &str| picket_proto::v1::FenceRequest { node: named("n10"), ..fence_request(key) };
    // What the BMC of n10 controls is not known, which lowers the grade.
    let first = lab.open(node("k1")).await.expect("let in");
    let demanding = picket_proto::v1::FenceRequest { minimum_grade: Grade::Observed.into(), ..node("k2") };
    let second = lab.open(demanding).await.expect("let in");
    assert_eq!(kind(&first.outcome().await), OutcomeKind::Fenced);
    let outcome = second.outcome().await;
    assert_eq!((outcome.kind(), outcome.reason()), (OutcomeKind::NeedsOperator, Reason::GradeTooLow));
    assert!(outcome.detail.contains("observed"), "{}", outcome.detail);
}
