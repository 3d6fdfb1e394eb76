//! On a terminal: live progress, colours, the question, Ctrl-C.

use std::time::Duration;

use rustix::process::Signal;

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{good_fence, node};
use crate::common::terminal::{Terminal, screen};
use crate::common::{golden, picket};

/// A fence whose phases can be seen.
fn slow(name: &str, rest: Duration) -> Vec<Step> {
    good_fence(name).into_iter().flat_map(|update| [Step::Say(update), Step::Rest(rest)]).collect()
}

async fn gateway(names: &[&str], rest: Duration) -> Gateway {
    Gateway::start(Script {
        nodes: names.iter().map(|name| node(name)).collect(),
        streams: names.iter().map(|name| ((*name).to_owned(), [slow(name, rest)].into())).collect(),
        ..Default::default()
    })
    .await
}

fn start(gateway: &Gateway, line: &str, variables: &[(&str, &str)]) -> Terminal {
    let mut command = picket(line);
    command.args(["--endpoint", &gateway.endpoint()]).envs(variables.iter().copied());
    Terminal::start(command)
}

#[tokio::test]
async fn a_line_a_node_is_rewritten_in_place_and_the_ends_stay() {
    let gateway = gateway(&["r1n07"], Duration::from_millis(250)).await;
    let (code, written) = start(&gateway, "fence r1n07 --yes", &[]).end().await;
    assert_eq!(code, 0, "{written}");
    assert!(written.matches("\x1b[3A\r\x1b[J").count() >= 4, "drawn again and again: {written:?}");
    assert!(written.contains("waits for a") && written.contains("2 min 5"), "{written:?}");
    assert!(
        written.contains("\x1b[33mswitching") && written.contains("\x1b[36mreleasing"),
        "in colour: {written:?}"
    );
    golden("terminal.txt", &screen(&written, 80));
}

#[tokio::test]
async fn without_colours_it_is_live_all_the_same() {
    let gateway = gateway(&["r1n07"], Duration::from_millis(50)).await;
    let (code, written) = start(&gateway, "fence r1n07 --yes", &[("NO_COLOR", "1")]).end().await;
    assert_eq!(code, 0);
    assert!(
        written.contains("\x1b[3A") && !written.contains("\x1b[33m") && !written.contains("\x1b[0m"),
        "{written:?}"
    );
}

#[tokio::test]
async fn the_question_counts() {
    let gateway = gateway(&["r1n07", "r1n08"], Duration::from_millis(1)).await;
    let question = "Fence 2 nodes (r1n07, r1n08)? They are switched off hard and stay\r\n  off. [y/N] ";
    for (answer, code) in [("n\n", 2), ("\n", 2), ("yes, but\n", 2), ("y\n", 0)] {
        let mut terminal = start(&gateway, "fence r1n07,r1n08", &[]);
        terminal.until(question).await;
        assert_eq!(gateway.script().fenced, [], "nothing is sent before the answer");
        terminal.types(answer);
        let (got, written) = terminal.end().await;
        assert_eq!(got, code, "{answer:?}: {written}");
    }
    assert_eq!(gateway.script().fenced.len(), 2);
    let mut terminal = start(&gateway, "fence r1n07", &[]);
    terminal.until("Fence r1n07? It is switched off hard and stays off. [y/N] ").await;
    terminal.types("n\n");
    assert_eq!(terminal.end().await.0, 2);
}

#[tokio::test]
async fn an_interrupt_leaves_the_fence_going_and_says_so() {
    let gateway = gateway(&["r1n07"], Duration::from_secs(60)).await;
    let mut terminal = start(&gateway, "fence r1n07 --yes", &[]);
    terminal.until("opened for alice").await;
    terminal.interrupt();
    let (code, written) = terminal.end().await;
    assert_eq!(code, 130, "{written}");
    assert!(screen(&written, 80).contains("left; the fence goes on"), "{written}");
}

/// Whoever is ended leaves a terminal that shows what is typed.
#[tokio::test]
async fn a_terminal_is_as_before_once_its_command_was_ended() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let gateway = gateway(&["r1n07"], Duration::from_secs(60)).await;
        let mut terminal = start(&gateway, "fence r1n07 --yes", &[]);
        terminal.until("opened for alice").await;
        assert!(!terminal.echoes(), "an Enter would tear the block");
        let keyboard = terminal.keyboard();
        terminal.signals(signal);
        assert_eq!(terminal.end().await.0, 130, "{signal:?}");
        assert!(keyboard.echoes(), "{signal:?}");
    }
}

#[tokio::test]
async fn ten_nodes_leave_ten_rows_and_nothing_else() {
    let names: Vec<String> = (1..=10).map(|n| format!("n{n:02}")).collect();
    let refs: Vec<&str> = names.iter().map(String::as_str).collect();
    let gateway = gateway(&refs, Duration::from_millis(30)).await;
    let line = format!("fence {} --yes --parallel 3", names.join(","));
    let (code, written) = start(&gateway, &line, &[]).end().await;
    assert_eq!(code, 0);
    let shown = screen(&written, 80);
    for name in &names {
        assert_eq!(shown.matches(&format!("\n{name}   released")).count(), 1, "{shown}");
    }
    assert!(
        !shown.contains("switching")
            && !shown.contains("STATE")
            && shown.trim_end().ends_with("10 nodes: 10 fenced"),
        "{shown}"
    );
}

#[tokio::test]
async fn enter_and_a_narrowed_window_leave_nothing_standing() {
    let gateway = gateway(&["r1n07"], Duration::from_millis(250)).await;
    let mut terminal = start(&gateway, "fence r1n07 --yes", &[]);
    terminal.until("switching").await;
    assert!(!terminal.echoes(), "what is typed is not shown");
    terminal.types("\n\n\n");
    terminal.until("releasing").await;
    let keyboard = terminal.keyboard();
    let (code, written) = terminal.end().await;
    assert_eq!(code, 0);
    assert!(keyboard.echoes(), "the terminal is as it was before");
    assert_eq!(screen(&written, 80).matches("NODE").count(), 1, "{written:?}");
    golden("terminal.txt", &screen(&written, 80));

    let gateway = self::gateway(&["r1n07"], Duration::from_millis(250)).await;
    let mut terminal = start(&gateway, "fence r1n07 --yes", &[]);
    terminal.until("switching").await;
    terminal.resize(50, 24);
    terminal.until("releasing").await;
    let (code, written) = terminal.written().await;
    assert_eq!(code, 0);
    let narrow = written.rsplit("\x1b[J").next().expect("the end");
    assert!(narrow.contains("released"), "{narrow:?}");
    drop(screen(narrow, 50));
}
