//! Nodes that are found by what they say of their machine, before an API of a few lines.

mod alone;
mod api;
mod attachments;
mod belonging;
mod clocks;
mod evicted;
mod forged;
mod machines;
mod moved;
mod network_fences;
mod permit;
mod refused;
mod replaced;
mod signs;
mod stores;
mod unattached;
mod vouching;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use picket_core::device::Identity;
use picket_core::ids::{Generation, NodeId, ReleaseId};
use picket_release::{Devices, ForNode, Left, LetOn, Quarantine, ReleaseError, Releaser, Subject, Whose};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use crate::OutOfService;
use crate::identity::Met;
use crate::release::Read;
use crate::taints::{FENCED, OUT_OF_SERVICE};
use api::{Api, CLUSTER};

const UUID: &str = "4b554245-2d4e-4f44-452d-303030303031";
const OURS: &str = "picket.dev/fence-blue";

/// A Node with that system UUID, and these taints.
fn node(name: &str, uuid: &str, taints: &[(&str, &str)]) -> Value {
    let taint = |(key, value): &(&str, &str)| json!({ "key": key, "value": value, "effect": "NoSchedule" });
    json!({
        "metadata": { "name": name, "uid": format!("u-{name}"), "resourceVersion": "5", "annotations": {} },
        "spec": { "taints": taints.iter().map(taint).collect::<Vec<_>>() },
        "status": {
            "nodeInfo": { "systemUUID": uuid, "machineID": "m", "bootID": "b" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

fn noted(mut node: Value, whose: &str, generation: u64) -> Value {
    let note = json!({ "owner": "blue", "node": whose, "generation": generation });
    node["metadata"]["annotations"][OURS] = json!(note.to_string());
    node
}

/// A release that asks that one, with these settings besides.
fn unbound(api: &Arc<Api>, more: Value) -> OutOfService {
    let mut settings = json!({ "cluster_uid": CLUSTER, "owner": "blue", "settle": "0s" });
    let table = settings.as_object_mut().expect("a table");
    table.extend(more.as_object().expect("a table").clone());
    let release = OutOfService::read(table).expect("settings");
    release.cluster.by(api.client(&release.cluster.clock));
    release
}

/// The same of the gateway's node `r1`.
fn with(api: &Arc<Api>, more: Value) -> Arc<dyn Quarantine> {
    let release = unbound(api, more);
    let (id, devices) = (NodeId::new("r1").expect("a name"), Devices::default());
    let of = ForNode { id: &id, provider_id: None, devices: &devices };
    release.of_node(&of).expect("it can").and_then(Releaser::quarantine).expect("it is in a cluster")
}

/// The release of the gateway's node `r1`, whose devices say that UUID, or none.
fn release(api: &Arc<Api>) -> Arc<dyn Quarantine> {
    with(api, json!({ "find_by": "system_uuid" }))
}

fn identities(uuid: &str) -> Vec<Identity> {
    vec![Identity { uuid: Identity::usable_uuid(uuid), serial: None }]
}

fn whose(met: Option<&Value>, uuid: &str) -> Whose {
    let met = met.map(|node| Met::of(&serde_json::from_value(node.clone()).expect("a Node")).words());
    Whose { node: NodeId::new("r1").expect("a name"), identities: identities(uuid), met }
}

fn subject(whose: Whose) -> Subject {
    let Whose { node, identities, met } = whose;
    Subject {
        node,
        fence: "00000000-0000-7000-8000-000000000000".parse().expect("an id"),
        generation: Generation(7),
        round: 0,
        release: ReleaseId::new("pods").expect("a name"),
        accepted: String::new(),
        identities,
        met,
    }
}

/// What is left of `r1` by that generation, after an off or none.
fn left_by(generation: u64, off: bool) -> Left {
    Left { whose: whose(None, UUID), generation: Generation(generation), gone: false, off, met_last: None }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// What stood still before it set its taint goes by the version that it read: after a withdrawal it is another one, also where nothing
/// of the fence stands on that Node yet, and no list tells of it (S8).
#[tokio::test(start_paused = true)]
async fn whom_the_record_met_is_withdrawn_from_though_nothing_stands_there() {
    let met = node("n1", "", &[]);
    let api = Api::of([met.clone()]);
    release(&api).withdraw(&whose(Some(&met), ""), soon()).await.expect("it is seen to be gone");
    assert_ne!(api.node("n1")["metadata"]["resourceVersion"], "5");
    assert_eq!(api.node("n1")["metadata"]["annotations"], json!({}), "nothing is left there");

    // Where nobody was met, whoever the devices say.
    let api = Api::of([node("n1", UUID, &[]), node("n2", "", &[])]);
    release(&api).withdraw(&whose(None, UUID), soon()).await.expect("it is seen to be gone");
    assert_ne!(api.node("n1")["metadata"]["resourceVersion"], "5");
    assert_eq!(api.node("n2")["metadata"]["resourceVersion"], "5", "it is none of ours");
}

/// The same of its pods: a machine that is alive still would have two writers, once one of them is deleted and made anew elsewhere (S8).
#[tokio::test(start_paused = true)]
async fn the_pods_of_whom_is_withdrawn_from_are_others_by_then() {
    let pod = |name: &str, owner: &str| {
        let owners = json!([{ "kind": owner, "controller": true }]);
        json!({ "metadata": { "name": name, "namespace": "default", "uid": "u", "resourceVersion": "5", "ownerReferences": owners } })
    };
    let pods = json!({ "items": [pod("db-0", "StatefulSet"), pod("log-x", "DaemonSet")] });
    let (met, status) = (node("n1", UUID, &[]), "/api/v1/namespaces/default/pods/db-0/status");
    let api = Api::of_both([met.clone()], [("/api/v1/pods", pods), (status, json!({}))]);
    let release = release(&api);
    release.withdraw(&whose(Some(&met), UUID), soon()).await.expect("nothing stands");
    let of_pods =
        |api: &Api| api.changes().into_iter().filter(|one| one.contains("/pods/")).collect::<Vec<_>>();
    assert_eq!(of_pods(&api), [format!("PATCH {status}")]);
    // Whoever may not do that keeps no machine off.
    api.fails("status");
    release.withdraw(&whose(Some(&met), UUID), soon()).await.expect("nothing stands");
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_keeps_what_stands_on_no_other() {
    let taint = [(OUT_OF_SERVICE, "picket.blue.7")];
    let met = node("n1", UUID, &taint);
    let api = Api::of([met.clone(), node("n2", "", &taint), node("n3", "", &taint)]);
    api.fails("n2");
    let gone = release(&api).withdraw(&whose(Some(&met), UUID), soon()).await;
    assert!(gone.is_err_and(|error| error.to_string().contains("n2")));
    assert_eq!(api.taints("n1"), [""; 0]);
    assert_eq!(api.taints("n3"), [""; 0]);
    api.fails("");
    release(&api).withdraw(&whose(Some(&met), UUID), soon()).await.expect("it is seen to be gone");
    assert_eq!(api.taints("n2"), [""; 0]);
}

/// A list that nobody answers keeps nothing on whom the record met.
#[tokio::test(start_paused = true)]
async fn whom_the_record_met_waits_for_no_list() {
    let met = node("n1", UUID, &[(OUT_OF_SERVICE, "picket.blue.7")]);
    let api = Api::of([met.clone()]);
    api.fails("nodes");
    release(&api)
        .withdraw(&whose(Some(&met), UUID), soon())
        .await
        .expect_err("what else stands is not known");
    assert_eq!(api.taints("n1"), [""; 0]);
}

/// Two nodes of a gateway that have one Node: what stands there by the fence of one is not the other's to use or to remove.
#[tokio::test(start_paused = true)]
async fn what_is_noted_for_another_node_stays() {
    let taints = [(OUT_OF_SERVICE, "picket.blue.70"), (FENCED, "picket.blue.70")];
    let theirs = noted(node("n1", UUID, &taints), "r2", 70);
    let api = Api::of([theirs.clone()]);
    let release = release(&api);
    let of = whose(Some(&theirs), UUID);
    let left = Left { whose: of.clone(), generation: Generation(7), gone: false, off: false, met_last: None };
    assert_eq!(release.clean_up(&left, soon()).await.expect("answered"), None);
    for refused in [
        release.cordon(&subject(of.clone()), soon()).await.map(drop),
        release.before_on(&subject(of.clone()), soon()).await.map(drop),
    ] {
        let Err(ReleaseError::Barred(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("node r2"), "{why}");
    }
    assert_eq!(api.taints("n1"), [OUT_OF_SERVICE, FENCED]);
    // But for a machine that is not proven off: taking it away lets nothing go.
    release.withdraw(&of, soon()).await.expect("it is seen to be gone");
    assert_eq!(api.taints("n1"), [FENCED]);
    let note = api.node("n1")["metadata"]["annotations"][OURS].clone();
    assert!(note.as_str().is_some_and(|note| note.contains("\"generation\":70")), "{note}");

    // What it left is no later fence of this one's.
    let api = Api::of([noted(node("n1", UUID, &[(FENCED, "picket.blue.70")]), "r2", 70)]);
    self::release(&api).cordon(&subject(whose(None, UUID)), soon()).await.expect("it is told");
    let note = api.node("n1")["metadata"]["annotations"][OURS].clone();
    assert!(note.as_str().is_some_and(|note| note.contains("\"r1\"")), "{note}");
}

/// Before the on every Node is asked of that may be the machine's, where it is not known which is (K7).
#[tokio::test(start_paused = true)]
async fn a_node_that_was_never_met_bars_the_on_by_whatever_may_let_its_volumes_go() {
    let foreign = node("n2", UUID, &[(OUT_OF_SERVICE, "nodeshutdown")]);
    for (nodes, barred) in [
        (vec![node("n1", UUID, &[]), foreign.clone()], true),
        (vec![foreign, node("n3", "", &[])], true),
        (vec![node("n1", UUID, &[]), node("n2", UUID, &[])], false),
        (vec![node("n3", "", &[(OUT_OF_SERVICE, "nodeshutdown")])], false),
        (vec![noted(node("n3", "", &[(OUT_OF_SERVICE, "nodeshutdown")]), "r1", 6)], true),
    ] {
        let api = Api::of(nodes.clone());
        let let_on = release(&api).before_on(&subject(whose(None, UUID)), soon()).await;
        assert_eq!(matches!(let_on, Err(ReleaseError::Barred(_))), barred, "{nodes:#?} {let_on:?}");
    }
}

/// Our own is told and not touched: it is taken away once the record knows of it, and waited out by whoever leads (K3).
#[tokio::test(start_paused = true)]
async fn our_own_taint_is_told_before_the_on_and_left_to_the_record() {
    let (clean, foreign) = (node("n2", UUID, &[]), node("n3", UUID, &[(OUT_OF_SERVICE, "nodeshutdown")]));
    for others in [vec![], vec![clean], vec![foreign]] {
        let ours = node("n1", UUID, &[(OUT_OF_SERVICE, "picket.blue.6")]);
        let api = Api::of(others.into_iter().chain([ours.clone()]));
        let let_on = release(&api).before_on(&subject(whose(None, UUID)), soon()).await.expect("answered");
        assert_eq!(let_on, LetOn { stands: true, found: None });
        assert_eq!(api.node("n1"), ours);
    }
}

/// What a fence left whose note somebody took away is swept off whoever the devices say; and a Node that fails keeps nothing on another.
#[tokio::test(start_paused = true)]
async fn leavings_without_a_note_go_from_whom_the_devices_say() {
    let mut left = node("n1", UUID, &[(FENCED, "picket.blue.7")]);
    left["metadata"]["finalizers"] = json!(["picket.dev/fencing-blue"]);
    let api =
        Api::of([noted(node("n0", "", &[]), "r1", 6), left, node("n2", "", &[(FENCED, "picket.blue.7")])]);
    let release = release(&api);
    let left = left_by(7, false);
    api.fails("n0");
    for _ in 0..3 {
        release.clean_up(&left, soon()).await.expect_err("one is not known");
        tokio::time::advance(Duration::from_secs(40)).await;
    }
    assert_eq!(api.taints("n1"), [""; 0]);
    assert_eq!(api.node("n1")["metadata"]["finalizers"], json!([]));
    assert_eq!(api.taints("n2"), [FENCED], "it is none of ours");
    api.fails("");
    assert_eq!(release.clean_up(&left, soon()).await.expect("answered"), None);
    assert_eq!(api.node("n0")["metadata"]["annotations"], json!({}));
}

/// What was seen of one Node says nothing of another: each is back when it is.
#[tokio::test(start_paused = true)]
async fn each_node_is_back_for_itself() {
    let fenced = |name: &str, boot: &str| {
        let mut node = noted(node(name, UUID, &[(FENCED, "picket.blue.7")]), "r1", 7);
        let note = json!({ "owner": "blue", "node": "r1", "generation": 7, "off": true, "bootID": "b" });
        node["metadata"]["annotations"][OURS] = json!(note.to_string());
        node["status"]["nodeInfo"]["bootID"] = json!(boot);
        node
    };
    let api = Api::of([fenced("n1", "another"), fenced("n2", "b")]);
    let release = release(&api);
    let left = left_by(7, false);
    for _ in 0..5 {
        let waits = release.clean_up(&left, soon()).await.expect("answered").expect("it waits");
        assert!(waits.contains("n2") || waits.contains("n1"), "{waits}");
        tokio::time::advance(Duration::from_secs(10)).await;
    }
    assert_eq!(api.taints("n1"), [""; 0], "it was ready for long enough");
    assert_eq!(api.taints("n2"), [FENCED], "it did not boot");
}

/// A release that was given up before an attempt left no word that the machine was off: whoever asks has it (K2).
#[tokio::test(start_paused = true)]
async fn a_node_that_was_off_soaks_also_where_nothing_of_it_was_let_go() {
    for (off, kept) in [(true, true), (false, false)] {
        let mut told = noted(node("n1", UUID, &[(FENCED, "picket.blue.7")]), "r1", 7);
        let note = json!({ "owner": "blue", "node": "r1", "generation": 7, "bootID": "before" });
        told["metadata"]["annotations"][OURS] = json!(note.to_string());
        let api = Api::of([told]);
        let release = release(&api);
        let left = left_by(8, off);
        let waits = release.clean_up(&left, soon()).await.expect("answered");
        assert_eq!(waits.is_some_and(|why| why.contains("to be ready for 30s")), kept, "off: {off}");
        assert_eq!(api.taints("n1").is_empty(), !kept, "off: {off}");
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(release.clean_up(&left, soon()).await.expect("answered"), None);
        assert_eq!(api.taints("n1"), [""; 0]);
    }
}

/// Its kubelet reports all the while: what is left goes all the same at the first attempt, and what changes without end is told.
#[tokio::test(start_paused = true)]
async fn what_was_changed_between_the_reading_and_the_writing_is_read_anew() {
    for (reports, goes) in [(0, true), (1, true), (4, true), (5, false), (1000, false)] {
        let api = Api::of([noted(node("n1", UUID, &[(FENCED, "picket.blue.7")]), "r1", 7)]);
        api.reports(reports);
        let left = left_by(7, false);
        let tidied = release(&api).clean_up(&left, soon()).await;
        assert_eq!(matches!(tidied, Ok(None)), goes, "{reports} reports: {tidied:?}");
        assert_eq!(api.taints("n1").is_empty(), goes, "{reports} reports");
    }
}

/// What was told of a reading is done by that reading, however late; and what taint eviction has come to meanwhile is left to it (K4).
#[test]
fn what_goes_is_told_by_the_reading_and_left_to_eviction_by_the_attempt() {
    let added = OffsetDateTime::from_unix_timestamp(1_800_000_000).expect("a time");
    let after = |seconds: i64| added + time::Duration::seconds(seconds);
    let mut node = node("n1", UUID, &[]);
    let when = added.format(&Rfc3339).expect("a time");
    let key = "node.kubernetes.io/unreachable";
    node["spec"]["taints"] = json!([{ "key": key, "effect": "NoExecute", "timeAdded": when }]);
    let tolerates =
        json!([{ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }]);
    let pod = json!({ "metadata": { "name": "p", "uid": "u" }, "spec": { "tolerations": tolerates } });
    let read = |seconds: i64| Read {
        name: "n1".to_owned(),
        node: Some(serde_json::from_value(node.clone()).expect("a Node")),
        pods: vec![serde_json::from_value(pod.clone()).expect("a Pod")],
        at: after(seconds),
        round: 0,
        all: Arc::default(),
        overdue: BTreeSet::default(),
    };
    let count = |read: &Read| (read.losing().0.len(), read.losing().1.len());
    assert_eq!((count(&read(292)), count(&read(296)), count(&read(340))), ((1, 0), (0, 1), (1, 0)));
    let early = read(292);
    for (by, evicted) in [(292, 0), (294, 0), (295, 1), (310, 1), (340, 0)] {
        assert_eq!(early.evicted_by(after(by)).len(), evicted, "{by}");
    }
}

/// A cloned system UUID is nobody's: whichever of the two were taken, the other one's pods might be let go (K1).
#[tokio::test(start_paused = true)]
async fn an_identity_that_two_nodes_claim_is_nobody_s() {
    for (second, found) in [(UUID, false), ("", true)] {
        let api = Api::of([node("n1", UUID, &[]), node("n2", second, &[])]);
        let told = release(&api).cordon(&subject(whose(None, UUID)), soon()).await;
        assert_eq!(told.is_ok(), found, "{told:?}");
        assert_eq!(api.taints("n1").is_empty(), !found);
        assert_eq!(api.taints("n2"), [""; 0]);
        if let Err(why) = told {
            assert!(why.to_string().contains("the Nodes n1 and n2 both have"), "{why}");
        }
    }
}

/// Also where its name finds it: the machine that the device says it controls may be the other one.
#[tokio::test(start_paused = true)]
async fn a_name_makes_an_identity_of_two_nodes_nobody_else_s() {
    for (second, found) in [(UUID, false), ("", true)] {
        let api = Api::of([node("r1", UUID, &[]), node("r2", second, &[])]);
        let (release, subject) = (with(&api, json!({ "find_by": "name" })), subject(whose(None, UUID)));
        let prepared = release.before_attempt(&subject, soon()).await.map(drop);
        let announced = release.cordon(&subject, soon()).await.map(drop);
        for told in [prepared, announced] {
            assert_eq!(told.is_ok(), found, "{told:?}");
            let why = told.err().map(ReleaseError::into_words).unwrap_or_default();
            assert!(found || why.contains("the Nodes r1 and r2 both have one system UUID"), "{why}");
        }
        let told = release.check(&identities(UUID), soon()).await;
        assert_eq!(told.iter().any(|one| one.contains("r1 and r2 both have")), !found, "{told:?}");
        assert_eq!((api.taints("r1").is_empty(), api.taints("r2").len()), (!found, 0));
    }
}

fn made(settings: &Value) -> Arc<dyn Quarantine> {
    let release = OutOfService::make(settings.as_object().expect("a table")).expect("settings");
    release.quarantine().expect("it is in a cluster")
}

/// The controllers of the cluster act for so long on what they have read: no on is sent meanwhile (K3).
#[test]
fn the_taint_lingers_for_half_a_minute() {
    let settings = json!({ "cluster_uid": CLUSTER });
    let release = made(&settings);
    assert_eq!(release.lingers(), Duration::from_secs(30));
}

/// The evidence is graded lower where the settings let a name suffice, and nowhere else (K1).
#[test]
fn a_name_suffices_where_the_settings_say_so() {
    for (matched, by_name) in [(None, false), (Some("identity"), false), (Some("name"), true)] {
        let mut settings = json!({ "cluster_uid": CLUSTER });
        if let Some(matched) = matched {
            settings["match"] = json!(matched);
        }
        let release = made(&settings);
        assert_eq!(release.by_name_alone(), by_name, "{matched:?}");
    }
}
