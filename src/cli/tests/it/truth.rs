//! A node that is on never reads as off: what stands first is whether it is off, and whether its volumes were let go.

use crate::common::gateway::{Gateway, Script, Step};
use crate::common::make::{
    ended, evidence, fence, good_fence, ignored_fence, left_on, node, outcome, reading, release, update,
};
use crate::common::{ask, golden, see};
use picket_proto::v1::*;

fn script(streams: Vec<(&str, Vec<FenceUpdate>)>) -> Script {
    let say = |updates: Vec<FenceUpdate>| updates.into_iter().map(Step::Say).collect::<Vec<_>>();
    Script {
        nodes: streams.iter().map(|(name, _)| node(name)).collect(),
        streams: streams.into_iter().map(|(name, steps)| (name.to_owned(), [say(steps)].into())).collect(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_fence_that_left_the_node_on_says_so_first() {
    for (columns, name) in [(80, "failed_80.txt"), (60, "failed_60.txt")] {
        let gateway = Gateway::start(script(vec![("r2n03", ignored_fence("r2n03"))])).await;
        let (code, shown) = see(&gateway, "fence r2n03 --yes", columns).await;
        assert_eq!(code, 4, "{shown}");
        golden(name, &shown);
        let (row, rest) = (shown.find("STILL ON").expect("its power"), shown.find("needs operator (levels"));
        assert!(rest.is_some_and(|rest| row < rest), "{shown}");
        assert!(shown.contains("NOT let go") && shown.contains("picket retry r2n03"), "{shown}");
        assert!(!shown.contains("off: bmc"), "an off that was sent is no node that is off: {shown}");
    }
}

#[tokio::test]
async fn of_two_the_failed_one_stands_last_and_has_its_ways_out() {
    let streams = || vec![("r2n03", ignored_fence("r2n03")), ("r1n01", good_fence("r1n01"))];
    for (columns, name) in [(80, "two_80.txt"), (60, "two_60.txt")] {
        let gateway = Gateway::start(script(streams())).await;
        let (code, shown) = see(&gateway, "fence r2n03,r1n01 --yes", columns).await;
        assert_eq!(code, 4, "{shown}");
        golden(name, &shown);
        assert!(shown.find("r1n01") < shown.find("r2n03"), "failures stand last: {shown}");
    }
}

async fn end(updates: Vec<FenceUpdate>) -> String {
    let gateway = Gateway::start(script(vec![("n1", updates)])).await;
    ask(&gateway, "fence n1 --yes").await.out
}

#[tokio::test]
async fn what_was_read_last_is_told_as_what_it_is() {
    let spent = || outcome(OutcomeKind::NeedsOperator, Reason::LevelsSpent, "no answer");
    let read = |power, second| FenceUpdate {
        readings: vec![reading("bmc", power, second)],
        ..update("n1", second, Phase::Fencing, "bmc says something")
    };
    let failed =
        |power, read_at, at| vec![read(power, read_at), ended("n1", at, Phase::NeedsOperator, spent())];
    // An On of long ago says nothing of now, and is no off either.
    let old = end(failed(Power::On, 1, 300)).await;
    assert!(old.contains("NOT KNOWN") && !old.contains("STILL ON"), "{old}");
    let off = end(failed(Power::Off, 19, 20)).await;
    assert!(off.contains("reads off") && off.contains("none") && off.contains("NOT let go"), "{off}");
    let unknown = end(failed(Power::Unknown, 19, 20)).await;
    assert!(unknown.contains("NOT KNOWN"), "{unknown}");
    // Whatever was proven before: what reads On is on.
    let breach = FenceUpdate {
        evidence: Some(evidence()),
        readings: vec![reading("bmc", Power::On, 20)],
        ..ended("n1", 20, Phase::NeedsOperator, spent())
    };
    let on = end(vec![breach]).await;
    let row = on.lines().find(|line| line.contains("NEEDS OPERATOR")).expect("its row");
    assert!(row.contains("STILL ON") && row.contains("none") && !row.contains("observed"), "{on}");
}

#[tokio::test]
async fn only_what_was_let_go_is_said_to_be() {
    let done = |releases: Vec<Release>| {
        let fenced = Outcome { released: true, ..outcome(OutcomeKind::Fenced, Reason::Unspecified, "") };
        vec![FenceUpdate { evidence: Some(evidence()), releases, ..ended("n1", 7, Phase::Released, fenced) }]
    };
    let none = end(done(Vec::new())).await;
    assert!(none.contains("none to let go") && !none.contains("released"), "{none}");
    let given_up = end(done(vec![release(ReleaseStage::Abandoned)])).await;
    assert!(given_up.contains("GIVEN UP: storage"), "{given_up}");
    let let_go = end(done(vec![release(ReleaseStage::Complete)])).await;
    assert!(let_go.contains("let go (storage)"), "{let_go}");
}

#[tokio::test]
async fn status_and_nodes_say_what_is_on_and_what_is_off_without_a_fence() {
    let stray = Node {
        power: Some(NodePower { power: Power::Off.into(), ..node("n").power.expect("it was read") }),
        ..node("r2n04")
    };
    let nodes = vec![node("r1n01"), left_on("r2n03"), stray];
    let gateway = Gateway::start(Script { nodes, ..Default::default() }).await;
    let one = ask(&gateway, "status r2n03").await.out;
    assert!(one.starts_with("r2n03  NEEDS OPERATOR: STILL ON, volumes NOT let go\n"), "{one}");
    assert!(one.contains("took an off and still reads on") && !one.contains("bmc     ready;"), "{one}");
    let fleet = ask(&gateway, "status").await.out;
    assert!(fleet.contains("Could be fenced now: 2 of 3"), "its device has just ignored an off: {fleet}");
    assert!(fleet.contains("r2n04"), "what is off and not fenced is not as usual: {fleet}");
    let table = ask(&gateway, "nodes").await.out;
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).expect("its row").to_owned();
    assert!(row("r2n03").contains("STILL ON") && row("r2n03").contains("0/1 not ready"), "{table}");
    assert!(row("r2n04").contains("OFF, not fenced"), "{table}");
    assert!(row("r1n01").contains(" on "), "{table}");
    for (line, name, columns) in [
        ("status r2n03", "status_on_80.txt", 80),
        ("status r2n03", "status_on_60.txt", 60),
        ("status", "status_fleet_80.txt", 80),
        ("status", "status_fleet_60.txt", 60),
    ] {
        golden(name, &see(&gateway, line, columns).await.1);
    }
}

/// Its BMC is dead, and the outlet that was to cut its power reads on.
#[tokio::test]
async fn an_outlet_that_ignored_its_off_feeds_the_node_still() {
    let mut fed = left_on("r2n03");
    fed.power = Some(NodePower { power: Power::Unknown.into(), ..fed.power.expect("it was read") });
    fed.devices[0].set_device_class(DeviceClass::Supply);
    fed.devices.push(Device { id: "spare".to_owned(), level: 2, ..fed.devices[0].clone() });
    let gateway = Gateway::start(Script { nodes: vec![fed], ..Default::default() }).await;
    let table = ask(&gateway, "nodes").await.out;
    assert!(table.contains("STILL ON") && table.contains("1/2 ready"), "{table}");
    let one = ask(&gateway, "status r2n03").await.out;
    assert!(one.starts_with("r2n03  NEEDS OPERATOR: STILL ON, volumes NOT let go\n"), "{one}");
}

/// Roles and holds go by `uid:0`; people read who that was.
#[tokio::test]
async fn a_caller_is_shown_by_name_beside_the_one_that_counts() {
    let hold = Hold {
        holder: "uid:0".to_owned(),
        by: "uid:0".to_owned(),
        by_shown: "alice as root".to_owned(),
        reason: "it hangs".to_owned(),
        ..Default::default()
    };
    let held = Node { holds: vec![hold], ..left_on("r2n03") };
    let mut past = fence();
    past.askers[0].caller_shown = "alice as root".to_owned();
    let gateway =
        Gateway::start(Script { nodes: vec![held], fences: vec![past], ..Default::default() }).await;
    let one = ask(&gateway, "status r2n03").await.out;
    assert!(one.contains("uid:0: it hangs (by alice as root"), "{one}");
    let table = ask(&gateway, "nodes").await.out;
    assert!(table.contains("held by alice as root"), "{table}");
    let past = ask(&gateway, "history --fence 01990000-0000-7000-8000-000000000007").await.out;
    assert!(past.contains("alice as root for alice at"), "{past}");
    let document = ask(&gateway, "nodes -o json").await.out;
    assert!(
        document.contains("\"by\": \"uid:0\"") && document.contains("\"by_shown\": \"alice as root\""),
        "{document}"
    );
}

#[tokio::test]
async fn history_does_not_say_switched_off_where_an_off_was_sent() {
    let failed = Fence {
        outcome: Some(outcome(OutcomeKind::NeedsOperator, Reason::LevelsSpent, "off: bmc")),
        ended_at: None,
        evidence: None,
        ..fence()
    };
    let gateway = Gateway::start(Script { fences: vec![failed], ..Default::default() }).await;
    let told = ask(&gateway, "history --fence 01990000-0000-7000-8000-000000000007").await.out;
    assert!(!told.contains("switched off") && told.contains("NOT PROVEN OFF"), "{told}");
}
