//! Whose reboot is planned by kured: its lock is an annotation on its DaemonSet.

use std::collections::BTreeSet;

use kube::core::Object;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::api::Api;
use crate::fault::Fault;
use crate::settings::DaemonSet;
use crate::watch::Seen;

const LOCKS: [&str; 2] = ["weave.works/kured-node-lock", "kured.dev/kured-node-lock"];

/// Looks at the lock; where there is no kured there is none. Where it cannot be read what was known stays.
pub(crate) async fn look(api: Api, of: DaemonSet, to: mpsc::Sender<Seen>) {
    let Ok(found) = find(&api, &of).await else { return };
    let annotations = found.and_then(|found| found.metadata.annotations).unwrap_or_default();
    let nodes =
        LOCKS.iter().filter_map(|lock| annotations.get(*lock)).flat_map(|lock| holders(lock)).collect();
    let _ = to.send(Seen::Rebooting(nodes)).await;
}

async fn find(api: &Api, of: &DaemonSet) -> Result<Option<Object<Value, Value>>, Fault> {
    api.find(&format!("/apis/apps/v1/namespaces/{}/daemonsets/{}", of.namespace, of.name)).await
}

/// Where somebody said where it is it has to be there: else nobody's reboot is heeded. In words what is wrong.
pub(crate) async fn missing(api: &Api, of: &DaemonSet) -> Option<String> {
    let is_missing = of.is_named() && matches!(find(api, of).await, Ok(None));
    is_missing.then(|| {
        format!("kubernetes.kured: there is no DaemonSet {of}, so that no reboot of kured's is heeded")
    })
}

/// One holder, or several where kured lets several reboot at once.
fn holders(lock: &str) -> BTreeSet<String> {
    let Ok(lock) = serde_json::from_str::<Value>(lock) else { return BTreeSet::new() };
    let several = lock["locks"].as_array().into_iter().flatten();
    let all = several.chain([&lock]).filter_map(|one| one["nodeID"].as_str());
    all.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_names_one_node_or_several() {
        let names = |lock| holders(lock).into_iter().collect::<Vec<_>>();
        assert_eq!(
            names(r#"{"nodeID":"n1","metadata":{},"created":"2026-01-01T00:00:00Z","TTL":0}"#),
            ["n1"]
        );
        assert_eq!(names(r#"{"maxOwners":2,"locks":[{"nodeID":"n1"},{"nodeID":"n2"}]}"#), ["n1", "n2"]);
        assert_eq!(names(""), [] as [&str; 0]);
        assert_eq!(names("{}"), [] as [&str; 0]);
    }
}
