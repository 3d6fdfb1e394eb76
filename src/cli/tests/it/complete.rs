//! What a shell is told when somebody completes: words of the running gateway, in time, and nothing that is not a word.

use std::time::Instant;

use crate::common::gateway::{Gateway, Script};
use crate::common::make::{node, troubled};
use crate::common::terminal::Terminal;
use crate::common::{Ran, picket, run};

/// The words that are told at the end of `line`. Nobody waits for them for longer than a second, and a busy machine may need more: the best of some
/// counts.
async fn words(gateway: &str, line: &str) -> Ran {
    let mut ran = completed(gateway, line).await;
    for _ in 0..20 {
        if ran.out.is_empty() {
            ran = completed(gateway, line).await;
        }
    }
    ran
}

/// What the shell's function runs, at the end of `line`.
async fn completed(gateway: &str, line: &str) -> Ran {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = picket("--");
    command.args(&words).env("PICKET_COMPLETE", "bash").env("PICKET_ENDPOINT", gateway);
    command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string()).env("_CLAP_IFS", "\n");
    run(command).await
}

#[tokio::test]
async fn nodes_holders_devices_and_releases_come_from_the_running_gateway() {
    let nodes =
        ["r1n01", "r1n02", "r1n03", "r1n04"].map(node).into_iter().chain([troubled("r1n07")]).collect();
    let gateway = Gateway::start(Script { nodes, ..Script::default() }).await;
    for (line, wanted) in [
        ("picket fence r1n0", "r1n01\nr1n02\nr1n03\nr1n04\nr1n07"),
        ("picket fence r1n01 r1n07", "r1n07"),
        ("picket unfence r1n07 --holder a", "alice"),
        ("picket accept-identity r1n07 b", "bmc"),
        ("picket abandon r1n07 det", "detach"),
        ("picket stat", "status"),
    ] {
        let ran = words(&gateway.endpoint(), line).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, wanted, ""), "{line}");
    }
    let script = gateway.script();
    assert!(!script.listed.is_empty() && script.fenced.is_empty() && script.abandoned.is_empty());
}

#[tokio::test]
async fn another_endpoint_on_the_line_is_the_one_that_is_asked() {
    let gateway = Gateway::start(Script { nodes: vec![node("r1n01")], ..Script::default() }).await;
    let line = format!("picket --endpoint {} fence r", gateway.endpoint());
    let ran = words("unix:/nowhere/picket.sock", &line).await;
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("r1n01", ""), "{ran:?}");
}

/// Somebody has pressed a key, and waits.
#[tokio::test]
async fn where_no_gateway_answers_nothing_is_said_and_nobody_waits() {
    let absent = completed("unix:/nowhere/picket.sock", "picket fence r").await;
    assert_eq!((absent.out.as_str(), absent.err.as_str()), ("", ""), "{absent:?}");
    let bad = completed("nonsense", "picket fence r").await;
    assert_eq!((bad.out.as_str(), bad.err.as_str()), ("", ""), "{bad:?}");
    // It takes connections and says nothing: without a limit it would be waited for 10 s and longer.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", silent.local_addr().expect("bound"));
    let mut took = Vec::new();
    while took.len() < 5 && took.last().is_none_or(|took| *took >= 10) {
        let began = Instant::now();
        let ran = completed(&endpoint, "picket fence r").await;
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""), "{ran:?}");
        took.push(began.elapsed().as_secs());
    }
    assert!(took.iter().any(|took| *took < 10), "{took:?}");
}

/// Its lines are the shell's, which reads them as they are; whoever typed it hears how.
#[tokio::test]
async fn on_a_terminal_it_is_told_how_a_shell_reads_it() {
    for columns in [80, 60] {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let line = format!("completions {shell}");
            let piped = run(picket(&line)).await.out;
            let (code, shown) = Terminal::of(picket(&line), columns, 50).written().await;
            let shown = shown.replace('\r', "");
            let hint = shown.strip_prefix(&piped).unwrap_or_else(|| panic!("{shell}: {shown}"));
            assert!(code == 0 && hint.starts_with("\nThis is for the shell to read:"), "{shell}: {hint}");
            assert!(hint.contains(&format!("picket {line}")), "{shell}: {hint}");
            assert!(hint.lines().all(|line| line.len() <= usize::from(columns)), "{shell}: {hint}");
        }
    }
}

#[tokio::test]
async fn each_shell_has_a_script_that_asks_this_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(picket(&format!("completions {shell}"))).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.contains("PICKET_COMPLETE") && ran.out.contains("picket"), "{shell}: {}", ran.out);
    }
}
