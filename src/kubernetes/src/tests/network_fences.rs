//! The fence of a Node's own addresses is undone once it is back: theirs alone, and never while somebody else wants it (K1).

use super::*;

const ALL: &str = "/apis/csiaddons.openshift.io/v1alpha1/networkfences/";
const CLASSES: &str = "/apis/csiaddons.openshift.io/v1alpha1/networkfenceclasses";
const DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const RBD: &str = "rook-ceph.rbd.csi.ceph.com";

fn undoing(api: &Arc<Api>) -> Arc<dyn Quarantine> {
    with(api, json!({ "find_by": "system_uuid", "network_fences": "undone" }))
}

fn reached_at(mut node: Value, addresses: &[&str]) -> Value {
    let all: Vec<Value> =
        addresses.iter().map(|address| json!({ "type": "InternalIP", "address": address })).collect();
    node["status"]["addresses"] = json!(all);
    node
}

fn class(name: &str, provisioner: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "provisioner": provisioner } })
}

/// A cluster with csi-addons and ceph-csi, and with these Nodes.
fn cluster(nodes: impl IntoIterator<Item = Value>) -> Arc<Api> {
    let groups = json!({ "groups": [{ "name": "csiaddons.openshift.io" }] });
    let classes = json!({ "items": [class("ceph", RBD), class("other", "csi.example.org")] });
    let drivers = json!({ "items": [{ "metadata": { "name": RBD } }] });
    Api::of_both(nodes, [("/apis", groups), (CLASSES, classes), (DRIVERS, drivers)])
}

fn n1() -> Value {
    reached_at(node("n1", UUID, &[]), &["10.0.0.7", "fd00::7"])
}

/// Whose fence it was, in that generation.
fn of(met: Option<String>, generation: u64) -> Subject {
    let whose = Whose { met, ..whose(None, UUID) };
    Subject { generation: Generation(generation), ..subject(whose) }
}

fn left() -> Left {
    Left { whose: whose(None, UUID), generation: Generation(8), gone: false, off: true, met_last: None }
}

/// The node was fenced, and is back: ready, in another boot, and tidied up. Whom the record met.
async fn back(api: &Arc<Api>, release: &Arc<dyn Quarantine>) -> Option<String> {
    let met = release.cordon(&of(None, 7), soon()).await.expect("it is told");
    release.before_on(&of(met.clone(), 8), soon()).await.expect("it is let on");
    let mut node = api.node("n1");
    node["status"]["nodeInfo"]["bootID"] = json!("another");
    api.has(node);
    for _ in 0..5 {
        if release.clean_up(&left(), soon()).await.expect("answered").is_none() {
            return met;
        }
        assert!(made(api).is_empty(), "it is not back yet");
        tokio::time::advance(Duration::from_secs(10)).await;
    }
    panic!("it was not tidied up");
}

/// The NetworkFences there that are ours.
fn made(api: &Api) -> Vec<Value> {
    let all = api.below(ALL).into_values();
    all.filter(|one| one["metadata"]["annotations"]["picket.dev/network-fence"].is_string()).collect()
}

/// csi-addons answers to each of ours.
fn answers(api: &Api, result: &str) {
    for mut one in made(api) {
        one["status"] = json!({ "result": result, "message": "said so" });
        let at = format!("{ALL}{}", one["metadata"]["name"].as_str().expect("a name"));
        api.also(&at, one);
    }
}

fn foreign(range: &str) -> Value {
    json!({ "metadata": { "name": "theirs", "uid": "t" }, "spec": { "fenceState": "Fenced", "cidrs": [range] } })
}

