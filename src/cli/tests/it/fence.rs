//! One node fenced: what people and scripts are told, and the exit code of each outcome.

use std::time::Duration;

use crate::common::gateway::{Gateway, Script, Step, unknown_node};
use crate::common::make::{ended, evidence, good_fence, node, outcome, update};
use crate::common::{Ran, ask, golden};
use picket_proto::v1::*;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

fn script(updates: Vec<FenceUpdate>) -> Script {
    let steps = updates.into_iter().map(Step::Say).collect();
    Script {
        nodes: vec![node("r1n07")],
        streams: [("r1n07".to_owned(), [steps].into())].into(),
        ..Default::default()
    }
}

/// A document without what no two runs share.
fn steady(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start_matches(['"', ' ']).starts_with("took_s"))
        .map(|line| format!("{line}\n"))
        .collect()
}

async fn end(phase: Phase, kind: OutcomeKind, reason: Reason, detail: &str) -> Ran {
    let outcome = outcome(kind, reason, detail);
    let gateway = Gateway::start(script(vec![
        update("r1n07", 0, Phase::Fencing, "opened for alice"),
        ended("r1n07", 9, phase, outcome),
    ]))
    .await;
    ask(&gateway, "fence r1n07 --yes").await
}

#[tokio::test]
async fn a_good_fence_is_told_in_plain_lines_with_its_evidence() {
    let gateway = Gateway::start(script(good_fence("r1n07"))).await;
    let ran = ask(&gateway, "fence r1n07 --yes --reason fire").await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    golden("fence.txt", &ran.out);
    let asked = gateway.script().fenced[0].clone();
    assert_eq!((asked.reason.as_str(), asked.until()), ("fire", FenceUntil::Released));
    assert_eq!(asked.idempotency_key.len(), 36, "a key of its own: {asked:?}");
}

#[tokio::test]
async fn with_json_and_yaml_standard_output_is_one_document() {
    for (form, name) in [("json", "fence.json"), ("yaml", "fence.yaml")] {
        let gateway = Gateway::start(script(good_fence("r1n07"))).await;
        let ran = ask(&gateway, &format!("fence r1n07 --yes --key night-7 -o {form}")).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        golden(name, &steady(&ran.out));
    }
}

#[tokio::test]
async fn every_argument_reaches_the_gateway() {
    let gateway = Gateway::start(script(vec![ended(
        "r1n07",
        0,
        Phase::Normal,
        outcome(OutcomeKind::DryRun, Reason::Unspecified, ""),
    )]))
    .await;
    let ran = ask(
        &gateway,
        "fence r1n07 --reason fire --holder ops --until confirmed --then power-on --minimum-grade observed \
         --deadline 90s --not-after 30s --generation 6 --dry-run --override-budget storm --override-quorum known \
         --key night-7",
    )
    .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = gateway.script().fenced[0].clone();
    assert!(asked.not_after.is_some());
    let aside = |reason: &str| Some(LimitOverride { reason: reason.to_owned() });
    assert_eq!(
        FenceRequest { not_after: None, ..asked },
        FenceRequest {
            node: Some(NodeSelector { by: Some(node_selector::By::Name("r1n07".to_owned())) }),
            reason: "fire".to_owned(),
            idempotency_key: "night-7".to_owned(),
            holder: "ops".to_owned(),
            until: FenceUntil::Confirmed.into(),
            then: FenceThen::PowerOn.into(),
            minimum_grade: Grade::Observed.into(),
            deadline: Some(prost_types::Duration { seconds: 90, nanos: 0 }),
            not_after: None,
            expected_generation: Some(6),
            dry_run: true,
            override_budget: aside("storm"),
            override_quorum: aside("known"),
            queue: None,
            kubernetes_node: None,
        }
    );
}

#[tokio::test]
async fn a_request_waits_in_the_queue_where_it_is_asked_to() {
    let waits = FenceUpdate {
        node: "r1n07".to_owned(),
        phase: Phase::Normal.into(),
        text: "waits in the queue as number 7: the fleet may have 1".to_owned(),
        wait: Some(Wait {
            what: "one of the fences at once".to_owned(),
            whose: "the fleet".to_owned(),
            until: None,
            otherwise: "blocked (expired)".to_owned(),
        }),
        ..Default::default()
    };
    let limit = Limit {
        name: "at_once".to_owned(),
        whose: "the fleet".to_owned(),
        allowed: 1,
        found: 1,
        retry_after: None,
    };
    let end = Outcome {
        limit: Some(limit),
        ..outcome(OutcomeKind::Blocked, Reason::Expired, "it waited until noon")
    };
    let updates = vec![waits, ended("r1n07", 0, Phase::Normal, end)];
    let gateway = Gateway::start(script(updates.clone())).await;
    let ran = ask(&gateway, "fence r1n07 --yes --queue=5m -o json").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["results"][0]["outcome"]["limit"]["whose"], "the fleet");
    assert_eq!(document["results"][0]["outcome"]["reason"], "expired");
    let wish = gateway.script().fenced[0].queue.expect("a wish");
    assert_eq!(wish.at_most.map(|time| time.seconds), Some(300));
    let gateway = Gateway::start(script(updates)).await;
    let ran = ask(&gateway, "fence r1n07 --yes --queue").await;
    let told = format!("{}{}", ran.out, ran.err);
    assert!(told.contains("waits in the queue as number 7") && told.contains("blocked (expired)"), "{ran:?}");
    assert_eq!(gateway.script().fenced[0].queue, Some(QueueWish { at_most: None }));
}

