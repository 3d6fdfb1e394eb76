//! The lease of a Node that medik8s' operators share, so that one of them works on it: `node-NAME` in
//! `medik8s-leases`.
//!
//! # Invariants
//!
//! - Somebody else's lease is waited for. It is taken only once it was not renewed for its whole duration,
//!   by our own clock. Shown by `another_s_lease_is_over_once_it_was_not_renewed_for_its_duration`.
//! - Where that namespace does not exist no such lease is taken.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::{Api, Body};
use crate::decider::Node;
use crate::fault::Fault;
use crate::object::SeenLease;

const NAMESPACE: &str = "medik8s-leases";
/// Whose it is: of all replicas, so that whoever leads next goes on.
const HOLDER: &str = "picket-controller";
/// For how long it is good.
const HELD: Duration = Duration::from_secs(120);

/// What became of asking for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It is ours.
    Ours,
    /// There is no such namespace: nobody takes such leases here.
    NoLeases,
    /// Somebody else works on the Node.
    Held(String),
}

/// Whether such leases are taken; the versions of others' leases, and since when they are seen.
#[derive(Debug)]
pub struct Medik8sLeases {
    is_used: bool,
    others: Mutex<BTreeMap<String, (String, Instant)>>,
}

impl Medik8sLeases {
    /// Nothing was seen yet.
    pub fn new(is_used: bool) -> Self {
        Self { is_used, others: Mutex::default() }
    }

    /// Whether that version was not renewed for so long as it was looked at.
    fn is_over(&self, node: &str, version: &str, held: Duration) -> bool {
        let mut others = self.others.lock();
        match others.get(node) {
            Some((seen, since)) if seen == version => since.elapsed() > held,
            _ => {
                others.insert(node.to_owned(), (version.to_owned(), Instant::now()));
                false
            }
        }
    }
}

fn all() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
}

fn path(node: &str) -> String {
    format!("{}/node-{node}", all())
}

/// Takes it, or renews it.
///
/// # Errors
/// The API server does not answer, or refuses.
pub async fn take(api: &Api, node: &Node, leases: &Medik8sLeases) -> Result<LeaseOutcome, Fault> {
    if !leases.is_used {
        return Ok(LeaseOutcome::NoLeases);
    }
    let found = api.find::<SeenLease>(&path(&node.name)).await?;
    let now = crate::events::micro_time();
    let spec = |acquired: &str, transitions: i64| {
        json!({
            "holderIdentity": HOLDER,
            "leaseDurationSeconds": HELD.as_secs(),
            "acquireTime": acquired,
            "renewTime": now,
            "leaseTransitions": transitions,
        })
    };
    let mut metadata = json!({
        "name": format!("node-{}", node.name),
        "namespace": NAMESPACE,
        "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid }],
    });
    let (method, place, spec) = match found {
        None => (Method::POST, all(), spec(&now, 0)),
        Some(lease) => {
            let version = lease.metadata.resource_version.clone().unwrap_or_default();
            let holder = lease.spec.holder_identity.clone().unwrap_or_default();
            let is_own = holder == HOLDER;
            let held = Duration::from_secs(lease.spec.lease_duration_seconds.unwrap_or(0));
            if !is_own && !holder.is_empty() && !leases.is_over(&node.name, &version, held) {
                return Ok(LeaseOutcome::Held(holder));
            }
            metadata["resourceVersion"] = json!(version);
            let acquired = lease.spec.acquire_time.filter(|_| is_own).unwrap_or_else(|| now.clone());
            let transitions = lease.spec.lease_transitions.unwrap_or(0) + i64::from(!is_own);
            (Method::PUT, path(&node.name), spec(&acquired, transitions))
        }
    };
    let body = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec });
    match api.send(method, &place, Body::Whole(&body)).await {
        Ok(_) => Ok(LeaseOutcome::Ours),
        Err(fault) if fault.is_not_found() => Ok(LeaseOutcome::NoLeases),
        Err(fault) if fault.is_changed() => Ok(LeaseOutcome::Held("somebody who was quicker".to_owned())),
        Err(fault) => Err(fault),
    }
}

/// Looks whether somebody else has it than the NodeHealthCheck that asks. A remediation that no NodeHealthCheck owns passes by the lease of none:
/// that one works on the Node for another remediation. Takes nothing.
///
/// # Errors
/// The API server does not answer, or refuses.
pub async fn heed(
    api: &Api,
    node: &Node,
    health_check: Option<&str>,
    leases: &Medik8sLeases,
) -> Result<LeaseOutcome, Fault> {
    if !leases.is_used {
        return Ok(LeaseOutcome::NoLeases);
    }
    let Some(lease) = api.find::<SeenLease>(&path(&node.name)).await? else {
        return Ok(LeaseOutcome::NoLeases);
    };
    let holder = lease.spec.holder_identity.clone().unwrap_or_default();
    let held = Duration::from_secs(lease.spec.lease_duration_seconds.unwrap_or(0));
    let version = lease.metadata.resource_version.unwrap_or_default();
    let is_free = holder.is_empty() || is_accepted(&holder, health_check);
    Ok(match is_free || leases.is_over(&node.name, &version, held) {
        true => LeaseOutcome::Ours,
        false => LeaseOutcome::Held(holder),
    })
}

fn is_accepted(holder: &str, health_check: Option<&str>) -> bool {
    let of_health_check = holder.strip_prefix("NodeHealthCheck-").filter(|name| !name.is_empty());
    holder == HOLDER || of_health_check.is_some_and(|name| health_check == Some(name))
}

/// Gives it back, where it is ours.
///
/// # Errors
/// The API server does not answer, or refuses.
pub async fn give_back(api: &Api, node: &str, leases: &Medik8sLeases) -> Result<(), Fault> {
    if !leases.is_used {
        return Ok(());
    }
    let Some(lease) = api.find::<SeenLease>(&path(node)).await? else { return Ok(()) };
    if lease.spec.holder_identity.as_deref() != Some(HOLDER) {
        return Ok(());
    }
    let body: Value = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": { "uid": lease.metadata.uid, "resourceVersion": lease.metadata.resource_version },
    });
    match api.send(Method::DELETE, &path(node), Body::Whole(&body)).await {
        Err(fault) if !fault.is_not_found() && !fault.is_changed() => Err(fault),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_of_the_health_check_that_asks_is_accepted_and_no_other_one() {
        for (holder, health_check, accepted) in [
            ("NodeHealthCheck-workers", Some("workers"), true),
            ("NodeHealthCheck-workers", None, false),
            ("NodeHealthCheck-", Some(""), false),
            ("NodeHealthCheck-others", Some("workers"), false),
            ("picket-controller", Some("workers"), true),
            ("node-maintenance", None, false),
        ] {
            assert_eq!(is_accepted(holder, health_check), accepted, "{holder}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_s_lease_is_over_once_it_was_not_renewed_for_its_duration() {
        let (leases, held) = (Medik8sLeases::new(true), Duration::from_secs(60));
        assert!(!leases.is_over("n1", "7", held));
        tokio::time::advance(held).await;
        assert!(!leases.is_over("n1", "7", held));
        assert!(!leases.is_over("n1", "8", held), "it was renewed");
        tokio::time::advance(held + Duration::from_secs(1)).await;
        assert!(leases.is_over("n1", "8", held));
    }
}
