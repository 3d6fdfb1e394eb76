//! What to do about what stops a fence (S16): the page and the command line name the same ways, and every command is one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use picket_cli::args::Cli;
use picket_proto::exits::{self, Exit, KEPT_FOR, Way};
use picket_proto::v1::*;

use crate::common::ask;
use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{ended, outcome, release, troubled};

const PAGE: &str = include_str!("../../../../docs/stops.md");

/// The heading of its section on the page.
fn head(kind: OutcomeKind, reason: Reason) -> String {
    let reason = reason.as_str_name().trim_start_matches("REASON_").to_lowercase().replace('_', " ");
    match kind {
        _ if reason == "orphaned" => "`..., ORPHANED`".to_owned(),
        OutcomeKind::PowerOnFailed => "`power on failed`".to_owned(),
        OutcomeKind::Blocked => format!("`blocked ({reason})`"),
        _ => format!("`needs operator ({reason})`"),
    }
}

/// The commands of a section.
fn named(section: &str) -> BTreeSet<&str> {
    section.split('`').skip(1).step_by(2).filter(|code| code.starts_with("picket ")).collect()
}

#[test]
fn the_page_names_the_ways_of_each_reason_and_no_others() {
    let sections: BTreeMap<&str, &str> = PAGE
        .split("\n### ")
        .skip(1)
        .map(|section| section.split_once('\n').expect("more than a heading"))
        .collect();
    let mut found = BTreeSet::new();
    for (kind, reason, ways) in exits::all() {
        let head = head(kind, reason);
        let section = sections.get(&*head).unwrap_or_else(|| panic!("the page has no section {head}"));
        let commands: BTreeSet<&str> =
            ways.iter().flat_map(|way| way.exits).map(|exit| exit.command()).collect();
        assert_eq!(named(section), commands, "{head}");
        found.insert(head);
    }
    let headings: BTreeSet<String> = sections.into_keys().map(str::to_owned).collect();
    assert_eq!(headings, found, "a section that is no reason's");
}

fn parses(command: &str) {
    let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
    assert!(Cli::read(&words).is_ok(), "{command}: {}", Cli::read(&words).expect_err("it is refused"));
}

/// The commands in a line of `picket`, with a reason.
fn commands(line: &str) -> Vec<String> {
    let line = line.split(" (role ").next().expect("a line");
    line.split("picket ")
        .skip(1)
        .map(|one| format!("picket {}", one.replace("...", "why").replace(", then ", "")))
        .collect()
}

fn held(holder: &str) -> Hold {
    Hold { holder: holder.to_owned(), ..Default::default() }
}

/// A node that waits for a person, with a release that was begun.
fn waiting(kind: OutcomeKind, reason: Reason) -> Node {
    let phase = match kind {
        OutcomeKind::PowerOnFailed => Phase::PowerOnFailed,
        _ => Phase::NeedsOperator,
    };
    let attempt =
        OpenEffect { kind: EffectKind::Release.into(), target: "storage".to_owned(), ..Default::default() };
    Node {
        phase: phase.into(),
        reason: reason.into(),
        orphaned: reason == Reason::Orphaned,
        releases: vec![release(ReleaseStage::Requested)],
        open_effects: vec![attempt],
        holds: vec![held("restored")],
        ..troubled("r1n07")
    }
}

fn with_names(way: &Way) -> Vec<String> {
    let name = |exit: &Exit| {
        let command = exit.command().replace("NODE", "r1n07").replace("RELEASE", "storage");
        command.replace("GRADE", "claimed").replace("SCOPE", "--everything").replace("REASON", "why")
    };
    way.exits.iter().map(name).collect()
}