#[tokio::test(start_paused = true)]
async fn the_fence_of_its_own_addresses_is_undone_once_it_is_back() {
    let api = cluster([n1(), reached_at(node("n2", "", &[]), &["10.0.0.8"])]);
    let release = undoing(&api);
    let early = release.readmit(&left(), soon()).await.expect("answered");
    assert_eq!((early, made(&api).len()), (None, 0), "nothing was noted");
    back(&api, &release).await;
    let waits = release.readmit(&left(), soon()).await.expect("answered");
    assert!(waits.is_some_and(|why| why.contains("Node n1")));
    let one = &made(&api)[..];
    assert_eq!(one.len(), 1, "the other class is not of Ceph: {one:?}");
    let wanted = json!({
        "networkFenceClassName": "ceph", "fenceState": "Unfenced", "cidrs": ["10.0.0.7/32", "fd00::7/128"],
    });
    assert_eq!(one[0]["spec"], wanted);
    let waits = release.readmit(&left(), soon()).await.expect("answered");
    assert!(waits.is_some_and(|why| why.contains("csi-addons to answer")));
    answers(&api, "Succeeded");
    assert_eq!(release.readmit(&left(), soon()).await.expect("answered"), None);
    assert_eq!(made(&api).len(), 0, "it would be done again whenever csi-addons starts");
    let changes = api.changes().len();
    assert_eq!(release.readmit(&left(), soon()).await.expect("answered"), None);
    assert_eq!(api.changes().len(), changes, "once");
}

