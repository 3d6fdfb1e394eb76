//! Everybody who plays: gateways, the store, the far sides, the world.

use std::sync::Arc;

use picket_core::ids::NodeId;
use picket_core::record::NodeRecord;
use picket_driver_sim::Random;

use crate::far::{FarSide, Quorum};
use crate::gateway::Gateway;
use crate::people::Lines;
use crate::scene::Scene;

/// All of them.
#[derive(Debug)]
pub(crate) struct Cast {
    pub(crate) scene: Arc<Scene>,
    pub(crate) quorum: Arc<Quorum>,
    pub(crate) far: Arc<FarSide>,
    pub(crate) gateways: Vec<Gateway>,
}

impl Cast {
    pub(crate) fn new(scene: &Arc<Scene>, random: &mut Random) -> Self {
        let quorum = Quorum::new(scene.clone(), random.bits());
        let far = FarSide::new(scene.clone(), random.bits());
        let gateways = (0..scene.shape.gateways)
            .map(|id| Gateway::new(id, scene, &quorum, &far, random.bits()))
            .collect();
        Self { scene: scene.clone(), quorum, far, gateways }
    }

    pub(crate) fn start_all(&mut self) {
        self.gateways.iter_mut().for_each(Gateway::start);
    }

    /// Those that reached their point of death are gone; nobody else ends by itself.
    pub(crate) async fn bury(&mut self) {
        for gateway in &mut self.gateways {
            if gateway.is_dead() {
                gateway.kill().await;
            } else if gateway.ended_by_itself() {
                self.scene.broken(format!("g{} ended although nobody told it", gateway.id));
            }
        }
    }

    pub(crate) fn lines(&self) -> Lines {
        Lines::to(&self.gateways, 0)
    }

    pub(crate) fn record(&self, node: &NodeId) -> Arc<NodeRecord> {
        self.scene.past(|past| past.record(node).clone())
    }
}