#[tokio::test]
async fn status_gives_each_way_with_commands_that_can_be_typed() {
    for (kind, reason, ways) in exits::all().filter(|(kind, ..)| *kind != OutcomeKind::Blocked) {
        let node = waiting(kind, reason);
        let gateway = Gateway::start(Script { nodes: vec![node], ..Default::default() }).await;
        let said = ask(&gateway, "status r1n07").await;
        let mut lines = said
            .out
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("next ") || line.starts_with("or "));
        for way in ways {
            let line = lines.next().unwrap_or_else(|| panic!("no line for {way:?} in {}", said.out));
            assert!(line.contains(way.when), "{line}");
            let (typed, wanted) = (commands(line), with_names(way));
            assert_eq!(typed.len(), wanted.len(), "{line}");
            for (typed, wanted) in typed.iter().zip(wanted) {
                assert!(typed.starts_with(&wanted), "{typed} is not {wanted}");
                parses(typed);
            }
        }
        assert_eq!(lines.next(), None, "{}", said.out);
    }
}

/// Whatever it waits for: of each machine that runs on it, by its name, where that bars a way.
#[tokio::test]
async fn status_of_a_node_that_others_hold_tells_how_an_admin_ends_that() {
    for (kind, reason, ways) in exits::all().filter(|(kind, ..)| *kind != OutcomeKind::Blocked) {
        let holds = vec![held("child:vm1"), held("ada"), held("child:vm2")];
        let node = Node { holds, ..waiting(kind, reason) };
        let gateway = Gateway::start(Script { nodes: vec![node], ..Default::default() }).await;
        let said = ask(&gateway, "status r1n07").await;
        let line = said.out.lines().find(|line| line.contains(KEPT_FOR.when));
        let bars = |exit: &Exit| matches!(exit, Exit::StandDown | Exit::Retire);
        assert_eq!(line.is_some(), ways.iter().flat_map(|way| way.exits).any(bars), "{}", said.out);
        let Some(line) = line else { continue };
        let typed = commands(line);
        let wanted = ["vm1", "vm2"].map(|child| format!("picket unhold r1n07 --holder child:{child} "));
        assert!(
            typed.len() == 2 && typed.iter().zip(wanted).all(|(typed, wanted)| typed.starts_with(&wanted)),
            "{line}"
        );
        typed.iter().for_each(|command| parses(command));
        assert!(line.contains("(role admin)"), "{line}");
    }
}

#[tokio::test]
async fn a_fence_that_is_stopped_ends_with_each_way() {
    for (kind, reason, ways) in exits::all() {
        let phase = if kind == OutcomeKind::Blocked { Phase::Normal } else { Phase::NeedsOperator };
        let end = ended("r1n07", 9, phase, outcome(kind, reason, "a test"));
        let script = Script {
            nodes: vec![troubled("r1n07")],
            streams: [("r1n07".to_owned(), [vec![Step::Say(end)]].into())].into(),
            ..Default::default()
        };
        let said = ask(&Gateway::start(script).await, "fence r1n07 --yes").await;
        for way in ways {
            let line = said.out.lines().find(|line| line.contains(way.when));
            let line = line.unwrap_or_else(|| panic!("no line for {way:?} in {}", said.out));
            commands(line).iter().for_each(|command| parses(command));
        }
    }
}

/// Its fence goes on, or ended for others: a retry would be refused.
#[tokio::test]
async fn a_caller_whose_own_wish_was_not_met_is_sent_to_no_retry() {
    for (phase, reason) in [(Phase::Fencing, Reason::Deadline), (Phase::Released, Reason::GradeTooLow)] {
        let end = ended("r1n07", 9, phase, outcome(OutcomeKind::NeedsOperator, reason, "your own"));
        let script = Script {
            nodes: vec![troubled("r1n07")],
            streams: [("r1n07".to_owned(), [vec![Step::Say(end)]].into())].into(),
            ..Default::default()
        };
        let said = ask(&Gateway::start(script).await, "fence r1n07 --yes").await;
        assert!(
            said.out.contains("picket status r1n07") && !said.out.contains("picket retry"),
            "{}",
            said.out
        );
    }
}
