//! Holds, attestation, retirement, exchanged boards, checks and drills.

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{bmc, ended, left_on, node, outcome, span, troubled};
use crate::common::{ask, golden, see};
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

fn end(phase: Phase, kind: OutcomeKind, released: bool) -> Option<FenceUpdate> {
    let outcome = Outcome { released, ..outcome(kind, Reason::Unspecified, "") };
    Some(ended("r1n07", 12, phase, outcome))
}

#[tokio::test]
async fn harm_is_asked_about_and_without_a_terminal_nothing_is_sent() {
    let gateway = Gateway::start(script(None)).await;
    for line in [
        "attest r1n07 --reason unplugged",
        "retire r1n07 --reason burned",
        "drill r1n07 --reason spring",
        "accept-identity r1n07 bmc --reason board",
    ] {
        let ran = ask(&gateway, line).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{line}: {ran:?}");
        assert!(ran.err.contains("r1n07") && ran.err.contains("say --yes"), "{}", ran.err);
    }
    let script = gateway.script();
    assert_eq!((script.attested.len(), script.drilled.len(), script.called.len()), (0, 0, 0));
}

#[tokio::test]
async fn holds_are_told_node_by_node() {
    let gateway = Gateway::start(script(None)).await;
    let ran = ask(&gateway, "hold r1n07 --reason disks --holder ops --generation 7").await;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "r1n07  held; the node is needs operator (release deadline)\n")
    );
    let ran = ask(&gateway, "unhold r1n07,r1n08 --reason done -o json").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["results"][1]["phase"], "normal");
    let calls = ["r1n07: hold \"ops\" Some(7)", "r1n07: drop \"\" None", "r1n08: drop \"\" None"];
    assert_eq!(gateway.script().called, calls);
    gateway.script().refusal = Some(Status::permission_denied("not yours"));
    let ran = ask(&gateway, "unhold r1n07 --reason done --holder db").await;
    assert_eq!((ran.code, ran.out.as_str()), (7, "r1n07  refused: not yours\n"));
    assert_eq!(ask(&gateway, "hold r1n07").await.code, 2, "a reason is wanted");
    assert_eq!(ask(&gateway, "hold r1n07,r1n08 --reason x --generation 7").await.code, 2);
}

#[tokio::test]
async fn who_vouches_sees_what_the_devices_say_and_vouches_for_that_generation() {
    let gateway = Gateway::start(script(end(Phase::Released, OutcomeKind::Fenced, true))).await;
    let ran = ask(&gateway, "attest r1n07 --reason unplugged --yes --key k").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("r1n07  bmc: "), "{}", ran.err);
    assert!(gateway.script().listed[0].fresh, "they are asked now");
    let asked = gateway.script().attested[0].clone();
    assert_eq!((asked.expected_generation, asked.reason.as_str()), (Some(7), "unplugged"));
    assert_eq!(asked.idempotency_key, "k");
    let gateway = Gateway::start(script_of_fenced()).await;
    assert_eq!(ask(&gateway, "attest r1n07 --reason unplugged --yes").await.code, 1, "not released");
}

