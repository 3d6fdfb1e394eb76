//! A pod that the API server does not delete keeps no other from going: the one behind the webhook that fails closed may be among those.

use super::*;
use crate::deleting::{self, RefusedPods};
use crate::object::Pod;

fn pod(name: &str) -> Pod {
    let meta = json!({ "name": name, "namespace": "default", "uid": name, "resourceVersion": "5" });
    serde_json::from_value(json!({ "metadata": meta })).expect("a Pod")
}

/// Twenty that a webhook bars, and its own pod behind them.
fn guarded() -> (Vec<String>, Vec<Pod>) {
    let barred: Vec<String> = (10..30).map(|number| format!("db-{number}")).collect();
    let mut pods: Vec<Pod> = barred.iter().map(|name| pod(name)).collect();
    pods.push(pod("guard"));
    (barred, pods)
}

#[tokio::test]
async fn the_pod_behind_a_webhook_that_fails_closed_is_asked_for_in_the_first_round() {
    let (barred, pods) = guarded();
    let objects: Vec<String> =
        pods.iter().map(|pod| format!("/api/v1/namespaces/default/pods/{}", pod.metadata.name)).collect();
    let whole = |path: &String| (path.clone(), json!({ "metadata": { "resourceVersion": "6" } }));
    let known: Vec<(String, Value)> =
        objects.iter().flat_map(|path| [whole(path), whole(&format!("{path}/status"))]).collect();
    let api = Api::of_both(
        [node("n1", UUID, &[])],
        known.iter().map(|(path, object)| (path.as_str(), object.clone())),
    );
    api.hooks(&barred);
    let release = unbound(&api, json!({}));
    let all: Vec<&Pod> = pods.iter().collect();
    let word: picket_reach::LastWord = Arc::new(|| Ok(()));
    let deleted = deleting::delete(&release.cluster, &all, &word, soon()).await;
    assert_eq!((deleted.sent, deleted.refused.len()), (1, 20), "{deleted:?}");
    let why = deleted.why.expect("it is told why");
    assert!(why.unknown, "part of it may have been stored before the webhook was asked again");
    assert!(why.to_string().contains("failed calling webhook \"guard.example.org\""), "{why}");
    let asked = api.changes();
    for name in barred.iter().map(String::as_str).chain(["guard"]) {
        let delete = format!("DELETE /api/v1/namespaces/default/pods/{name}");
        assert!(asked.contains(&delete), "a status that is refused keeps no pod: {delete}");
    }
}

/// A webhook whose time is long leaves an attempt no time for the rest: they come first in the next one.
#[test]
fn whom_the_last_attempt_asked_in_vain_comes_last() {
    let (_, pods) = guarded();
    let all = || pods.iter().collect::<Vec<&Pod>>();
    let names = |pods: &[&Pod]| pods.iter().map(|pod| pod.metadata.name.clone()).collect::<Vec<String>>();
    let mut refused = RefusedPods::default();
    let first = names(&refused.in_turn(all()));
    assert_eq!(first, names(&all()));
    refused.note(&first[..16].iter().cloned().collect());
    let second = names(&refused.in_turn(all()));
    assert_eq!((&second[..5], &second[5..]), (&first[16..], &first[..16]));
    refused.note(&second[..5].iter().cloned().collect());
    assert_eq!(names(&refused.in_turn(all())), first, "each was asked for: from the beginning");
}

#[tokio::test]
async fn a_deletion_on_its_way_is_refused_for_every_pod_that_can_be_changed() {
    let (barred, pods) = guarded();
    let list = json!({ "items": pods.iter().map(|pod| json!({ "metadata": {
        "name": pod.metadata.name, "namespace": "default", "uid": pod.metadata.uid, "resourceVersion": "5" } })).collect::<Vec<_>>() });
    let status = "/api/v1/namespaces/default/pods/guard/status";
    let api =
        Api::with([("/api/v1/pods", list), (status, json!({ "metadata": { "resourceVersion": "6" } }))]);
    api.hooks(&barred);
    let release = unbound(&api, json!({}));
    let stores = crate::stores::Stores::default();
    let ours = crate::note::Ours { owner: "picket".to_owned(), node: "n1".to_owned(), stores };
    let failed =
        deleting::outdate(&release.cluster, "n1", &ours, soon()).await.expect_err("some are as they were");
    assert!(failed.to_string().contains("failed calling webhook"), "{failed}");
    assert!(api.changes().contains(&format!("PATCH {status}")), "{:?}", api.changes());
}

/// A webhook on Nodes refuses the very first mark: whoever has kubectl alone reads why at the Node.
#[tokio::test(start_paused = true)]
async fn what_keeps_a_release_is_told_at_its_node() {
    let api = Api::of([node("n1", UUID, &[])]);
    api.hooks(&["n1".to_owned()]);
    let (release, subject) = (with(&api, json!({ "find_by": "system_uuid" })), subject(whose(None, UUID)));
    for _ in 0..20 {
        release.cordon(&subject, soon()).await.expect_err("it is refused");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let [note] = &api.notes()[..] else { panic!("once: {:?}", api.notes()) };
    assert!(
        note.starts_with("its volumes are not let go yet: patch /api/v1/nodes/n1: Internal error"),
        "{note}"
    );
    assert!(note.contains("failed calling webhook \"guard.example.org\""), "{note}");
}
