//! The exits for people, unfence, and the question before harm.

use crate::common::ask;
use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{ended, good_fence, node, outcome, troubled};
use picket_proto::v1::*;
use tonic::Status;

fn script(end: Option<FenceUpdate>) -> Script {
    let streams = end.map(|end| ("r1n07".to_owned(), [vec![Step::Say(end)]].into()));
    Script {
        nodes: vec![troubled("r1n07"), node("r1n08")],
        streams: streams.into_iter().collect(),
        ..Default::default()
    }
}

fn end(phase: Phase, kind: OutcomeKind) -> Option<FenceUpdate> {
    Some(ended("r1n07", 12, phase, outcome(kind, Reason::Unspecified, "")))
}

#[tokio::test]
async fn without_a_terminal_and_without_yes_nothing_is_sent() {
    let gateway = Gateway::start(script(good_fence("r1n07").pop())).await;
    for line in [
        "fence r1n07",
        "retry r1n07",
        "stand-down r1n07 --reason alive",
        "abandon r1n07 storage --reason known",
    ] {
        let ran = ask(&gateway, line).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{line}: {ran:?}");
        assert!(ran.err.contains("r1n07") && ran.err.contains("say --yes"), "{}", ran.err);
    }
    let script = gateway.script();
    assert_eq!(
        (script.fenced.len(), script.retried.len(), script.stood_down.len(), script.abandoned.len()),
        (0, 0, 0, 0)
    );
}

#[tokio::test]
async fn a_dry_run_asks_nobody() {
    let gateway = Gateway::start(script(end(Phase::Normal, OutcomeKind::DryRun))).await;
    let ran = ask(&gateway, "fence r1n07 --dry-run").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(gateway.script().fenced[0].dry_run);
}

#[tokio::test]
async fn unfence_ends_with_the_node_back_or_with_others_that_hold_it() {
    for (kind, code, words) in [
        (OutcomeKind::Unfenced, 0, "unfenced: it is back"),
        (OutcomeKind::StillHeld, 3, "others still keep it off"),
        (OutcomeKind::PowerOnFailed, 4, "power on failed"),
    ] {
        let gateway = Gateway::start(script(end(Phase::Normal, kind))).await;
        let ran = ask(&gateway, "unfence r1n07 --holder ops --generation 7").await;
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.out.contains(words), "{}", ran.out);
        let asked = gateway.script().unfenced[0].clone();
        assert_eq!((asked.holder.as_str(), asked.expected_generation), ("ops", Some(7)));
    }
}

#[tokio::test]
async fn a_generation_is_of_one_node() {
    let gateway = Gateway::start(script(None)).await;
    for line in ["fence r1n07,r1n08 --generation 7 --yes", "unfence r1n07,r1n08 --generation 7"] {
        let ran = ask(&gateway, line).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("one node"), "{}", ran.err);
    }
}

#[tokio::test]
async fn retry_and_stand_down_are_of_the_generation_that_was_seen() {
    let gateway = Gateway::start(script(end(Phase::Released, OutcomeKind::AlreadyFenced))).await;
    assert_eq!(ask(&gateway, "retry r1n07 --yes --deadline 2m").await.code, 0);
    let asked = gateway.script().retried[0].clone();
    assert_eq!((asked.expected_generation, asked.deadline.map(|d| d.seconds)), (Some(7), Some(120)));

    let gateway = Gateway::start(script(end(Phase::Normal, OutcomeKind::StoodDown))).await;
    assert_eq!(ask(&gateway, "stand-down r1n07 --yes --reason alive").await.code, 0);
    let asked = gateway.script().stood_down[0].clone();
    assert_eq!((asked.expected_generation, asked.reason.as_str()), (Some(7), "alive"));
}

#[tokio::test]
async fn abandoning_is_told_node_by_node() {
    let gateway = Gateway::start(script(None)).await;
    let ran = ask(&gateway, "abandon r1n07 storage --reason known --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, "r1n07  release storage abandoned; the node is needs operator (release deadline)\n");
    let asked = gateway.script().abandoned[0].clone();
    assert_eq!((asked.release.as_str(), asked.expected_generation), ("storage", Some(7)));

    let ran = ask(&gateway, "abandon r1n07 detach --reason known --yes").await;
    assert!(ran.out.contains("release detach is not given up yet: its attempts have ended"), "{ran:?}");

    gateway.script().abandon = Some(Status::not_found("there is no release \"strage\""));
    let ran = ask(&gateway, "abandon r1n07,r1n08 strage --reason known --yes -o json").await;
    assert_eq!(ran.code, 6, "{ran:?}");
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["results"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["results"][1]["error"]["code"], "not_found");
}
