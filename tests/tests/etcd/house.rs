//! Gateways' ends of an etcd.

use std::sync::Arc;
use std::time::Duration;

use picket_config::{EtcdSettings, EtcdTls};
use picket_core::election::{Election, Won};
use picket_core::ids::Incarnation;
use picket_core::store::Guard;
use picket_core::time::Clock;
use picket_engine::clock::SystemClock;
use picket_etcd::{Candidate, Etcd, EtcdElection, EtcdStore, Random};

/// What one gateway has of etcd.
pub struct House {
    pub etcd: Etcd,
    pub store: EtcdStore,
    pub election: EtcdElection,
}

pub fn settings(endpoints: Vec<String>) -> EtcdSettings {
    EtcdSettings {
        endpoints,
        tls: EtcdTls::default(),
        user: None,
        prefix: "/picket/".to_owned(),
        request: Duration::from_secs(2),
        dial: Duration::from_secs(1),
        allow_lease_bug: false,
    }
}

pub fn candidate(gateway: &str) -> Candidate {
    Candidate {
        gateway: gateway.to_owned(),
        endpoints: vec![format!("https://{gateway}:7070")],
        version: "0.4.0".to_owned(),
        least_version: None,
        digest: "same".to_owned(),
        take_over_settings: false,
        lease: Duration::from_secs(3),
    }
}

fn random() -> Random {
    Arc::new(|bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has randomness"))
}

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

impl House {
    pub fn new(settings: EtcdSettings, candidate: Candidate) -> Self {
        let etcd = Etcd::new(settings, clock(), random());
        Self { store: etcd.store(), election: etcd.election(candidate), etcd }
    }

    /// A gateway of this name.
    pub fn named(endpoints: Vec<String>, gateway: &str) -> Self {
        Self::new(settings(endpoints), candidate(gateway))
    }

    /// Leads within ten seconds.
    pub async fn lead(&self) -> Won {
        let won = tokio::time::timeout(Duration::from_secs(10), self.election.campaign()).await;
        won.expect("an election within 10 s").expect("an election")
    }

    pub async fn life(&self) -> Incarnation {
        self.etcd.look().await.expect("the store's life")
    }
}

pub fn guard(won: &Won) -> Guard {
    Guard { term: won.term, incarnation: won.incarnation }
}