#[tokio::test]
async fn who_may_only_vouch_vouches_for_one_node_unseen_and_is_told_so() {
    let gateway = Gateway::start(script(end(Phase::Released, OutcomeKind::Fenced, true))).await;
    gateway.script().unlisted = Some(Status::permission_denied("ListNodes needs the role viewer"));
    for hosts in ["r1n07,r1n08", "r1n07 r1n08", "r1n[07-08]"] {
        let ran = ask(&gateway, &format!("attest {hosts} --reason unplugged --yes")).await;
        assert_eq!(ran.code, 7, "{hosts}: {ran:?}");
        assert!(ran.err.contains("role viewer; without it vouch for one node"), "{}", ran.err);
    }
    assert_eq!(
        ask(&gateway, "attest r1n07 --reason unplugged").await.code,
        2,
        "it is asked about all the same"
    );
    assert_eq!(gateway.script().attested, []);
    let ran = ask(&gateway, "attest r1n07 --reason unplugged --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("r1n07: you may not look at it"), "{}", ran.err);
    let asked = gateway.script().attested[0].clone();
    assert_eq!((asked.expected_generation, asked.reason.as_str()), (None, "unplugged"));
}

fn script_of_fenced() -> Script {
    script(end(Phase::Fenced, OutcomeKind::Fenced, false))
}

#[tokio::test]
async fn who_retires_or_accepts_names_what_they_saw() {
    let gateway = Gateway::start(script(None)).await;
    let ran = ask(&gateway, "retire r1n07 --reason burned --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("r1n07  retired; "), "{}", ran.out);
    let uuid = "00112233-4455-6677-8899-aabbccddeeff";
    let ran = ask(&gateway, &format!("accept-identity r1n07 bmc --reason board --uuid {uuid}")).await;
    assert_eq!(ran.code, 0, "whoever says which one is not asked: {ran:?}");
    let calls = ["r1n07: retire \"burned\" Some(7)".to_owned(), format!("r1n07: accept bmc {uuid:?}")];
    assert_eq!(gateway.script().called, calls);
    gateway.script().refusal = Some(Status::failed_precondition("it does not say"));
    let ran = ask(&gateway, "accept-identity r1n07 bmc --reason board --yes").await;
    assert_eq!(ran.code, 8, "{ran:?}");
}

fn told(node: &str, level: u32, readiness: Readiness, left: u32) -> CheckDevicesResponse {
    let problems = match readiness {
        Readiness::NotReady => vec![DeviceProblem {
            kind: DeviceProblemKind::Authentication.into(),
            text: "the password is wrong".to_owned(),
        }],
        _ => Vec::new(),
    };
    let id = if level == 1 { "bmc" } else { "pdu" }.to_owned();
    let device = Device { id, level, readiness: readiness.into(), problems, ..bmc() };
    CheckDevicesResponse { node: node.to_owned(), device: Some(device), took: span(0, 20), left }
}

#[tokio::test]
async fn a_check_says_which_nodes_could_be_fenced_now() {
    let checked = vec![
        told("r1n07", 1, Readiness::NotReady, 2),
        told("r1n07", 2, Readiness::Ready, 1),
        told("r1n08", 1, Readiness::NotReady, 0),
    ];
    let gateway = Gateway::start(Script { checked, ..script(None) }).await;
    let ran = ask(&gateway, "check").await;
    assert_eq!(ran.code, 1, "one could not: {ran:?}");
    assert!(ran.out.ends_with("Could be fenced now: 1 of 2\n  not: r1n08\n"), "{}", ran.out);
    let faults = ran.out.matches("authentication: the password is wrong").count();
    assert_eq!(faults, 1, "of both it is told once: {}", ran.out);
    assert!(
        ran.out.contains("authentication: the password is wrong\n    r1n07/bmc, r1n08/bmc\n"),
        "{}",
        ran.out
    );
    for (columns, name) in [(80, "check_80.txt"), (60, "check_60.txt")] {
        let (code, shown) = see(&gateway, "check", columns).await;
        assert!(code == 1 && !shown.contains("asking devices"), "{shown}");
        golden(name, &shown);
    }
    let ran = ask(&gateway, "check -o json").await;
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (&document["nodes"][0]["ready"], &document["nodes"][0]["could_be_fenced"]),
        (&1.into(), &true.into())
    );
    assert_eq!(document["nodes"][1]["devices"][0]["problems"][0]["kind"], "authentication");
    assert_eq!(document["could_be_fenced"], 1);
}

/// It answers, and has just shown that it switches nothing off.
#[tokio::test]
async fn a_device_that_ignored_the_last_off_is_not_ready_whatever_it_answers() {
    let checked = vec![told("r2n03", 1, Readiness::Ready, 1), told("r1n08", 1, Readiness::Ready, 0)];
    let nodes = vec![left_on("r2n03"), node("r1n08")];
    let gateway = Gateway::start(Script { checked, nodes, ..Script::default() }).await;
    let ran = ask(&gateway, "check").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let row = ran.out.lines().find(|line| line.starts_with("r2n03")).expect("its row");
    assert!(row.contains("not ready"), "{row}");
    assert!(ran.out.contains("  took an off and still reads on\n    r2n03/bmc\n"), "{}", ran.out);
    assert!(ran.out.find("r1n08") < ran.out.find("r2n03"), "in their order: {}", ran.out);
    assert!(ran.out.ends_with("Could be fenced now: 1 of 2\n  not: r2n03\n"), "{}", ran.out);
    let document: serde_json::Value =
        serde_json::from_str(&ask(&gateway, "check -o json").await.out).expect("JSON");
    assert_eq!((&document["could_be_fenced"], &document["nodes"][1]["ready"]), (&1.into(), &0.into()));
}

#[tokio::test]
async fn nobody_is_asked_about_a_device_that_is_not_there() {
    let gateway = Gateway::start(script(None)).await;
    let ran = ask(&gateway, "accept-identity r1n07 bnc --reason board --yes").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("r1n07 has no device \"bnc\"; it has: bmc"), "{ran:?}");
}

#[tokio::test]
async fn a_drill_tells_what_it_found() {
    let gateway = Gateway::start(script(end(Phase::Normal, OutcomeKind::Unfenced, false))).await;
    let ran = ask(&gateway, "drill --group rack=r1 --reason spring --yes --key k").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("off by bmc, and back"), "{}", ran.out);
    let asked = gateway.script().drilled[0].clone();
    assert_eq!(asked.target, Some(drill_request::Target::Group("rack=r1".to_owned())));
    let gateway = Gateway::start(script(end(Phase::Normal, OutcomeKind::DryRun, false))).await;
    let ran = ask(&gateway, "drill r1n07 --reason spring --dry-run -o json").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (&document["outcome"]["kind"], &document["findings"][0]),
        (&"dry_run".into(), &"off by bmc, and back".into())
    );
    let gateway = Gateway::start(script(end(Phase::NeedsOperator, OutcomeKind::NeedsOperator, false))).await;
    assert_eq!(ask(&gateway, "drill r1n07 --reason spring --yes").await.code, 4);
    assert_eq!(ask(&gateway, "drill --reason spring").await.code, 2);
}
