//! Whether the login may do what a fence asks for, said before it is needed: the API server tells by `SelfSubjectAccessReview`, which
//! everybody may ask for (`system:basic-user`).

use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// A verb on a resource, of one namespace or of all.
#[derive(Clone, Copy, Debug)]
struct Right {
    verb: &'static str,
    group: &'static str,
    /// `pods`, or `pods/status`.
    resource: &'static str,
    namespace: &'static str,
}

const fn may(verb: &'static str, group: &'static str, resource: &'static str) -> Right {
    Right { verb, group, resource, namespace: "" }
}

/// What a login needs, and what gives it.
#[derive(Debug)]
pub(crate) struct Needed {
    all: &'static [Right],
    given_by: &'static str,
}

/// The namespace `kube-system` is read by every request, and tells for itself.
pub(crate) const RELEASE: Needed = Needed { all: NODES, given_by: "deploy/kubernetes/release.yaml" };

/// Where the Machines of Cluster API are.
pub(crate) const MACHINES: Needed = Needed {
    all: &[
        may("get", "cluster.x-k8s.io", "machines"),
        may("list", "cluster.x-k8s.io", "machines"),
        may("patch", "cluster.x-k8s.io", "machines"),
    ],
    given_by: "deploy/kubernetes/machines.yaml",
};

/// With `network_fences = "undone"`.
pub(crate) const NETWORK_FENCES: Needed = Needed {
    all: &[
        may("list", "csiaddons.openshift.io", "networkfences"),
        may("create", "csiaddons.openshift.io", "networkfences"),
        may("delete", "csiaddons.openshift.io", "networkfences"),
        may("list", "csiaddons.openshift.io", "networkfenceclasses"),
    ],
    given_by: "deploy/kubernetes/networkfences.yaml",
};

const NODES: &[Right] = &[
    may("get", "", "nodes"),
    may("list", "", "nodes"),
    may("patch", "", "nodes"),
    may("list", "", "pods"),
    may("delete", "", "pods"),
    may("patch", "", "pods/status"),
    may("list", "storage.k8s.io", "volumeattachments"),
    may("get", "", "persistentvolumeclaims"),
    may("get", "", "persistentvolumes"),
    may("list", "", "persistentvolumes"),
    may("get", "storage.k8s.io", "csidrivers"),
    may("list", "storage.k8s.io", "csidrivers"),
    may("list", "storage.k8s.io", "csinodes"),
    Right { namespace: "default", ..may("create", "events.k8s.io", "events") },
    Right { namespace: "kube-node-lease", ..may("get", "coordination.k8s.io", "leases") },
];

#[derive(Deserialize)]
struct Review {
    status: Answer,
}

#[derive(Deserialize)]
struct Answer {
    allowed: bool,
}

impl Right {
    fn review(&self) -> Value {
        let (resource, part) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        let asked = json!({
            "verb": self.verb, "group": self.group, "resource": resource, "subresource": part,
            "namespace": self.namespace,
        });
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": asked },
        })
    }

    /// As `kubectl auth can-i` calls it.
    fn words(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let within = match self.namespace {
            "" => String::new(),
            namespace => format!(" in the namespace {namespace}"),
        };
        format!("{} {}{dot}{}{within}", self.verb, self.resource, self.group)
    }
}

/// What the login lacks; `None`: nothing.
pub(crate) async fn lacking(
    cluster: &Cluster,
    needed: &Needed,
    until: Instant,
) -> Result<Option<String>, Fault> {
    let asked = needed.all.iter().map(async |right| {
        let body = right.review();
        let review: Review = cluster.question(REVIEWS, &body, until).await?;
        Ok((!review.status.allowed).then(|| right.words()))
    });
    let answers: Result<Vec<Option<String>>, Fault> = join_all(asked).await.into_iter().collect();
    let lacking: Vec<String> = answers?.into_iter().flatten().collect();
    Ok((!lacking.is_empty())
        .then(|| format!("its login may not {}: {} has what it needs", lacking.join(", "), needed.given_by)))
}
