//! What the lab's gateway reaches beside devices: who leads, whether a node lives, its volumes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;
use picket_core::election::{Election, ElectionError, Lease, Won};
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_core::store::Store;
use picket_release::{Pace, Progress, Quarantine, ReleaseError, Releaser, Subject, Whose};
use tokio::time::Instant;

use super::s;

#[derive(Debug)]
pub struct StoreElection(pub Arc<dyn Store>);

#[async_trait]
impl Election for StoreElection {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        let term = self.0.take_term().await.map_err(|error| ElectionError::Unavailable(error.to_string()))?;
        Ok(Won { term, incarnation: self.0.incarnation(), lease: Lease::endless() })
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}

/// Says that the node recovered.
#[derive(Debug)]
pub struct Alive;

#[async_trait]
impl picket_liveness::Liveness for Alive {
    fn patience(&self) -> Duration {
        s(2)
    }

    async fn look(&self) -> picket_liveness::Look {
        picket_liveness::Look::Recovered("ready".to_owned())
    }
}

/// Completes at once, or only accepts as long as it is told to.
#[derive(Debug, Default)]
pub struct Volumes {
    pub accepts_only: AtomicBool,
    /// What it says of every Node of Kubernetes; `None`: it knows no such Nodes.
    pub belongs: Mutex<Option<Belongs>>,
}

impl Volumes {
    fn answer(&self) -> Progress {
        match self.accepts_only.load(Ordering::SeqCst) {
            true => Progress::Accepted("working".to_owned()),
            false => Progress::Complete("detached".to_owned()),
        }
    }
}

#[async_trait]
impl Releaser for Volumes {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(s(60))
    }

    fn pace(&self) -> Pace {
        Pace::default()
    }

    fn quarantine(self: Arc<Self>) -> Option<Arc<dyn Quarantine>> {
        // Where no test says what it has, it is in no cluster.
        let is_in_a_cluster = self.belongs.lock().is_some();
        is_in_a_cluster.then_some(self as Arc<dyn Quarantine>)
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        Ok(self.answer())
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Ok(self.answer())
    }
}

#[async_trait]
impl Quarantine for Volumes {
    fn lingers(&self) -> Duration {
        Duration::ZERO
    }

    async fn has(&self, _: &ClusterNode, _: &[Identity], _: Instant) -> Option<Belongs> {
        self.belongs.lock().clone()
    }

    async fn withdraw(&self, _whose: &Whose, _until: Instant) -> Result<(), ReleaseError> {
        Ok(())
    }
}
