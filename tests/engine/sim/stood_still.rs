//! An attempt of a release, while the node's task answers a caller and the store hangs: it does not stand still, and power is watched.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Act, SharedWorld, SimClock, Verb};
use picket_release::{Pace, Progress, ReleaseError, Releaser, Subject};
use tokio::time::Instant;

use crate::lab::{Lab, NODE, lab, node, person, s};

/// Sends in steps, each so long after the one before, and asks nobody once it has begun.
#[derive(Debug)]
struct Steps {
    world: SharedWorld,
    clock: Arc<SimClock>,
    steps: Vec<Duration>,
    began: Mutex<Option<BootTime>>,
    /// How long after its beginning each step was sent, and whether the node was on then.
    sent: Mutex<Vec<(Duration, bool)>>,
}

#[async_trait]
impl Releaser for Steps {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(s(60))
    }

    fn pace(&self) -> Pace {
        Pace::default()
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        let began = self.clock.boot();
        *self.began.lock() = Some(began);
        for step in &self.steps {
            tokio::time::sleep(*step).await;
            let now = self.clock.boot();
            let is_on = self.world.lock().truth(permit.node().as_str(), now);
            self.sent.lock().push((now.since(began), is_on));
        }
        Ok(Progress::Complete("gone".to_owned()))
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Ok(Progress::NotThere("never heard of".to_owned()))
    }
}

impl Steps {
    fn sent(&self) -> Vec<(Duration, bool)> {
        self.sent.lock().clone()
    }
}

/// A node whose release is being attempted, in these steps; and from now on the store hangs for ten seconds at each write.
async fn attempting(seed: u64, steps: &[Duration]) -> (Lab, Arc<Steps>) {
    let mut lab = lab(seed).await;
    let releaser = Arc::new(Steps {
        world: lab.world.clone(),
        clock: lab.clock.clone(),
        steps: steps.to_vec(),
        began: Mutex::default(),
        sent: Mutex::default(),
    });
    lab.setup.releases = vec![("detach".to_owned(), releaser.clone())];
    lab.crash().await;
    lab.open().await;
    while releaser.began.lock().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lab.store.linger(s(10));
    (lab, releaser)
}

#[tokio::test(start_paused = true)]
async fn an_attempt_goes_on_while_a_caller_is_answered() {
    let (lab, releaser) = attempting(2710, &[Duration::from_millis(50)]).await;
    lab.engine.hold(&node(), "backup".to_owned(), person()).await.expect("held");
    assert_eq!(releaser.sent(), [(Duration::from_millis(50), false)], "by the look that permitted it");
    lab.store.linger(Duration::ZERO);
    lab.reach("released", s(60)).await;
    assert!(lab.record().holds.contains_key("backup"));
}

#[tokio::test(start_paused = true)]
async fn power_is_watched_while_an_attempt_is_under_way_and_a_caller_is_answered() {
    let (lab, releaser) = attempting(2711, &[Duration::from_millis(50), s(6)]).await;
    lab.schedule(s(3), Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.engine.hold(&node(), "backup".to_owned(), person()).await.expect("held");
    lab.store.linger(Duration::ZERO);
    lab.reach("fencing", s(15)).await;
    assert_eq!(releaser.sent(), [(Duration::from_millis(50), false)], "it is cut off once the node reads On");
    assert_eq!(lab.record().breaches, 1);
    lab.reach("released", s(120)).await;
}

/// A breach takes its time to be stored: what is sent meanwhile would be sent to a node that was seen on.
#[tokio::test(start_paused = true)]
async fn an_attempt_is_cut_off_before_what_ends_its_proof_is_stored() {
    let (mut lab, releaser) = attempting(2712, &[Duration::from_millis(50), s(6)]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    // Whoever joins is told of an Off that was read just now: this one finds the breach.
    lab.open_again().await;
    assert_eq!(lab.record().breaches, 1);
    assert_eq!(releaser.sent(), [(Duration::from_millis(50), false)]);
    lab.store.linger(Duration::ZERO);
    lab.reach("released", s(120)).await;
}
