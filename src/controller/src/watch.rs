//! Watches: Nodes, their leases, policies; and looks at suspects, each of which is a question to a quorum.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::api::ApiResource;
use kube::core::Object;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watched};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::api::Api;
use crate::crd;
use crate::decider::Node;
use crate::fault::Fault;
use crate::object::{self, SeenLease, SeenNode, SeenPolicy, SeenRemediation};
use crate::remediation_cache::RemediationCache;

/// Where kubelets have their leases.
const LEASES: &str = "kube-node-lease";
/// So many suspects are looked at in one round, and so many at once.
pub const SUSPECTS: usize = 128;
const AT_ONCE: usize = 16;
/// How long a look may take: two rounds must fit between looks that count as one.
const LOOK: Duration = Duration::from_secs(2);

/// What was seen.
#[derive(Debug)]
pub enum WatchEvent {
    /// A Node; when the question was sent, or the watch told it.
    Node(Box<Node>, Instant),
    /// There is no such Node any more.
    Gone(String),
    /// There are these Nodes and no others.
    Nodes(BTreeSet<String>),
    /// A Node's lease, with its renewal.
    Lease(String, String, Instant),
    /// All leases were told.
    Leases,
    /// All policies that there are.
    Policies(Vec<SeenPolicy>),
    /// A watch broke, or cannot begin; it is begun again.
    Broken(&'static str, String),
    /// A lock for reboots is held for these Nodes.
    Rebooting(BTreeSet<String>),
    /// A round of looks is over.
    Looked,
}

type Sender = mpsc::Sender<WatchEvent>;

/// Watches Nodes until nobody listens.
pub async fn nodes(api: Api, to: Sender) {
    let mut names = BTreeSet::new();
    each::<SeenNode>("nodes", all(&api, &object::nodes()), to, move |event| match event {
        Event::Init => {
            names.clear();
            Vec::new()
        }
        Event::InitApply(seen) => {
            let node = object::node(seen);
            names.insert(node.name.clone());
            vec![WatchEvent::Node(Box::new(node), Instant::now())]
        }
        Event::InitDone => vec![WatchEvent::Nodes(names.clone())],
        Event::Apply(seen) => vec![WatchEvent::Node(Box::new(object::node(seen)), Instant::now())],
        Event::Delete(seen) => vec![WatchEvent::Gone(seen.metadata.name.unwrap_or_default())],
    })
    .await;
}

/// Watches the kubelets' leases until nobody listens.
pub async fn leases(api: Api, to: Sender) {
    let leases = kube::Api::<SeenLease>::namespaced_with(api.client(), LEASES, &object::leases());
    each("leases", leases, to, |event| match event {
        Event::Apply(lease) | Event::InitApply(lease) => {
            let (name, renewal) = (lease.metadata.name, lease.spec.renew_time);
            vec![WatchEvent::Lease(name.unwrap_or_default(), renewal.unwrap_or_default(), Instant::now())]
        }
        Event::InitDone => vec![WatchEvent::Leases],
        // A Node without a lease is one whose lease stands still.
        Event::Init | Event::Delete(_) => Vec::new(),
    })
    .await;
}

/// Watches policies until nobody listens.
pub async fn policies(api: Api, to: Sender) {
    whole("fencingpolicies", all(&api, &object::policies()), to, WatchEvent::Policies).await;
}

/// Remediations, as they were seen last.
pub type Remediations = Vec<Arc<SeenRemediation>>;

/// Watches remediations until nobody listens; never ends where nobody wants them. Of those of other namespaces than these few are told. What was told
/// before is not waited for: many may be changed many times a second, by whoever may make them.
pub async fn remediations(
    api: Api,
    namespaces: Option<Vec<String>>,
    to: Sender,
    latest: watch::Sender<Remediations>,
) {
    let Some(namespaces) = namespaces else { return std::future::pending().await };
    let (mut known, mut is_whole) = (RemediationCache::of(namespaces), false);
    each::<SeenRemediation>("picketremediations", all(&api, &object::remediations()), to, move |event| {
        let is_other = match event {
            Event::Init => {
                known.clear();
                is_whole = false;
                false
            }
            Event::InitDone => {
                is_whole = true;
                true
            }
            Event::Apply(one) | Event::InitApply(one) => known.put(one),
            Event::Delete(one) => known.remove(&one),
        };
        if is_whole && is_other {
            latest.send_replace(known.all());
        }
        Vec::new()
    })
    .await;
}

/// All that there are, each time that one changes.
async fn whole(
    what: &'static str,
    from: kube::Api<Object<Value, Value>>,
    to: Sender,
    told: impl Fn(Vec<Object<Value, Value>>) -> WatchEvent,
) {
    let mut known = std::collections::BTreeMap::new();
    let mut is_whole = false;
    let name = |one: &Object<Value, Value>| (one.metadata.namespace.clone(), one.metadata.name.clone());
    each::<Object<Value, Value>>(what, from, to, move |event| {
        match event {
            Event::Init => {
                known.clear();
                is_whole = false;
            }
            Event::InitDone => is_whole = true,
            Event::Apply(one) | Event::InitApply(one) => drop(known.insert(name(&one), one)),
            Event::Delete(one) => drop(known.remove(&name(&one))),
        }
        // Half of them would be others than were meant.
        if is_whole { vec![told(known.values().cloned().collect())] } else { Vec::new() }
    })
    .await;
}

fn all<K>(api: &Api, resource: &ApiResource) -> kube::Api<K>
where
    K: kube::Resource<DynamicType = ApiResource>,
{
    kube::Api::all_with(api.client(), resource)
}

async fn each<K>(
    what: &'static str,
    from: kube::Api<K>,
    to: Sender,
    mut seen: impl FnMut(Event<K>) -> Vec<WatchEvent>,
) where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut events = watched(from, watcher::Config::default()).default_backoff().boxed();
    loop {
        let told = match events.try_next().await {
            Ok(Some(event)) => seen(event),
            Ok(None) => return,
            Err(error) => vec![WatchEvent::Broken(what, broken(what, &error))],
        };
        for one in told {
            if to.send(one).await.is_err() {
                return;
            }
        }
    }
}

