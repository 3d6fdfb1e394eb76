//! What is reckoned by a clock: taint eviction by the API server's (K4), and a return by what was seen since it began (K2).

use std::time::Duration;

use picket_core::ids::Generation;
use picket_release::{Left, Progress};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::api::Api;
use super::{OURS, UUID, node, noted, release, soon, subject, whose};
use crate::taints::{FENCED, OUT_OF_SERVICE};

/// A gateway whose clock is late would delete what taint eviction deletes by its name a moment later, in its new place.
#[tokio::test(start_paused = true)]
async fn when_taint_eviction_comes_is_reckoned_by_the_api_server_s_clock() {
    let key = "node.kubernetes.io/unreachable";
    let tolerates =
        json!([{ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }]);
    let pod = json!({ "metadata": { "name": "p", "namespace": "d", "uid": "u" }, "spec": { "tolerations": tolerates } });
    // By our clock it has half a minute, by the API server's none.
    let since = OffsetDateTime::now_utc() - time::Duration::seconds(270);
    let mut node = node("n1", UUID, &[]);
    let since = since.format(&Rfc3339).expect("a time");
    node["spec"]["taints"] = json!([{ "key": key, "effect": "NoExecute", "timeAdded": since }]);
    for (ahead, goes) in [(0, true), (1, true), (30, false), (40, false), (70, true)] {
        let api = Api::of_both([node.clone()], [("/api/v1/pods", json!({ "items": [pod.clone()] }))]);
        api.is_ahead(ahead);
        let prepared =
            release(&api).before_attempt(&subject(whose(None, UUID)), soon()).await.expect("it is read");
        assert_eq!(prepared.beside.is_some(), goes, "{ahead} s ahead");
        // A look goes by the same.
        let mut standing = node.clone();
        let ours = json!({ "key": OUT_OF_SERVICE, "value": "picket.blue.7", "effect": "NoExecute" });
        standing["spec"]["taints"].as_array_mut().expect("a list").push(ours);
        api.has(standing);
        let seen = release(&api).observe(&subject(whose(None, UUID)), soon()).await.expect("answered");
        assert_eq!(matches!(seen, Progress::NotThere(_)), goes, "{ahead} s ahead: {seen:?}");
    }
}

/// It is ready, and booted anew, since an hour: that was another return.
#[tokio::test(start_paused = true)]
async fn what_was_seen_of_an_earlier_return_says_nothing_of_the_next() {
    let back = |generation: u64, boot: &str| {
        let mut node = noted(node("n1", UUID, &[(FENCED, "picket.blue.7")]), "r1", generation);
        let note = json!({ "owner": "blue", "node": "r1", "generation": generation, "off": true, "bootID": "before" });
        node["metadata"]["annotations"][OURS] = json!(note.to_string());
        node["status"]["nodeInfo"]["bootID"] = json!(boot);
        node
    };
    let left = |generation| Left {
        whose: whose(None, UUID),
        generation: Generation(generation),
        gone: false,
        off: true,
        met_last: None,
    };
    let api = Api::of([back(7, "first")]);
    let release = release(&api);
    for generation in [8, 10] {
        api.has(back(generation - 1, &generation.to_string()));
        let waits = release.clean_up(&left(generation), soon()).await.expect("answered");
        assert!(waits.is_some_and(|why| why.contains("to be ready for 30s")), "{generation}");
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(release.clean_up(&left(generation), soon()).await.expect("answered"), None);
        assert_eq!(api.taints("n1"), [""; 0]);
        tokio::time::advance(Duration::from_secs(3_600)).await;
    }
}
