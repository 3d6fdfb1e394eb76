//! Drain, backup, and nodes of a restored store.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::gateway::{Gateway, Script};
use crate::common::make::{at, node, span, troubled};
use crate::common::{Ran, ask, golden};
use picket_proto::v1::backup_response::Piece;
use picket_proto::v1::*;

/// A backup of two lines.
pub fn pieces(end: Option<u64>) -> Vec<BackupResponse> {
    let about = BackupAbout {
        incarnation: "01990000-0000-7000-8000-0000000000aa".to_owned(),
        nodes: 3,
        fences: 2,
        ..Default::default()
    };
    let lines = |text: &str| Piece::Lines(text.as_bytes().to_vec());
    let end = end.map(|bytes| Piece::End(BackupEnd { bytes }));
    let all = [Piece::About(about), lines("one\n"), lines("two\n")].into_iter().chain(end);
    all.map(|piece| BackupResponse { piece: Some(piece) }).collect()
}

async fn backup(end: Option<u64>, more: &str) -> (Ran, tempfile::TempDir, PathBuf) {
    let gateway = Gateway::start(Script { backup: pieces(end), ..Default::default() }).await;
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("picket.backup");
    let ran = ask(&gateway, &format!("backup {} {more}", file.display())).await;
    (ran, home, file)
}

#[tokio::test]
async fn a_backup_is_there_whole_and_for_its_owner_alone() {
    let (ran, home, file) = backup(Some(8), "").await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert_eq!(std::fs::read(&file).expect("it is there"), b"one\ntwo\n");
    let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (again, _home, other) = backup(Some(8), "-o json").await;
    let words = ran.out.replace(&file.display().to_string(), "FILE");
    let document = again.out.replace(&other.display().to_string(), "FILE");
    golden("backup.txt", &format!("{words}\n{document}"));
    drop(home);
}

#[tokio::test]
async fn what_did_not_come_whole_is_taken_away_again() {
    for (end, words) in [(None, "ended before its end"), (Some(9), "another length than its end says")] {
        let (ran, _home, file) = backup(end, "").await;
        assert!(ran.code != 0 && ran.err.contains(words), "{ran:?}");
        assert!(!file.exists(), "{words}");
    }
}

#[tokio::test]
async fn no_file_is_overwritten_and_a_place_that_is_none_is_told() {
    let gateway = Gateway::start(Script { backup: pieces(Some(8)), ..Default::default() }).await;
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("kept");
    std::fs::write(&file, "mine").expect("written");
    let ran = ask(&gateway, &format!("backup {}", file.display())).await;
    assert!(ran.code == 2 && ran.err.contains("no backup is overwritten: name another file"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");
    let nowhere = home.path().join("no/such/directory");
    let ran = ask(&gateway, &format!("backup {}", nowhere.display())).await;
    assert!(ran.code == 2 && ran.err.contains("cannot make "), "{ran:?}");
}

fn fencing(name: &str) -> Node {
    Node { phase: Phase::Fencing.into(), ..node(name) }
}

/// It is off since a restore.
fn kept_off(name: &str) -> Node {
    let hold = Hold {
        holder: "restored".to_owned(),
        reason: "the store was restored from a backup of 2026-11-20T08:00:00Z".to_owned(),
        by: "gateway".to_owned(),
        since: at(1, 0),
        ..Default::default()
    };
    Node {
        phase: Phase::Fenced.into(),
        power: Some(NodePower { power: Power::Off.into(), asked_at: at(700, 0), age: span(4, 0) }),
        holds: vec![hold],
        releases: Vec::new(),
        wait: Some(Wait {
            what: "the hold restored to be dropped, or a fence".to_owned(),
            whose: "an admin".to_owned(),
            ..Default::default()
        }),
        ..node(name)
    }
}

/// The backup says that it was kept off.
fn doubtful(name: &str, power: Power) -> Node {
    Node {
        phase: Phase::NeedsOperator.into(),
        reason: Reason::Restored.into(),
        power: Some(NodePower { power: power.into(), asked_at: at(700, 0), age: span(4, 0) }),
        ..node(name)
    }
}

#[tokio::test]
async fn a_drain_waits_until_nothing_is_under_way_and_leaves_the_pause() {
    let nodes = vec![fencing("r1n01"), node("r1n02"), kept_off("r1n03"), troubled("r1n07")];
    let gateway = Gateway::start(Script { nodes, ..Default::default() }).await;
    let draining = ask(&gateway, "drain --reason move --for 2h");
    let ends = async {
        // What it waits for ends once it was seen to wait.
        while gateway.script().listed.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        gateway.script().nodes[0].phase = Phase::Released.into();
    };
    let (ran, ()) = tokio::join!(draining, ends);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("drained: no fence is under way, and none starts"), "{}", ran.out);
    assert!(ran.err.contains("waiting: r1n01 is fencing\n"), "only that one is under way: {}", ran.err);
    let everything = PauseScope { of: Some(pause_scope::Of::Everything(true)) };
    assert_eq!(gateway.script().paused, [(Some(everything), "move".to_owned(), Some(7_200))]);
}

#[tokio::test]
async fn a_drain_that_takes_too_long_says_what_is_under_way() {
    let nodes = vec![fencing("r1n01"), Node { phase: Phase::Unfencing.into(), ..node("r1n02") }];
    let gateway = Gateway::start(Script { nodes, ..Default::default() }).await;
    let paused = || gateway.script().paused.len();
    // What it has seen by then is the machine's matter.
    let mut told = String::new();
    for time in ["1s", "5s", "20s"] {
        let ran = ask(&gateway, &format!("drain --reason move --timeout {time}")).await;
        assert_eq!((ran.code, ran.out.as_str()), (10, ""), "{ran:?}");
        told = ran.err;
        if told.contains("waiting: r1n01 is fencing, r1n02 is unfencing") && paused() > 0 {
            break;
        }
    }
    assert!(told.contains("waiting: r1n01 is fencing, r1n02 is unfencing"), "{told}");
    let before = paused();
    let mut document = serde_json::Value::Null;
    for time in ["1s", "5s", "20s"] {
        let ran = ask(&gateway, &format!("drain --reason move --timeout {time} -o json")).await;
        document = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!((ran.code, &document["drained"]), (10, &false.into()));
        if document["nodes"] == serde_json::json!(["r1n01", "r1n02"]) {
            break;
        }
    }
    assert_eq!(document["nodes"], serde_json::json!(["r1n01", "r1n02"]));
    assert!(before > 0 && paused() > before, "the pause stays");
    assert_eq!(ask(&gateway, "drain").await.code, 2, "a reason is wanted");
}

#[tokio::test]
async fn nodes_of_a_restored_store_say_what_to_do_next() {
    let proven = Node { proven: true, ..kept_off("r1n05") };
    let nodes =
        vec![kept_off("r1n01"), doubtful("r1n02", Power::On), doubtful("r1n03", Power::Unknown), proven];
    let gateway = Gateway::start(Script { nodes, ..Default::default() }).await;
    let detail = ask(&gateway, "status r1n01,r1n02,r1n03,r1n05").await;
    let list = ask(&gateway, "nodes").await;
    assert_eq!((detail.code, list.code), (0, 0), "{detail:?}");
    assert_eq!(
        detail.out.matches("\n  next ").count(),
        3,
        "of what was proven anew it says nothing: {}",
        detail.out
    );
    golden("restored.txt", &format!("{}\n{}", list.out, detail.out));
}