/// Why a watch broke, in words; of a definition of ours that is missing what to do about it.
fn broken(what: &str, error: &watcher::Error) -> String {
    let fault = match error {
        watcher::Error::InitialListFailed(error) => Fault::of("they cannot be listed", error),
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            Fault::of("they cannot be watched", error)
        }
        other => Fault::own(picket_login::chain(other)),
    };
    match [crd::PLURAL, crd::remediation::PLURAL].contains(&what) && fault.is_not_found() {
        true => format!("the definition {what}.{} is missing; apply it: {}", crd::GROUP, crd::APPLY),
        false => fault.to_string(),
    }
}

/// One look at a Node; `None`: there is none, or nobody answers.
pub async fn look(api: &Api, name: &str) -> Option<Node> {
    let path = format!("/api/v1/nodes/{name}");
    let answer = tokio::time::timeout(LOOK, api.get::<Object<_, _>>(&path)).await;
    answer.ok()?.ok().map(object::node)
}

/// Looks at suspects, once each.
pub async fn look_at(api: Api, names: Vec<String>, to: Sender) {
    let one = |name: String| {
        let api = &api;
        async move {
            let asked = Instant::now();
            look(api, &name).await.map(|node| WatchEvent::Node(Box::new(node), asked))
        }
    };
    let end = Instant::now() + LOOK * 2;
    let mut looks =
        futures::stream::iter(names.into_iter().take(SUSPECTS)).map(one).buffer_unordered(AT_ONCE);
    // A round that does not end in time ends all the same.
    while let Ok(Some(seen)) = tokio::time::timeout_at(end, looks.next()).await {
        if let Some(seen) = seen
            && to.send(seen).await.is_err()
        {
            return;
        }
    }
    let _ = to.send(WatchEvent::Looked).await;
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn of_a_definition_that_is_missing_it_is_told_what_makes_it_be_there() {
        let answered = |code: u16, message: &str| {
            let status = Status { code, message: message.to_owned(), ..Status::default() };
            watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        let missing = answered(404, "404 page not found");
        let told = broken(crd::PLURAL, &missing);
        assert!(
            told.contains("fencingpolicies.picket.dev is missing") && told.contains(crd::APPLY),
            "{told}"
        );
        assert!(!broken("nodes", &missing).contains("definition"));
        let forbidden = broken(crd::PLURAL, &answered(403, "nodes is forbidden"));
        assert_eq!(forbidden, "they cannot be listed: nodes is forbidden (403)");
    }
}
