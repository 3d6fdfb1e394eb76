//! What releases of earlier fences left on a node that is back (a taint that keeps new pods away): taken away as soon as that may be, by a
//! task of its own while the node is in phase Normal, or is none any more. Asked once at the start, too, for what another process left.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_core::record::Phase;
use picket_release::{Left, Releaser, Whose};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::NodeTask;

/// Between two questions.
const PACE: Duration = Duration::from_secs(2);
const LONGEST_PACE: Duration = Duration::from_secs(60);
/// What waits for longer than that wants a person.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// What came since the last round, by a hand or by a process that had stood still, is found after that.
const ROUND: Duration = Duration::from_secs(10 * 60);

/// A task that tidies up after a node's releases; it ends with its value.
#[derive(Debug)]
pub(super) struct Tidying {
    left: Left,
    task: JoinHandle<()>,
}

impl Drop for Tidying {
    fn drop(&mut self) {
        self.task.abort();
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
        let record = self.record();
        let identities = record.identities(&self.plan.topology);
        let whose = Whose { node: record.node.clone(), identities, met: None };
        let off = record.fence.as_ref().is_some_and(|fence| fence.off_sent);
        let left = Left { whose, generation: record.generation, gone: record.phase == Phase::Retired, off };
        if releasers.is_empty() || self.tidying.as_ref().is_some_and(|one| one.left == left) {
            return;
        }
        let (of, turns) = (left.clone(), self.turns.clone());
        let task = tokio::spawn(async move {
            // What was sent before a fence ended may come until then.
            let mut pause = releasers.iter().filter_map(|releaser| releaser.max_in_flight()).max();
            loop {
                // Each for itself: what one waits for, another does not.
                join_all(releasers.iter().map(|releaser| tidied(&of, &**releaser, &turns))).await;
                tokio::time::sleep(pause.take().unwrap_or(ROUND)).await;
            }
        });
        self.tidying = Some(Tidying { left, task });
    }
}

/// What is to be taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// What stands at the far side itself.
    Rest,
    /// What keeps others away from the machine, after that.
    Spared,
}

async fn tidied(left: &Left, releaser: &dyn Releaser, turns: &Semaphore) {
    done(What::Rest, left, releaser, turns).await;
    done(What::Spared, left, releaser, turns).await;
}

/// Asks until nothing is left to do, or until the next round may do it.
async fn done(what: What, left: &Left, releaser: &dyn Releaser, turns: &Semaphore) {
    let began = Instant::now();
    let (mut pace, mut told) = (PACE, false);
    loop {
        let time = releaser.attempt_time();
        let asked = match what {
            What::Rest => {
                // Thousands of nodes begin at once.
                let _turn = turns.acquire().await;
                tokio::time::timeout(time, releaser.tidy(left, Instant::now() + time)).await
            }
            // Whoever has the machines may be away for long: nobody's turn is spent on that.
            What::Spared => tokio::time::timeout(time, releaser.unspare(left, Instant::now() + time)).await,
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
                tracing::error!(node = %left.whose.node, why, "what a release left stands still: it waits for this for a quarter of an hour")
            }
            false => {
                tracing::debug!(node = %left.whose.node, why, "what a release left is not taken away yet")
            }
        }
        told |= began.elapsed() > PATIENCE;
        // What is left at the far side itself is looked for again, whatever becomes of this.
        if told && what == What::Spared {
            return;
        }
        tokio::time::sleep(pace).await;
        pace = (pace * 2).min(LONGEST_PACE).min(if told { LONGEST_PACE } else { PACE * 5 });
    }
}