#[tokio::test]
async fn with_then_power_on_the_end_says_whether_it_comes_back() {
    for (phase, word) in [
        (Phase::Unfencing, "it is being powered on again, and is not to be taken for off"),
        (Phase::Released, "it stays off: others hold it still"),
    ] {
        let done = Outcome { released: true, ..outcome(OutcomeKind::Fenced, Reason::Unspecified, "") };
        let gateway = Gateway::start(script(vec![ended("r1n07", 7, phase, done)])).await;
        let ran = ask(&gateway, "fence r1n07 --yes --then power-on").await;
        assert!(ran.code == 0 && ran.out.contains(word), "{ran:?}");
    }
}

#[tokio::test]
async fn a_dry_run_of_a_fenced_node_ends_as_its_plan_does() {
    let already = outcome(OutcomeKind::AlreadyFenced, Reason::Unspecified, "proven off");
    let gateway = Gateway::start(script(vec![ended("r1n07", 0, Phase::Fenced, already.clone())])).await;
    gateway.script().plans = vec![PlanFenceResponse {
        node: "r1n07".to_owned(),
        phase: Phase::Fenced.into(),
        outcome: Some(already),
        ..Default::default()
    }];
    let (dry, plan) = (ask(&gateway, "fence r1n07 --dry-run").await, ask(&gateway, "plan r1n07").await);
    assert_eq!((dry.code, plan.code), (0, 0), "{dry:?} {plan:?}");
}

#[tokio::test]
async fn blocked_is_3() {
    let ran = end(Phase::Normal, OutcomeKind::Blocked, Reason::Budget, "1 of 1 fences at once: r1n02").await;
    assert_eq!(ran.code, 3);
    assert!(ran.out.contains("why   blocked (budget): 1 of 1 fences at once: r1n02"), "{}", ran.out);
}

#[tokio::test]
async fn needs_operator_is_4_and_says_what_next() {
    let ran =
        end(Phase::NeedsOperator, OutcomeKind::NeedsOperator, Reason::Contradiction, "bmc off, xcc on").await;
    assert_eq!(ran.code, 4);
    golden("needs_operator.txt", &ran.out);
}

#[tokio::test]
async fn a_fence_of_which_no_off_was_taken_claims_no_hold_and_proposes_no_release_that_is_not_there() {
    let update = |open_releases| FenceUpdate {
        off_sent: Some(false),
        open_releases,
        ..ended(
            "r1n07",
            5,
            Phase::NeedsOperator,
            outcome(OutcomeKind::NeedsOperator, Reason::LevelsSpent, "the BMC refuses the login"),
        )
    };
    let gateway = Gateway::start(script(vec![update(Vec::new())])).await;
    let ran = ask(&gateway, "fence r1n07 --yes").await;
    assert!(ran.out.contains("now   no device took an off: this fence has switched nothing"), "{}", ran.out);
    assert!(!ran.out.contains("abandon") && ran.out.contains("picket stand-down r1n07"), "{}", ran.out);
    let open = Release { name: "storage".to_owned(), ..Release::default() };
    let gateway = Gateway::start(script(vec![update(vec![open])])).await;
    let ran = ask(&gateway, "fence r1n07 --yes").await;
    // What was never begun is in the way of a retirement alone.
    assert_eq!(ran.out.matches("picket abandon r1n07 storage").count(), 1, "{}", ran.out);
}

#[tokio::test]
async fn other_outcomes_have_their_codes_and_none_is_0() {
    for (kind, code) in [
        (OutcomeKind::Superseded, 8),
        (OutcomeKind::StoodDown, 8),
        (OutcomeKind::AbortedRecovered, 9),
        (OutcomeKind::Unspecified, 1),
        // FENCED, but the caller asked until RELEASED.
        (OutcomeKind::Fenced, 1),
    ] {
        let ran = end(Phase::Normal, kind, Reason::Unspecified, "").await;
        assert_eq!(ran.code, code, "{kind:?}: {}", ran.out);
    }
}

