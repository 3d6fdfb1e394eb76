//! Whose reboot is planned by kured: its lock is an annotation on its DaemonSet.

use std::collections::BTreeSet;

use kube::core::Object;
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};
use tokio::sync::mpsc;

use crate::api::Api;
use crate::fault::Fault;
use crate::settings::DaemonSet;
use crate::watch::WatchEvent;

const LOCKS: [&str; 2] = ["weave.works/kured-node-lock", "kured.dev/kured-node-lock"];

/// Looks at the lock; where there is no kured there is none. Where it cannot be read what was known stays.
pub(crate) async fn look(api: Api, of: DaemonSet, to: mpsc::Sender<WatchEvent>) {
    let Ok(found) = find(&api, &of).await else { return };
    let annotations = found.and_then(|found| found.metadata.annotations).unwrap_or_default();
    let now = OffsetDateTime::now_utc();
    let locks = LOCKS.iter().filter_map(|lock| annotations.get(*lock));
    let nodes = locks.flat_map(|lock| holders(lock, now)).collect();
    let _ = to.send(WatchEvent::Rebooting(nodes)).await;
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

/// One holder, or several where kured lets several reboot at once. A lock that has outlived its TTL is nobody's, as for kured itself.
fn holders(lock: &str, now: OffsetDateTime) -> BTreeSet<String> {
    let Ok(lock) = serde_json::from_str::<Value>(lock) else { return BTreeSet::new() };
    let several = lock["locks"].as_array().into_iter().flatten();
    let standing = several.chain([&lock]).filter(|one| !is_over(one, now));
    let all = standing.filter_map(|one| one["nodeID"].as_str());
    all.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// kured writes the TTL in nanoseconds; none, or 0, is for ever.
fn is_over(lock: &Value, now: OffsetDateTime) -> bool {
    let ttl = lock["TTL"].as_i64().filter(|ttl| *ttl > 0).map(Duration::nanoseconds);
    let created = lock["created"].as_str().and_then(|at| OffsetDateTime::parse(at, &Rfc3339).ok());
    ttl.zip(created).is_some_and(|(ttl, created)| now - created >= ttl)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn names(lock: &str, now: OffsetDateTime) -> Vec<String> {
        holders(lock, now).into_iter().collect()
    }

    #[test]
    fn the_lock_names_one_node_or_several() {
        let names = |lock| names(lock, datetime!(2026-01-02 00:00 UTC));
        assert_eq!(
            names(r#"{"nodeID":"n1","metadata":{},"created":"2026-01-01T00:00:00Z","TTL":0}"#),
            ["n1"]
        );
        assert_eq!(names(r#"{"maxOwners":2,"locks":[{"nodeID":"n1"},{"nodeID":"n2"}]}"#), ["n1", "n2"]);
        assert_eq!(names(""), [] as [&str; 0]);
        assert_eq!(names("{}"), [] as [&str; 0]);
    }

    #[test]
    fn a_lock_that_outlived_its_ttl_excludes_nobody() {
        let one = |id: &str, at: &str| format!(r#"{{"nodeID":"{id}","created":"{at}","TTL":1800000000000}}"#);
        let (old, new) = (one("n1", "2026-01-01T11:30:00.5Z"), one("n2", "2026-01-01T11:45:00+00:00"));
        let now = datetime!(2026-01-01 12:00:01 UTC);
        assert_eq!(names(&old, now), [] as [&str; 0]);
        assert_eq!(names(&old, now - Duration::seconds(2)), ["n1"]);
        assert_eq!(names(&format!(r#"{{"maxOwners":2,"locks":[{old},{new}]}}"#), now), ["n2"]);
    }
}
