//! A pod that taint eviction is always about to delete (K4).

use std::time::Duration;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::api::Api;
use super::{UUID, node, release, soon, subject, whose};

/// A Node with a taint by which a pod without a toleration is evicted at any moment, and such a pod. The API's clock stands still beside ours:
/// by what the pod says, that stays so without an end.
fn with_a_pod() -> (Value, Value) {
    let now = OffsetDateTime::now_utc().format(&Rfc3339).expect("a time");
    let mut node = node("n1", UUID, &[]);
    let taint = json!({ "key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": now });
    node["spec"]["taints"] = json!([taint]);
    let meta = json!({ "name": "p", "namespace": "b", "uid": "u", "resourceVersion": "5" });
    (node, json!({ "items": [{ "metadata": meta }] }))
}

/// Its owner lengthens its toleration each time that it is about to run out: the volumes of a machine that is off are not kept for that.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_always_about_to_be_evicted_goes_after_half_a_minute() {
    let (node, pods) = with_a_pod();
    let release = release(&Api::of_both([node], [("/api/v1/pods", pods)]));
    let mut asked = subject(whose(None, UUID));
    for (passes, round, goes) in [(0, 0, false), (35, 0, false), (1, 0, true), (1, 0, true), (1, 1, false)] {
        tokio::time::advance(Duration::from_secs(passes)).await;
        asked.round = round;
        let prepared = release.before_attempt(&asked, soon()).await.expect("it is read");
        assert_eq!(prepared.beside.is_some(), goes, "after {passes} s more, in round {round}");
    }
}
