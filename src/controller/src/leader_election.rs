//! One of several replicas leads, by a Lease. Nothing unsafe depends on it: two that ask at once ask under
//! the same key.
//!
//! # Invariants
//!
//! - The leader knows on its own clock until when it leads, and asks nothing after that. That is ten
//!   seconds after a renewal was *sent* that succeeded. The others wait for fifteen seconds without a
//!   renewal.
//! - A lease's own times are compared with no clock (K9).

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::{Api, Body};
use crate::fault::Fault;
use crate::object::{LeaseSpec, SeenLease};
use crate::settings::Settings;

/// For how long others wait for a renewal.
const HELD: Duration = Duration::from_secs(15);
/// For how long a renewal is good for who has it.
const GOOD: Duration = Duration::from_secs(10);
/// How often it is looked at, and renewed.
const EVERY: Duration = Duration::from_secs(2);

/// Until when this replica leads; `None`: it does not.
#[derive(Clone, Debug)]
pub struct LeadershipWatch(watch::Receiver<Option<Instant>>);

impl LeadershipWatch {
    /// Whether it leads at this moment.
    pub fn now(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Waits until it does not any more.
    pub async fn lost(&mut self) {
        loop {
            let until = *self.0.borrow_and_update();
            match until.filter(|until| Instant::now() < *until) {
                None => return,
                Some(until) => {
                    // Renewed, or over, or nobody renews any more.
                    let _ = tokio::time::timeout_at(until, self.0.changed()).await;
                }
            }
        }
    }
}

/// Stands for election, for as long as it is polled.
#[derive(Debug)]
pub struct LeaderElection {
    api: Api,
    path: String,
    all: String,
    identity: String,
    name: String,
    until: watch::Sender<Option<Instant>>,
    /// The version of the lease that was seen last, and since when.
    seen: Option<(String, Instant)>,
}

impl LeaderElection {
    /// Nothing is sent yet.
    pub fn new(api: Api, settings: &Settings) -> (Self, LeadershipWatch) {
        let (until, leading) = watch::channel(None);
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", settings.lease_namespace);
        let election = Self {
            api,
            path: format!("{all}/{}", settings.lease),
            all,
            identity: settings.identity.clone(),
            name: settings.lease.clone(),
            until,
            seen: None,
        };
        (election, LeadershipWatch(leading))
    }

    /// Never ends by itself.
    pub async fn run(mut self) {
        let mut told = String::new();
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let asked = Instant::now();
            let answer = tokio::time::timeout(GOOD / 2, self.once()).await;
            let words = match answer {
                Ok(Ok(true)) => {
                    let before = self.until.send_replace(Some(asked + GOOD));
                    if before.is_none_or(|until| until < asked) {
                        tracing::info!(lease = %self.path, "this replica leads");
                    }
                    String::new()
                }
                Ok(Ok(false)) => {
                    if self.until.send_replace(None).is_some() {
                        tracing::warn!(lease = %self.path, "another replica leads");
                    }
                    String::new()
                }
                Ok(Err(fault)) => fault.to_string(),
                Err(_) => "the API server did not answer in time".to_owned(),
            };
            if !words.is_empty() && words != told {
                tracing::warn!(lease = %self.path, why = %words, "the lease of the leader cannot be looked at or renewed");
            }
            told = words;
        }
    }

    /// Whether this replica leads, from when this was asked.
    async fn once(&mut self) -> Result<bool, Fault> {
        let Some(lease) = self.api.find::<SeenLease>(&self.path).await? else {
            let body = self.body(json!({ "name": self.name }), &LeaseSpec::default(), false);
            return taken(self.api.send(Method::POST, &self.all, Body::Whole(&body)).await);
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let holder = lease.spec.holder_identity.clone().unwrap_or_default();
        let is_own = holder == self.identity;
        if !is_own && !holder.is_empty() && !self.is_over(&version) {
            return Ok(false);
        }
        let metadata = json!({ "name": self.name, "resourceVersion": version });
        let body = self.body(metadata, &lease.spec, is_own);
        taken(self.api.send(Method::PUT, &self.path, Body::Whole(&body)).await)
    }

    /// Whether it was not renewed for so long as it was looked at.
    fn is_over(&mut self, version: &str) -> bool {
        match &self.seen {
            Some((seen, since)) if seen == version => since.elapsed() > HELD,
            _ => {
                self.seen = Some((version.to_owned(), Instant::now()));
                false
            }
        }
    }

    fn body(&self, metadata: Value, found: &LeaseSpec, is_own: bool) -> Value {
        let now = crate::events::micro_time();
        let transitions = found.lease_transitions.unwrap_or(0) + i64::from(!is_own);
        let acquired = found.acquire_time.clone().filter(|_| is_own).unwrap_or_else(|| now.clone());
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": HELD.as_secs(),
                "acquireTime": acquired,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        })
    }
}

/// Gives the lease up, where it is this replica's, so that nobody has to wait.
///
/// # Errors
/// The API server does not answer, or refuses.
pub async fn resign(api: &Api, settings: &Settings) -> Result<(), Fault> {
    let (election, _) = LeaderElection::new(api.clone(), settings);
    let Some(lease) = api.find::<SeenLease>(&election.path).await? else { return Ok(()) };
    if lease.spec.holder_identity.as_deref() != Some(&settings.identity) {
        return Ok(());
    }
    let metadata = json!({ "name": settings.lease, "resourceVersion": lease.metadata.resource_version });
    let mut body = election.body(metadata, &lease.spec, true);
    body["spec"]["holderIdentity"] = json!("");
    taken(api.send(Method::PUT, &election.path, Body::Whole(&body)).await).map(drop)
}

fn taken(answer: Result<Value, Fault>) -> Result<bool, Fault> {
    match answer {
        Ok(_) => Ok(true),
        // Somebody else was quicker.
        Err(fault) if fault.is_changed() => Ok(false),
        Err(fault) => Err(fault),
    }
}
