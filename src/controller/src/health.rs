//! What `/metrics` and `/readyz` say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use picket_metrics::Metrics;
use picket_metrics::http::Answers;

use crate::lead::Leading;
use crate::measured::LEADING;

/// What was told once since the start.
#[derive(Debug, Default)]
pub struct Told {
    /// All Nodes.
    pub nodes: AtomicBool,
    /// All leases of kubelets.
    pub leases: AtomicBool,
    /// All policies.
    pub policies: AtomicBool,
}

impl Told {
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
    pub leading: Leading,
    /// What was told.
    pub told: Arc<Told>,
}

impl Answers for Health {
    fn metrics(&self) -> String {
        let leads = self.leading.now();
        self.metrics.text(|metrics| metrics.set(&LEADING, &[], if leads { 1.0 } else { 0.0 }))
    }

    /// Whether it does its work, leading or standing by.
    async fn ready(&self) -> Result<String, String> {
        match (&*self.told.missing(), self.leading.now()) {
            ([], true) => Ok("leads".to_owned()),
            ([], false) => Ok("stands by".to_owned()),
            (missing, _) => Err(format!("the API server has not told yet: {}", missing.join(", "))),
        }
    }
}