#[tokio::test(start_paused = true)]
async fn it_is_left_alone_by_default_where_nothing_was_off_and_waits_for_that_api() {
    let api = cluster([n1()]);
    let by_default = self::release(&api);
    let met = back(&api, &by_default).await.expect("it was met");
    assert!(!met.contains("10.0.0.7"), "{met}");
    assert_eq!(by_default.readmit(&left(), soon()).await.expect("answered"), None);

    let api = cluster([n1()]);
    let release = undoing(&api);
    back(&api, &release).await;
    for left in [
        Left { off: false, ..left() },
        Left { gone: true, ..left() },
        Left { generation: Generation(6), ..left() },
    ] {
        assert_eq!(release.readmit(&left, soon()).await.expect("answered"), None, "{left:?}");
    }
    assert_eq!(made(&api).len(), 0);

    let api = cluster([n1()]);
    api.also("/apis", json!({ "groups": [{ "name": "apps" }] }));
    let release = undoing(&api);
    back(&api, &release).await;
    // Who makes it anew just now serves none for a moment.
    let waits = release.readmit(&left(), soon()).await.expect("answered");
    assert_eq!(waits.as_deref(), Some("csi-addons, which serves no NetworkFence"));
    assert_eq!(api.below(ALL).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_undone_of_a_node_that_is_not_ready_or_is_being_fenced() {
    for (conditions, taints) in [
        (json!([{ "type": "Ready", "status": "Unknown" }]), json!([])),
        (
            json!([{ "type": "Ready", "status": "True" }]),
            json!([{ "key": OUT_OF_SERVICE, "value": "x", "effect": "NoExecute" }]),
        ),
    ] {
        let api = cluster([n1()]);
        let release = undoing(&api);
        back(&api, &release).await;
        let mut node = api.node("n1");
        node["status"]["conditions"] = conditions;
        node["spec"]["taints"] = taints;
        api.has(node);
        let waits = release.readmit(&left(), soon()).await.expect("answered");
        assert!(waits.is_some() && made(&api).is_empty(), "{waits:?}");
    }
}

/// Whoever fenced an address wants it fenced, also where it came while ours was under way.
#[tokio::test(start_paused = true)]
async fn what_a_network_fence_of_others_names_stays_fenced() {
    let theirs = format!("{ALL}theirs");
    for range in ["10.0.0.7/32", "10.0.0.0/24", "fd00::/64", "not a range"] {
        let api = cluster([n1()]);
        let release = undoing(&api);
        back(&api, &release).await;
        api.also(&theirs, foreign(range));
        let refused = release.readmit(&left(), soon()).await.expect_err("theirs").to_string();
        assert!(refused.contains("the NetworkFence theirs, which is not ours"), "{refused}");
        assert_eq!(made(&api).len(), 0, "{range}");
        // It is tried again.
        api.lacks(&theirs);
        release.readmit(&left(), soon()).await.expect("answered");
        assert_eq!(made(&api).len(), 1, "{range}");
        api.also(&theirs, foreign(range));
        release.readmit(&left(), soon()).await.expect_err("theirs");
        assert_eq!((made(&api).len(), api.below(ALL).len()), (0, 1), "{range}");
    }
    let api = cluster([n1()]);
    let release = undoing(&api);
    back(&api, &release).await;
    api.also(&theirs, foreign("10.0.0.8/32"));
    release.readmit(&left(), soon()).await.expect("another address");
    assert_eq!(made(&api).len(), 1);
}

/// K1: its kubelet may say what it likes once the fence has begun.
#[tokio::test(start_paused = true)]
async fn an_address_that_was_not_noted_when_the_fence_began_is_never_named() {
    for (now, named) in [
        (vec!["10.0.0.99", "10.0.0.7"], json!(["10.0.0.7/32"])),
        (vec!["10.0.0.99"], json!(null)),
        (vec![], json!(null)),
    ] {
        let api = cluster([n1()]);
        let release = undoing(&api);
        back(&api, &release).await;
        api.has(reached_at(api.node("n1"), &now));
        release.readmit(&left(), soon()).await.expect("answered");
        assert_eq!(made(&api).first().map_or(json!(null), |one| one["spec"]["cidrs"].clone()), named);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_another_node_has_is_neither_s() {
    for kind in ["InternalIP", "ExternalIP"] {
        let mut other = node("n2", "", &[]);
        other["status"]["addresses"] = json!([{ "type": kind, "address": "10.0.0.7" }]);
        let api = cluster([n1(), other]);
        let release = undoing(&api);
        back(&api, &release).await;
        let refused = release.readmit(&left(), soon()).await.expect_err("whose is it").to_string();
        assert!(refused.contains("n1 and n2 both say 10.0.0.7"), "{refused}");
        assert_eq!(made(&api).len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn another_machine_by_its_name_is_not_helped() {
    let api = cluster([n1()]);
    let release = undoing(&api);
    back(&api, &release).await;
    let mut other = api.node("n1");
    other["status"]["nodeInfo"]["machineID"] = json!("another");
    api.has(other);
    let refused = release.readmit(&left(), soon()).await.expect_err("another machine").to_string();
    assert!(refused.contains("the machine ID of Node n1"), "{refused}");
    assert_eq!(release.readmit(&left(), soon()).await.expect("answered"), None, "it is told once");
    assert_eq!(made(&api).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_told_and_bars_nothing() {
    let api = cluster([n1()]);
    let release = undoing(&api);
    back(&api, &release).await;
    assert_eq!(api.taints("n1"), [""; 0], "new pods come");
    api.fails("networkfences");
    release.readmit(&left(), soon()).await.expect_err("it is forbidden");
    api.fails("networkfenceclasses");
    release.readmit(&left(), soon()).await.expect_err("it is forbidden");
    api.fails("");
    release.readmit(&left(), soon()).await.expect("answered");
    answers(&api, "Failed");
    let refused = release.readmit(&left(), soon()).await.expect_err("it failed").to_string();
    assert!(refused.contains("Failed: said so"), "{refused}");
    assert_eq!(release.clean_up(&left(), soon()).await.expect("answered"), None);
    api.also(CLASSES, json!({ "items": [class("other", "csi.example.org")] }));
    answers(&api, "Succeeded");
    let refused = release.readmit(&left(), soon()).await.expect_err("there is none").to_string();
    assert!(refused.contains("no NetworkFenceClass"), "{refused}");
}

/// Else it would take effect while the node is off, or is to be.
#[tokio::test(start_paused = true)]
async fn what_is_under_way_ends_where_the_next_fence_begins() {
    let api = cluster([n1()]);
    let release = undoing(&api);
    let met = back(&api, &release).await;
    release.readmit(&left(), soon()).await.expect("answered");
    api.also(&format!("{ALL}theirs"), foreign("10.0.0.8/32"));
    assert_eq!(made(&api).len(), 1);
    release.exclude(&of(met, 9), soon()).await.expect("answered");
    assert_eq!((made(&api).len(), api.below(ALL).len()), (0, 1), "and nobody else's");
}

/// What a gateway began that is gone is brought to its end by the next, which has its addresses of the record.
#[tokio::test(start_paused = true)]
async fn the_next_leader_goes_on_by_the_record() {
    let api = cluster([n1()]);
    let met = back(&api, &undoing(&api)).await;
    let next = undoing(&api);
    // One that nothing was said of has nothing to undo, whatever stands on the Node.
    assert_eq!(next.readmit(&left(), soon()).await.expect("answered"), None);
    next.before_on(&of(met, 8), soon()).await.expect("it is let on");
    next.readmit(&left(), soon()).await.expect("answered");
    tokio::time::advance(Duration::from_secs(31)).await;
    next.readmit(&left(), soon()).await.expect("answered");
    assert_eq!(made(&api).len(), 1);
    let third = undoing(&api);
    assert!(third.readmit(&left(), soon()).await.expect("answered").is_some());
    answers(&api, "Succeeded");
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(third.readmit(&left(), soon()).await.expect("answered"), None);
    assert_eq!(made(&api).len(), 0);
}

/// Between the return of a node and the end of what undoes its fence another gateway leads: no fence is in its record any more (K1).
#[tokio::test(start_paused = true)]
async fn who_leads_once_it_is_back_goes_by_whom_the_last_fence_met() {
    let api = cluster([n1()]);
    let met_last = back(&api, &undoing(&api)).await;
    let next = undoing(&api);
    assert!(next.recalls() && !release(&api).recalls(), "only where something is undone");
    // What its kubelet says since then is believed by nobody.
    api.has(reached_at(api.node("n1"), &["10.0.0.7", "10.0.0.9"]));
    let left = Left { met_last, ..left() };
    for _ in 0..2 {
        next.readmit(&left, soon()).await.expect("answered");
        tokio::time::advance(Duration::from_secs(31)).await;
    }
    assert_eq!(made(&api).len(), 1);
    assert_eq!(made(&api)[0]["spec"]["cidrs"], json!(["10.0.0.7/32"]));
    answers(&api, "Succeeded");
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(11)).await;
        next.readmit(&left, soon()).await.expect("answered");
    }
    assert_eq!(
        (next.readmit(&left, soon()).await.expect("answered"), made(&api).len()),
        (None, 0),
        "it is done once"
    );
    // Another machine by that name is not helped, and told once.
    let third = undoing(&api);
    let mut other = api.node("n1");
    other["status"]["nodeInfo"]["machineID"] = json!("another");
    api.has(other);
    tokio::time::advance(Duration::from_secs(11)).await;
    third.readmit(&left, soon()).await.expect_err("another machine");
    assert_eq!(third.readmit(&left, soon()).await.expect("answered"), None);
    assert_eq!(made(&api).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_check_tells_of_ceph_csi_and_of_what_the_undoing_lacks() {
    let api = cluster([n1()]);
    api.also(REVIEWS, json!({ "status": { "allowed": true } }));
    let told = async |release: Arc<dyn Quarantine>, part: &str| {
        let told = release.check(&identities(UUID), soon()).await;
        told.into_iter().filter(|one| one.contains(part)).collect::<Vec<_>>()
    };
    let of_ceph = told(release(&api), "blocklist").await;
    assert!(of_ceph.len() == 1 && of_ceph[0].contains(RBD), "{of_ceph:?}");
    for part in ["blocklist", "network_fences", "networkfences", "NetworkFenceClass"] {
        assert_eq!(told(undoing(&api), part).await, [""; 0], "{part}");
    }
    api.also(REVIEWS, json!({ "status": { "allowed": false } }));
    let lacking = told(undoing(&api), "deploy/kubernetes/networkfences.yaml").await;
    assert!(
        lacking.len() == 1 && lacking[0].contains("delete networkfences.csiaddons.openshift.io"),
        "{lacking:?}"
    );
    api.also(CLASSES, json!({ "items": [] }));
    assert_eq!(told(undoing(&api), "no NetworkFenceClass").await.len(), 1);
    api.also("/apis", json!({ "groups": [] }));
    assert_eq!(told(undoing(&api), "needs the API csiaddons.openshift.io").await.len(), 1);
    api.also(DRIVERS, json!({ "items": [{ "metadata": { "name": "csi.example.org" } }] }));
    assert_eq!(told(release(&api), "blocklist").await, [""; 0]);
    assert_eq!(told(undoing(&api), "csiaddons").await, [""; 0]);
}