#[tokio::test]
async fn confirmed_says_that_nothing_is_released() {
    let confirmed = FenceUpdate {
        evidence: Some(evidence()),
        ..ended("r1n07", 5, Phase::Fenced, outcome(OutcomeKind::Fenced, Reason::Unspecified, ""))
    };
    let gateway = Gateway::start(script(vec![confirmed])).await;
    let ran = ask(&gateway, "fence r1n07 --yes --until confirmed").await;
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("NOT let go") && ran.out.contains("releases go on"), "{}", ran.out);
}

#[tokio::test]
async fn an_unknown_node_is_6_with_names_like_it_and_nothing_is_sent() {
    let gateway = Gateway::start(script(good_fence("r1n07"))).await;
    let ran = ask(&gateway, "fence r1n07,r1n1 --yes").await;
    assert_eq!((ran.code, ran.out.as_str()), (6, ""));
    assert_eq!(ran.err, "picket: there is no node \"r1n1\"\n        did you mean r1n01, r1n10?\n");
    assert_eq!(gateway.script().fenced, []);
}

#[tokio::test]
async fn what_the_gateway_refuses_is_told_once_with_its_details() {
    let mut details = ErrorDetails::new();
    details.set_error_info(
        ErrorReason::RoleMissing.word(),
        picket_proto::DOMAIN,
        [("caller".to_owned(), "uid 1000".to_owned()), ("role".to_owned(), "fencer".to_owned())],
    );
    let denied = Status::with_error_details(Code::PermissionDenied, "uid 1000 may not fence r1n07", details);
    for (status, code, words) in [
        (denied, 7, "the role fencer would do"),
        (unknown_node("r1n07", "r1n70"), 6, "did you mean r1n70?"),
        (Status::failed_precondition("it is in generation 9, not 6"), 8, "generation 9"),
    ] {
        let mut script = script(Vec::new());
        script.streams.insert("r1n07".to_owned(), [vec![Step::Fail(status)]].into());
        let gateway = Gateway::start(script).await;
        let ran = ask(&gateway, "fence r1n07 --yes").await;
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(ran.out.matches(words).count(), 1, "{ran:?}");
        assert!(ran.out.contains("why   refused: "), "{ran:?}");
        assert_eq!(gateway.script().fenced.len(), 1, "what is refused is not asked again");
    }
}

#[tokio::test]
async fn what_a_device_says_cannot_command_the_terminal() {
    let nasty = update("r1n07", 1, Phase::Fencing, "bmc says \x1b]0;owned\x07\x1b[2J");
    let blocked = outcome(OutcomeKind::Blocked, Reason::Budget, "\x1b[31m");
    let gateway = Gateway::start(script(vec![nasty, ended("r1n07", 2, Phase::Normal, blocked)])).await;
    let ran = ask(&gateway, "fence r1n07 --yes").await;
    assert!(!ran.out.contains(['\x1b', '\x07']), "{:?}", ran.out);
}

#[tokio::test]
async fn what_waits_in_the_queue_when_the_time_is_over_is_not_told_as_a_fence() {
    let steps = || {
        let wait = Wait { what: "one of the fences at once".to_owned(), ..Default::default() };
        let waits = FenceUpdate {
            fence_id: String::new(),
            wait: Some(wait),
            ..update("r1n07", 0, Phase::Normal, "waits in the queue as number 1")
        };
        vec![Step::Say(waits), Step::Rest(Duration::from_secs(600))]
    };
    // Whoever waits for another holder is told how that one is withdrawn: an unfence for oneself would end nothing.
    'one: for (holder, withdrawn) in [("", "r1n07"), (" --holder web", "r1n07 --holder web")] {
        let mut told = Vec::new();
        // How far it comes in that time is the machine's matter.
        for time in ["400ms", "4s", "20s"] {
            let streams = [("r1n07".to_owned(), [steps()].into())].into();
            let script = Script { nodes: vec![node("r1n07")], streams, ..Default::default() };
            let line = format!("fence r1n07{holder} --queue --yes --timeout {time}");
            let ran = ask(&Gateway::start(script).await, &line).await;
            assert_eq!(ran.code, 10, "{ran:?}");
            let withdraws = ran.out.contains(&format!("to withdraw it: picket unfence {withdrawn}"));
            if ran.out.contains("; it waits in the queue") && withdraws {
                continue 'one;
            }
            told.push(ran.out);
        }
        panic!("what waits, and how it is withdrawn: {told:?}");
    }
}
