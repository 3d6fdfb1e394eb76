//! Several nodes in one command.

use std::time::Duration;

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{ended, good_fence, ignored_fence, node, outcome};
use crate::common::{ask, golden, see};
use picket_proto::v1::*;
use tonic::Status;

fn say(updates: Vec<FenceUpdate>) -> Vec<Step> {
    updates.into_iter().map(Step::Say).collect()
}

fn script(streams: Vec<(&str, Vec<Step>)>) -> Script {
    Script {
        nodes: streams.iter().map(|(name, _)| node(name)).collect(),
        streams: streams.into_iter().map(|(name, steps)| (name.to_owned(), [steps].into())).collect(),
        ..Default::default()
    }
}

fn mixed() -> Script {
    let blocked = outcome(OutcomeKind::Blocked, Reason::Paused, "rack1 is paused");
    script(vec![
        ("n1", say(good_fence("n1"))),
        ("n2", say(vec![ended("n2", 1, Phase::Normal, blocked)])),
        ("n3", vec![Step::Fail(Status::permission_denied("not n3"))]),
        ("n4", say(good_fence("n4"))),
    ])
}

#[tokio::test]
async fn each_has_its_line_and_the_worst_exit_code_counts() {
    let gateway = Gateway::start(mixed()).await;
    let ran = ask(&gateway, "fence n1 n2,n3 n4 --yes").await;
    assert_eq!(ran.code, 7, "{ran:?}");
    for line in [
        "n1  fenced and released [7.0 s]",
        "n2  blocked (paused): rack1 is paused [1.0 s]",
        "n3  refused: not n3",
        "n4  fenced and released [7.0 s]",
        "4 nodes: 1 blocked, 2 fenced, 1 refused",
    ] {
        assert_eq!(ran.out.lines().filter(|got| *got == line).count(), 1, "{line}:\n{}", ran.out);
    }
    let script = gateway.script();
    assert_eq!(script.fenced.len(), 4);
    assert!(script.listed.len() == 2, "four nodes are two pages: {:?}", script.listed);
}

#[tokio::test]
async fn a_document_has_a_result_for_each_in_the_order_of_the_hosts() {
    let gateway = Gateway::start(mixed()).await;
    let ran = ask(&gateway, "fence n4,n3,n2,n1 --yes -o json").await;
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let results = document["results"].as_array().expect("results");
    let told: Vec<_> = results
        .iter()
        .map(|r| (r["node"].as_str().unwrap_or(""), r["exit_code"].as_u64().unwrap_or(99)))
        .collect();
    assert_eq!(told, [("n4", 0), ("n3", 7), ("n2", 3), ("n1", 0)]);
    assert_eq!((ran.code, document["exit_code"].as_u64()), (7, Some(7)));
    assert_eq!(results[1]["error"]["code"], "permission_denied");
}

#[tokio::test]
async fn they_go_in_parallel_and_no_more_at_once_than_asked_for() {
    let names: Vec<String> = (1..=9).map(|n| format!("n{n}")).collect();
    let mut at_once = Vec::new();
    // How many are open after a moment is the machine's matter: then the moment is longer.
    for (arguments, most, rest) in [(" --parallel 2", 2, 150), ("", 9, 150), ("", 9, 2_000), ("", 9, 20_000)]
    {
        if at_once.last().is_some_and(|open| *open > 2) {
            break;
        }
        let streams = names
            .iter()
            .map(|name| {
                let mut steps = vec![Step::Rest(Duration::from_millis(rest))];
                steps.extend(say(good_fence(name)));
                (name.as_str(), steps)
            })
            .collect();
        let gateway = Gateway::start(script(streams)).await;
        let ran = ask(&gateway, &format!("fence {} --yes{arguments}", names.join(","))).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.ends_with("9 nodes: 9 fenced\n"), "{}", ran.out);
        let open = gateway.script().open.1;
        assert!(open <= most, "{open} at once, {most} asked for");
        at_once.push(open);
    }
    assert!(at_once.last().is_some_and(|open| *open > 2), "{at_once:?} at once, and all asked for");
}

#[tokio::test]
async fn a_node_that_is_named_twice_is_fenced_once() {
    let gateway = Gateway::start(script(vec![("n1", say(good_fence("n1")))])).await;
    let ran = ask(&gateway, "fence n1 n1 --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(gateway.script().fenced.len(), 1);
}

#[tokio::test]
async fn forty_nodes_end_in_a_count_and_the_exceptions() {
    let names: Vec<String> = (1..=40).map(|n| format!("n{n:02}")).collect();
    let stream = |(at, name): (usize, &String)| match at {
        6 => say(ignored_fence(name)),
        11..=13 => {
            let blocked = outcome(OutcomeKind::Blocked, Reason::Paused, "rack1 is paused");
            // Each was told after another time.
            let second = i64::try_from(at).expect("few");
            say(vec![ended(name, second, Phase::Normal, blocked)])
        }
        _ => say(good_fence(name)),
    };
    for (columns, golden_name) in [(80, "forty_80.txt"), (60, "forty_60.txt")] {
        let streams = names.iter().enumerate().map(|one| (one.1.as_str(), stream(one))).collect();
        let gateway = Gateway::start(script(streams)).await;
        let (code, shown) = see(&gateway, &format!("fence {} --yes", names.join(",")), columns).await;
        assert_eq!(code, 4, "{shown}");
        assert!(shown.starts_with("36 of 40 ended well"), "{shown}");
        assert!(shown.contains("STILL ON") && shown.lines().count() < 40, "{shown}");
        assert_eq!(shown.matches("rack1 is paused").count(), 1, "the same is said once: {shown}");
        golden(golden_name, &shown);
    }
}
