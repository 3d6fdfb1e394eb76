//! Following changes.

use crate::common::ask;
use crate::common::gateway::{Gateway, Script, Watched};
use crate::common::make::{node, troubled};
use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::*;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

fn told(revision: &str, event: Event) -> Watched {
    Ok(WatchNodesResponse { revision: revision.to_owned(), event: Some(event) })
}

fn last_word() -> Watched {
    Err(Status::permission_denied("that was all"))
}

fn gone() -> Watched {
    let mut details = ErrorDetails::new();
    details.set_error_info(ErrorReason::RevisionGone.word(), picket_proto::DOMAIN, []);
    Err(Status::with_error_details(Code::OutOfRange, "changes since life/5 are no longer kept", details))
}

async fn watch(line: &str, watches: Vec<Vec<Watched>>) -> (crate::common::Ran, Vec<String>) {
    let gateway = Gateway::start(Script { watches: watches.into(), ..Default::default() }).await;
    let ran = ask(&gateway, line).await;
    let asked = gateway.script().watched.iter().map(|request| request.revision.clone()).collect();
    (ran, asked)
}

#[tokio::test]
async fn changes_are_told_a_line_each_and_a_break_is_gone_on_from() {
    let (ran, asked) = watch(
        "watch",
        vec![
            vec![
                told("life/3", Event::Node(node("r1n01"))),
                told("life/3", Event::Synced(WatchSynced::default())),
                told("life/4", Event::Node(troubled("r1n07"))),
                Err(Status::unavailable("gone")),
            ],
            vec![told("life/5", Event::Removed("r1n01".to_owned())), last_word()],
        ],
    )
    .await;
    assert_eq!(asked, ["", "life/4"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    let lines: Vec<&str> =
        ran.out.lines().map(|line| line.split_once(' ').map_or("", |(_, rest)| rest)).collect();
    assert_eq!(
        lines,
        [
            "r1n01  normal, power on",
            "r1n07  needs operator (release deadline), power off, NOT PROVEN: release storage did not complete in time; \
             waits for an operator",
            "r1n01  removed from the settings",
        ]
    );
    assert!(ran.err.contains("connection lost (gone); trying again in 0.2 s"), "{}", ran.err);
}

#[tokio::test]
async fn a_revision_that_is_gone_begins_with_the_present_again() {
    let (ran, asked) = watch(
        "watch",
        vec![
            vec![told("life/5", Event::Node(node("r1n01"))), Err(Status::unavailable("gone"))],
            vec![gone()],
            vec![told("new/1", Event::Node(node("r1n01"))), last_word()],
        ],
    )
    .await;
    assert_eq!(asked, ["", "life/5", ""]);
    assert_eq!(ran.out.lines().count(), 2, "{ran:?}");
    assert!(ran.err.contains("telling the present again"), "{}", ran.err);
}

#[tokio::test]
async fn a_revision_of_the_callers_own_that_is_gone_is_an_error() {
    let (ran, asked) = watch("watch --revision life/5", vec![vec![gone()]]).await;
    assert_eq!(asked, ["life/5"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("no longer kept"), "{}", ran.err);
}

#[tokio::test]
async fn with_json_each_change_is_a_line_and_with_yaml_a_document() {
    let changes = || {
        vec![vec![
            told("life/3", Event::Node(node("r1n01"))),
            told("life/3", Event::Synced(WatchSynced::default())),
            told("life/4", Event::Removed("r1n01".to_owned())),
            last_word(),
        ]]
    };
    let (ran, _) = watch("watch -o json", changes()).await;
    let lines: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // The last says why it ended.
    assert_eq!((lines.len(), &lines[3]["exit_code"]), (4, &ran.code.into()));
    assert!(lines[3]["error"]["message"].is_string(), "{}", ran.out);
    assert_eq!((&lines[0]["node"]["name"], &lines[0]["revision"]), (&"r1n01".into(), &"life/3".into()));
    assert_eq!((&lines[1]["synced"], &lines[2]["removed"]), (&true.into(), &"r1n01".into()));
    let (ran, _) = watch("watch -o yaml", changes()).await;
    assert_eq!(ran.out.matches("\n---\n").count(), 3, "{}", ran.out);
}

#[tokio::test]
async fn it_lasts_as_long_as_asked_for() {
    let present = vec![told("life/3", Event::Node(node("r1n01"))), Err(Status::unavailable("gone"))];
    let (ran, asked) = watch("watch --timeout 1s", vec![present]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    // How far it came by then is the machine's matter.
    assert!(asked.iter().skip(1).all(|revision| revision == "life/3"), "{asked:?}");
    assert!(ran.out.lines().count() <= 1, "{ran:?}");
}
