//! What `/metrics` and `/readyz` say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use picket_metrics::Metrics;
use picket_metrics::http::Answers;

use crate::leader_election::LeadershipWatch;
use crate::measured::LEADING;

/// What was told once since the start.
#[derive(Debug, Default)]
pub struct InitialSync {
    /// All Nodes.
    pub nodes: AtomicBool,
    /// All leases of kubelets.
    pub leases: AtomicBool,
    /// All policies.
    pub policies: AtomicBool,
    /// By what is watched: why it broke last.
    broken: Mutex<BTreeMap<&'static str, String>>,
}

impl InitialSync {
    /// The watch of that broke.
    pub fn broke(&self, what: &'static str, why: &str) {
        self.broken.lock().insert(what, why.to_owned());
    }

    /// The same with why, as far as it is known.
    fn missing_with_why(&self) -> String {
        let broken = self.broken.lock();
        let one = |name: &str| match broken.get(&*name.to_ascii_lowercase()) {
            Some(why) => format!("{name} ({why})"),
            None => name.to_owned(),
        };
        self.missing().into_iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// What was not told yet.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [("Nodes", &self.nodes), ("leases", &self.leases), ("FencingPolicies", &self.policies)];
        all.into_iter().filter(|(_, told)| !told.load(Ordering::Relaxed)).map(|(name, _)| name).collect()
    }
}

/// What is asked by whoever looks after the process.
#[derive(Clone, Debug)]
pub struct Health {
    /// What is counted.
    pub metrics: Metrics,
    /// Whether this replica leads.
    pub leading: LeadershipWatch,
    /// What was told.
    pub synced: Arc<InitialSync>,
}

impl Answers for Health {
    fn metrics(&self) -> String {
        let leads = self.leading.now();
        self.metrics.text(|metrics| metrics.set(&LEADING, &[], if leads { 1.0 } else { 0.0 }))
    }

    /// Whether it does its work, leading or standing by.
    async fn ready(&self) -> Result<String, String> {
        match (&*self.synced.missing(), self.leading.now()) {
            ([], true) => Ok("leads".to_owned()),
            ([], false) => Ok("stands by".to_owned()),
            _ => Err(format!("the API server has not told yet: {}", self.synced.missing_with_why())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_told_yet_is_named_with_why() {
        let told = InitialSync::default();
        told.nodes.store(true, Ordering::Relaxed);
        assert_eq!(told.missing_with_why(), "leases, FencingPolicies");
        told.broke("fencingpolicies", "the definition is missing");
        assert_eq!(told.missing_with_why(), "leases, FencingPolicies (the definition is missing)");
    }
}
