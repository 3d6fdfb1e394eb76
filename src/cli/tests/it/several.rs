//! Several gateways: whoever leads is found, and whoever does not says so.

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{at, good_fence, node, span, update};
use crate::common::{Ran, ask, golden, picket, run};
use picket_proto::DOMAIN;
use picket_proto::v1::*;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

fn not_leader(leader: &str, endpoint: &str) -> Status {
    let metadata = [("leader".to_owned(), leader.to_owned()), ("endpoint".to_owned(), endpoint.to_owned())];
    let details = ErrorDetails::with_error_info("NOT_LEADER", DOMAIN, metadata);
    Status::with_error_details(Code::Unavailable, format!("the gateway {leader} leads"), details)
}

fn script(steps: Vec<Vec<Step>>) -> Script {
    Script {
        nodes: vec![node("r1n07")],
        streams: [("r1n07".to_owned(), steps.into())].into(),
        ..Default::default()
    }
}

async fn ask_all(gateways: &[&Gateway], line: &str) -> Ran {
    let endpoints: Vec<String> = gateways.iter().map(|gateway| gateway.endpoint()).collect();
    let mut command = picket(line);
    command.args(["--endpoint", &endpoints.join(",")]);
    run(command).await
}

fn good() -> Vec<Step> {
    good_fence("r1n07").into_iter().map(Step::Say).collect()
}

#[tokio::test]
async fn a_fence_goes_to_whoever_leads() {
    let leader = Gateway::start(script(vec![good()])).await;
    let redirected = vec![Step::Fail(not_leader("g2", &leader.endpoint()))];
    let follower = Gateway::start(script(vec![redirected])).await;
    // The leader is named by the other: knowing one of them is enough.
    let ran = ask_all(&[&follower], "fence r1n07 --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(follower.script().fenced, leader.script().fenced, "the same request, with the same key");
}

#[tokio::test]
async fn a_leader_that_dies_in_the_middle_is_left_for_the_next_with_the_same_key() {
    let first = vec![
        Step::Say(update("r1n07", 0, Phase::Fencing, "opened for alice")),
        Step::Fail(not_leader("g2", "")),
    ];
    let old = Gateway::start(script(vec![first])).await;
    let new = Gateway::start(script(vec![good()])).await;
    old.script()
        .streams
        .get_mut("r1n07")
        .expect("scripted")
        .push_back(vec![Step::Fail(not_leader("g2", &new.endpoint()))]);
    let ran = ask_all(&[&old, &new], "fence r1n07 --yes").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("the gateway g2 leads"), "{}", ran.out);
    assert_eq!(old.script().fenced[0], new.script().fenced[0], "the same request, with the same key");
}

#[tokio::test]
async fn one_that_is_dead_from_the_start_is_passed_over() {
    let (dead, alive) = (Gateway::start(script(vec![])).await, Gateway::start(script(vec![good()])).await);
    dead.kill().await;
    assert_eq!(ask_all(&[&dead, &alive], "fence r1n07 --yes").await.code, 0);
    let none = ask_all(&[&dead, &dead], "nodes").await;
    assert_eq!(none.code, 5, "{none:?}");
    assert_eq!(none.err.matches("Connection refused").count(), 2, "{}", none.err);
}

#[tokio::test]
async fn what_a_follower_tells_is_told_as_such() {
    let served = Served {
        gateway: "g2".to_owned(),
        leads: false,
        leader: "g1".to_owned(),
        term: 7,
        age: span(0, 400),
    };
    let gateway = Gateway::start(Script { served: Some(served), ..script(vec![]) }).await;
    for line in ["nodes", "status"] {
        let ran = ask(&gateway, line).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            ran.err.contains("told by g2, which does not lead: g1 does. Read from the store 0.4 s ago"),
            "{}",
            ran.err
        );
    }
}

fn gateways() -> ListGatewaysResponse {
    let gateway = |name: &str, leads, aside: &str| Gateway_ {
        name: name.to_owned(),
        endpoints: vec![format!("https://{name}:7070")],
        version: "0.1.0".to_owned(),
        leads,
        aside: aside.to_owned(),
        settings: "5a0c6b1f2e3d4c5b6a79".to_owned(),
    };
    ListGatewaysResponse {
        gateways: vec![
            gateway("g1", true, ""),
            gateway("g2", false, ""),
            gateway("g3", false, "it stands on r1n07, which is fencing"),
        ],
        answered_by: "g2".to_owned(),
        term: 7,
        settings: "5a0c6b1f2e3d4c5b6a79".to_owned(),
        ..Default::default()
    }
}

use picket_proto::v1::Gateway as Gateway_;

#[tokio::test]
async fn gateways_are_listed_with_who_leads_and_why_others_do_not_stand() {
    let gateway = Gateway::start(Script { gateways: gateways(), ..Default::default() }).await;
    let ran = ask(&gateway, "gateways").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let json = ask(&gateway, "gateways -o json").await;
    golden("gateways.txt", &format!("{}\n{}", ran.out, json.out));
}

#[tokio::test]
async fn other_settings_are_told_with_where_they_are_and_what_to_do() {
    let mut differ = gateways();
    differ.gateways[2].settings = "c0ffee00c0ffee00c0ffee00".to_owned();
    differ.gateways[2].aside = "its nodes, devices or rules are not those".to_owned();
    let gateway = Gateway::start(Script { gateways: differ.clone(), ..Default::default() }).await;
    let led = ask(&gateway, "gateways").await;
    assert_eq!(led.code, 0, "somebody leads: {led:?}");
    assert!(led.out.contains("g3 has others") && led.out.contains("reload first g1"), "{}", led.out);
    // All were restarted with the new ones: nobody leads, and the old ones are nowhere.
    for one in &mut differ.gateways {
        (one.leads, one.settings) = (false, "c0ffee00c0ffee00c0ffee00".to_owned());
    }
    (differ.term, differ.trouble) = (0, "nobody stands for election".to_owned());
    gateway.script().gateways = differ;
    let none = ask(&gateway, "gateways").await;
    assert_eq!(none.code, 5, "{none:?}");
    assert!(none.out.contains("picketd accept-settings"), "{}", none.out);
    golden("gateways_settings.txt", &format!("{}\n{}", led.out, none.out));
}

#[tokio::test]
async fn that_nobody_leads_is_told_with_since_when_and_ends_with_5() {
    let mut nobody = gateways();
    nobody.gateways[0].leads = false;
    nobody.term = 0;
    nobody.trouble = "the store does not answer: no quorum".to_owned();
    nobody.since = at(3, 0);
    let gateway = Gateway::start(Script { gateways: nobody, ..Default::default() }).await;
    let ran = ask(&gateway, "gateways").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.out.contains("nobody leads since 2026-11-21T09:00:03"), "{}", ran.out);
    assert!(ran.out.contains("no quorum"), "{}", ran.out);
}
