//! Pauses and plans.

use crate::common::gateway::{Gateway, Script};
use crate::common::make::{node, outcome};
use crate::common::{ask, golden};
use picket_proto::v1::*;
use tonic::Status;

fn script() -> Script {
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let step = |action: PlanAction, level, target: &str, text: &str, at_most| PlanStep {
        action: action.into(),
        level,
        target: target.to_owned(),
        text: text.to_owned(),
        at_most,
        ..Default::default()
    };
    let look = step(PlanAction::LastLook, 0, "", "asks again", None);
    let off = step(PlanAction::Off, 1, "bmc", "switches the node off, hard", seconds(5));
    let confirm = PlanStep {
        grade: Grade::Observed.into(),
        ..step(PlanAction::Confirm, 1, "", "reads until Off is proven by bmc", seconds(180))
    };
    let pdu = PlanStep {
        obstacles: vec!["timed out: no answer".to_owned()],
        ..step(PlanAction::Off, 2, "pdu-a", "switches the outlet off", seconds(5))
    };
    let begins = PlanFenceResponse {
        node: "r1n07".to_owned(),
        generation: 7,
        phase: Phase::Normal.into(),
        steps: vec![look, off, confirm, pdu],
        outcome: Some(outcome(OutcomeKind::DryRun, Reason::Unspecified, "")),
    };
    let limit = Limit {
        name: "at_once".to_owned(),
        whose: "the fleet".to_owned(),
        allowed: 1,
        found: 1,
        retry_after: None,
    };
    let blocked =
        outcome(OutcomeKind::Blocked, Reason::Budget, "the fleet may have 1 of its 8 nodes fenced at once");
    let blocked = PlanFenceResponse {
        node: "r1n08".to_owned(),
        outcome: Some(Outcome { limit: Some(limit), ..blocked }),
        ..PlanFenceResponse { steps: Vec::new(), ..begins.clone() }
    };
    Script { nodes: vec![node("r1n07"), node("r1n08")], plans: vec![begins, blocked], ..Default::default() }
}

#[tokio::test]
async fn a_plan_is_told_step_by_step_and_asks_nobody() {
    let gateway = Gateway::start(script()).await;
    let ran = ask(&gateway, "plan r1n07,r1n08 --then power-on --override-budget storm").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    golden("plan.txt", &ran.out);
    let asked = gateway.script().fenced[0].clone();
    assert_eq!(asked.then, i32::from(FenceThen::PowerOn));
    assert_eq!(asked.override_budget.map(|aside| aside.reason).as_deref(), Some("storm"));
    let ran = ask(&gateway, "plan r1n07 -o json").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    golden("plan.json", &ran.out);
}

#[tokio::test]
async fn a_pause_is_of_everything_of_a_group_or_of_each_node() {
    let gateway = Gateway::start(script()).await;
    let ran = ask(&gateway, "pause r1n07,r1n08 --for 2h --reason switch").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("paused: node r1n08, until 2026-"), "{}", ran.out);
    let ran = ask(&gateway, "pause --group rack=r1 --for 2h --reason switch -o json").await;
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["results"][0]["pause"]["scope"], "group rack=r1");
    let ran = ask(&gateway, "resume --everything --reason done").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "resumed: everything\n"));
    let asked = gateway.script().paused.clone();
    assert_eq!(asked.len(), 4);
    assert_eq!((asked[0].1.as_str(), asked[0].2), ("switch", Some(7_200)));
    assert_eq!(asked[3].0, Some(PauseScope { of: Some(pause_scope::Of::Everything(true)) }));

    gateway.script().abandon = Some(Status::not_found("group rack=r2 is not paused: nothing is paused"));
    let ran = ask(&gateway, "resume --group rack=r2 --reason done").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.out.contains("group rack=r2 refused"), "{}", ran.out);
}
