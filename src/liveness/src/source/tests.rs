//! Sources against real programs and a real server: what is taken for recovered, and all that is not.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

fn read(kind: &str, table: Value) -> Result<Source, Vec<SettingFault>> {
    Source::read(kind, table.as_object().expect("a table"))
}

fn of_n1(source: &Source) -> Arc<dyn Liveness> {
    let labels = BTreeMap::from([("rack".to_owned(), "r1".to_owned())]);
    source.of(&NodeId::new("n1").expect("a good name"), None, &labels).expect("a source")
}

fn script(home: &TempDir, text: &str) -> PathBuf {
    let path = home.path().join("alive");
    std::fs::write(&path, format!("#!/bin/sh\ncd {}\n{text}\n", home.path().display())).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("executable");
    path
}

async fn says(text: &str) -> Look {
    let home = tempfile::tempdir().expect("a directory");
    let program = script(&home, text);
    let table = json!({"program": program, "interval": "50ms", "timeout": "5s"});
    of_n1(&read("command", table).expect("right")).look().await
}

fn runs(home: &Path) -> usize {
    std::fs::read_to_string(home.join("told")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_program_says_it_by_its_exit_code_as_often_as_is_asked_for() {
    let home = tempfile::tempdir().expect("a directory");
    let program = script(&home, "cat >> told; echo \"$1\" > args; env > env; echo it answers");
    let table = json!({"program": program, "args": ["--node={node}"], "interval": "50ms",
                       "timeout": "5s", "consecutive": 3});
    let look = of_n1(&read("command", table).expect("right")).look().await;
    assert!(matches!(&look, Look::Recovered(words) if words.contains("it answers")), "{look:?}");
    assert_eq!(runs(home.path()), 3, "three times in a row");
    let told = std::fs::read_to_string(home.path().join("told")).expect("told");
    let told: Value = serde_json::from_str(told.lines().next().expect("a line")).expect("JSON");
    assert_eq!(told, json!({"ask": "liveness", "node": "n1", "labels": {"rack": "r1"}}));
    assert_eq!(std::fs::read_to_string(home.path().join("args")).expect("args").trim(), "--node=n1");
    let env = std::fs::read_to_string(home.path().join("env")).expect("env");
    let shells = ["PATH=", "PWD=", "OLDPWD=", "SHLVL=", "_="];
    assert!(env.lines().all(|line| shells.iter().any(|own| line.starts_with(own))), "{env}");
}

#[tokio::test]
async fn only_zero_is_recovered_and_only_one_says_that_it_is_not() {
    let look = says("exit 1").await;
    assert!(matches!(look, Look::NotRecovered(_)), "{look:?}");
    for text in ["exit 2", "exit 126", "kill -9 $$", "echo gone >&2; exit 75"] {
        let look = says(text).await;
        assert!(matches!(look, Look::Unanswered(_)), "{text}: {look:?}");
    }
}

#[tokio::test]
async fn who_wavers_has_not_recovered() {
    let home = tempfile::tempdir().expect("a directory");
    let program = script(&home, "cat >> told; test $(wc -l < told) -ne 2");
    let table = json!({"program": program, "interval": "50ms", "timeout": "5s", "consecutive": 3});
    let look = of_n1(&read("command", table).expect("right")).look().await;
    assert!(matches!(look, Look::NotRecovered(_)), "{look:?}");
    assert_eq!(runs(home.path()), 2, "after a no it is not asked again");
}

/// Whether a process with that id is there and no corpse.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

#[tokio::test]
async fn a_program_that_hangs_is_killed_with_all_its_children_in_time() {
    let home = tempfile::tempdir().expect("a directory");
    let program = script(&home, "sleep 1000 & echo $! > child; echo $$ > own; wait");
    // On a busy machine it may be killed before it has begun: then it is given more time.
    for time in ["500ms", "5s"] {
        let table = json!({"program": program, "timeout": time, "interval": "50ms"});
        let look = of_n1(&read("command", table).expect("right")).look().await;
        assert!(matches!(look, Look::Unanswered(_)), "{look:?}");
        if home.path().join("own").exists() {
            break;
        }
    }
    for file in ["own", "child"] {
        let pid = std::fs::read_to_string(home.path().join(file)).expect("it began").trim().to_owned();
        let deadline = Instant::now() + Duration::from_secs(300);
        while lives(&pid) {
            assert!(Instant::now() < deadline, "{file} {pid} lives on");
            tokio::task::yield_now().await;
        }
    }
}

/// A server that gives these answers in turn, the last one for ever; an empty one is silence.
async fn server(answers: Vec<String>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://127.0.0.1:{}", listener.local_addr().expect("is bound").port());
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let nth = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let mut piece = [0; 4096];
            let _ = stream.read(&mut piece).await;
            let _ = stream.write_all(answers[nth].as_bytes()).await;
            if answers[nth].is_empty() {
                open.push(stream);
            }
        }
    });
    (origin, heard)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn asked(answers: &[String], more: Value) -> (Look, usize) {
    let (origin, heard) = server(answers.to_vec()).await;
    let mut table = json!({"url": format!("{origin}/{{node}}/healthz"), "interval": "50ms", "timeout": "5s"});
    for (key, value) in more.as_object().expect("a table") {
        table[key] = value.clone();
    }
    let look = of_n1(&read("http", table).expect("right")).look().await;
    (look, heard.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_probe_is_good_by_its_status_and_where_it_is_asked_for_by_its_text() {
    let (ok, none) = (answer("200 OK", "ok"), json!({}));
    let (look, heard) = asked(std::slice::from_ref(&ok), none.clone()).await;
    assert!(matches!(look, Look::Recovered(_)) && heard == 2, "{look:?} after {heard}");
    let (look, _) = asked(std::slice::from_ref(&ok), json!({"body": "ready"})).await;
    assert!(matches!(look, Look::NotRecovered(_)), "{look:?}");
    let (look, _) = asked(&[answer("200 OK", "ready: yes")], json!({"body": "ready: yes"})).await;
    assert!(matches!(look, Look::Recovered(_)), "{look:?}");
    let (look, heard) = asked(&[ok, answer("503 Service Unavailable", "starting")], none).await;
    assert!(matches!(&look, Look::NotRecovered(words) if words.contains("503")), "{look:?}");
    assert_eq!(heard, 2);
}

#[tokio::test]
async fn what_is_no_answer_is_never_recovered() {
    let silence = String::new();
    let (look, _) = asked(&[silence], json!({"timeout": "300ms"})).await;
    assert!(matches!(look, Look::Unanswered(_)), "{look:?}");
    let (look, _) = asked(&["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nha".to_owned()], json!({})).await;
    assert!(matches!(look, Look::Unanswered(_)), "a torn answer: {look:?}");
    let (look, _) = asked(&["hello\r\n\r\n".to_owned()], json!({})).await;
    assert!(matches!(look, Look::Unanswered(_)), "{look:?}");
    let moved =
        "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            .to_owned();
    let (look, heard) = asked(&[moved, answer("200 OK", "ok")], json!({})).await;
    assert!(matches!(look, Look::NotRecovered(_)) && heard == 1, "no redirect is followed: {look:?}");
    let table = json!({"url": "http://127.0.0.1:1/", "timeout": "1s"});
    let look = of_n1(&read("http", table).expect("right")).look().await;
    assert!(matches!(look, Look::Unanswered(_)), "nobody there: {look:?}");
    // Yes, and then silence.
    let yes_and_silence = [answer("200 OK", "ok"), String::new()];
    let says_one = |look: &Look| matches!(look, Look::Unanswered(words) if words.contains("1 of 2"));
    let mut looks = Vec::new();
    // On a busy machine the yes may come too late as well: then it is given more time.
    for time in ["500ms", "2s", "5s"] {
        if !looks.iter().any(says_one) {
            looks.push(asked(&yes_and_silence, json!({ "timeout": time })).await.0);
        }
    }
    assert!(looks.iter().any(says_one), "{looks:?}");
}

#[test]
fn settings_that_cannot_be_right_are_told_all_at_once() {
    let faults = |kind: &str, table: Value| {
        let faults = read(kind, table).expect_err("wrong");
        faults.into_iter().map(|fault| format!("{}: {}", fault.key, fault.message)).collect::<Vec<_>>()
    };
    let told = faults("command", json!({"timeout": "9s", "consecutive": 0, "interval": "1ms", "colour": 1}));
    for word in ["timeout", "consecutive", "interval", "program: is missing", "colour: unknown"] {
        assert!(told.iter().any(|fault| fault.contains(word)), "{word} in {told:?}");
    }
    let told = faults("http", json!({"url": "http://n1.example/", "consecutive": 5, "interval": "1s"}));
    assert!(told.iter().any(|fault| fault.contains("expected https")), "{told:?}");
    assert!(told.iter().any(|fault| fault.contains("5 answers in a row")), "{told:?}");
    let told = faults("ping", json!({}));
    assert!(told[0].contains("known are command, http"), "{told:?}");
}
