//! What releases of earlier fences left on a node that is back (a taint that keeps new pods away): taken away as soon as that may be, by a
//! task of its own while the node is in phase Normal, or is none any more. Asked once at the start, too, for what another process left.

use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::record::Phase;
use picket_release::Releaser;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::NodeTask;

/// Between two questions.
const PACE: Duration = Duration::from_secs(2);
const LONGEST_PACE: Duration = Duration::from_secs(60);
/// What waits for longer than that wants a person.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// A task that tidies up after a node's releases; it ends with its value.
#[derive(Debug)]
pub(super) struct Tidying(JoinHandle<()>);

impl Drop for Tidying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl NodeTask {
    /// Begins where the node is in phase Normal, and ends wherever it is not.
    pub(super) fn tidy(&mut self) {
        if !matches!(self.record().phase, Phase::Normal | Phase::Retired) || self.orphan.is_some() {
            self.tidying = None;
            return;
        }
        let leaves = |releaser: &Arc<dyn Releaser>| releaser.lingers().is_some();
        let releasers = self.plan.releases.iter().map(|plan| plan.releaser.clone()).filter(leaves);
        let releasers: Vec<Arc<dyn Releaser>> = releasers.collect();
        if releasers.is_empty() || self.tidying.is_some() {
            return;
        }
        let (node, turns) = (self.record().node.clone(), self.turns.clone());
        let gone = self.record().phase == Phase::Retired;
        self.tidying = Some(Tidying(tokio::spawn(async move {
            for releaser in &releasers {
                tidied(&node, gone, &**releaser, &turns).await;
            }
            // What was sent before a fence ended may have come since.
            let longest = releasers.iter().filter_map(|releaser| releaser.max_in_flight()).max();
            tokio::time::sleep(longest.unwrap_or_default()).await;
            for releaser in &releasers {
                tidied(&node, gone, &**releaser, &turns).await;
            }
        })));
    }
}

async fn tidied(node: &NodeId, gone: bool, releaser: &dyn Releaser, turns: &Semaphore) {
    let began = Instant::now();
    let (mut pace, mut told) = (PACE, false);
    loop {
        let time = releaser.attempt_time();
        let asked = {
            // Thousands of nodes begin at once.
            let _turn = turns.acquire().await;
            tokio::time::timeout(time, releaser.tidy(node, gone, Instant::now() + time)).await
        };
        let why = match asked {
            Ok(Ok(None)) => return,
            Ok(Ok(Some(why))) => {
                pace = PACE;
                why
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        match began.elapsed() > PATIENCE && !told {
            true => {
                tracing::error!(%node, why, "what a release left stands still: it waits for this for a quarter of an hour")
            }
            false => tracing::debug!(%node, why, "what a release left is not taken away yet"),
        }
        told |= began.elapsed() > PATIENCE;
        tokio::time::sleep(pace).await;
        pace = (pace * 2).min(LONGEST_PACE).min(if told { LONGEST_PACE } else { PACE * 5 });
    }
}
