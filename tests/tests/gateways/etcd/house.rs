//! Gateways' ends of an etcd.

use std::sync::Arc;
use std::time::Duration;

use picket_config::{EtcdSettings, EtcdTls};
use picket_core::election::{Election, Known, Leadership, Member, Won, lead};
use picket_core::ids::Incarnation;
use picket_core::store::Guard;
use picket_core::time::Clock;
use picket_engine::clock::SystemClock;
use picket_etcd::{Candidate, Etcd, EtcdElection, EtcdStore, Random};
use picket_tests::peers::HANGS;

use super::raw::Raw;

/// Half of a lease at leisure.
pub const SOONER: Duration = Duration::from_secs(30);

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
        members: Default::default(),
        request: Duration::from_secs(2),
        dial: Duration::from_secs(1),
        allow_lease_bug: false,
    }
}

pub fn candidate(gateway: &str) -> Candidate {
    Candidate {
        me: Member {
            gateway: gateway.to_owned(),
            endpoints: vec![format!("https://{gateway}:7070")],
            version: "0.4.0".to_owned(),
            aside: None,
        },
        least_version: None,
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

    /// The same, with a lease of a minute: what comes sooner has not waited for the end of one.
    pub fn at_leisure(endpoints: Vec<String>, gateway: &str) -> Self {
        Self::new(settings(endpoints), Candidate { lease: 2 * SOONER, ..candidate(gateway) })
    }

    /// Leads, also on a machine that has much to do.
    pub async fn lead(&self) -> Won {
        let won = tokio::time::timeout(HANGS, self.election.campaign()).await;
        won.unwrap_or_else(|_| panic!("no election: {:?}", self.etcd)).expect("an election")
    }

    /// The same, and has the permit.
    pub async fn permit(&self) -> Arc<Leadership> {
        let jump = Duration::from_secs(1);
        let won = tokio::time::timeout(HANGS, lead(&self.election, clock(), jump)).await;
        won.unwrap_or_else(|_| panic!("no election: {:?}", self.etcd)).expect("an election")
    }

    pub async fn life(&self) -> Incarnation {
        self.etcd.look().await.expect("the store's life")
    }
}

pub fn guard(won: &Won) -> Guard {
    Guard { term: won.term, incarnation: won.incarnation }
}

/// The first member, for what a gateway never does.
pub fn raw(endpoints: &[String]) -> Raw {
    Raw::at(&endpoints[0])
}

/// Asks until it says yes, while a campaign goes on that nobody wins meanwhile.
pub async fn beside<W: std::fmt::Debug>(
    campaign: &mut (impl Future<Output = W> + Unpin),
    what: &str,
    seen: impl AsyncFnMut() -> bool,
) {
    tokio::select! {
        won = campaign => panic!("{what}: another one leads, and {won:?}"),
        () = soon(what, seen) => {}
    }
}

/// Asks until it says yes.
pub async fn soon(what: &str, seen: impl AsyncFnMut() -> bool) {
    within(HANGS, what, seen).await;
}

/// The same of what comes sooner than the end of a lease of [`House::at_leisure`].
pub async fn sooner(what: &str, seen: impl AsyncFnMut() -> bool) {
    within(SOONER, what, seen).await;
}

async fn within(time: Duration, what: &str, mut seen: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + time;
    while !seen().await {
        assert!(tokio::time::Instant::now() < deadline, "not within {time:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Who leads, as `house` sees it.
pub fn leader(house: &House) -> Option<String> {
    match house.election.known() {
        Known::Leader(member, _) => Some(member.gateway),
        Known::Nobody(_) | Known::Away(..) => None,
    }
}
