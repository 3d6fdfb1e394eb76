//! Telling at the far side of releases that a node is being fenced, before it is off (K2, K8): nothing new is given to it, and nobody
//! else lets go what is its. A task of its own: the off waits for none of it, and what it sets up is tidied away with the rest.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_core::ids::Generation;
use picket_core::record::Phase;
use picket_release::{Releaser, Subject};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::NodeTask;
use super::command::Command;
use super::inbox::Own;

/// How long one announcement may take.
const TIME: Duration = Duration::from_secs(1);
/// Between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The task of one fence; it ends with its value.
#[derive(Debug)]
pub(super) struct Announcing {
    of: Generation,
    task: JoinHandle<()>,
}

impl Drop for Announcing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NodeTask {
    /// Begins with each fence, and ends once the node is proven off, or is left alone.
    pub(super) fn announce(&mut self) {
        let record = self.record();
        if record.phase != Phase::Fencing || self.orphan.is_some() {
            self.announcing = None;
            return;
        }
        let of = record.generation;
        if self.announcing.as_ref().is_some_and(|one| one.of == of) {
            return;
        }
        let states = record.fence.iter().flat_map(|fence| &fence.releases).filter(|one| !one.stage.is_over());
        let all: Vec<(Subject, Arc<dyn Releaser>)> = states
            .filter_map(|state| Some((self.subject(state)?, self.releaser(&state.id)?)))
            .filter(|(_, releaser)| releaser.lingers().is_some())
            .collect();
        if all.is_empty() {
            self.announcing = None;
            return;
        }
        let told = self.mailbox.own();
        let task = tokio::spawn(async move {
            join_all(all.into_iter().map(|(subject, releaser)| announced(subject, releaser, &told))).await;
        });
        self.announcing = Some(Announcing { of, task });
    }
}

/// Tries until it is told, and hands on who was met.
async fn announced(subject: Subject, releaser: Arc<dyn Releaser>, told: &Own) {
    let mut pause = FIRST_PAUSE;
    loop {
        let asked = releaser.announce(&subject, Instant::now() + TIME);
        match tokio::time::timeout(TIME, asked).await {
            Ok(Ok(met)) => {
                if let Some(whom) = met {
                    told.send(Command::Met(subject.release, whom));
                }
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(release = %subject.release, %error, "that it is being fenced is not told there yet");
            }
            Err(_) => {
                tracing::warn!(release = %subject.release, "that it is being fenced is not told there yet: no answer");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
