//! Telling one cluster one thing of the open fence, until it is told.

use std::sync::Arc;
use std::time::Duration;

use picket_core::election::Leadership;
use picket_release::{Quarantine, ReleaseError, Subject};
use tokio::time::{Instant, sleep, timeout};

use crate::node::NodeTask;
use crate::node::command::Command;
use crate::node::inbox::Own;
use crate::paces::Paces;

/// One task's means.
pub(super) struct Tries {
    subject: Subject,
    cluster: Arc<dyn Quarantine>,
    paces: Arc<Paces>,
    leadership: Arc<Leadership>,
    told: Own,
}

impl NodeTask {
    pub(super) fn tries(&mut self, subject: Subject, cluster: Arc<dyn Quarantine>) -> Tries {
        let (paces, leadership) = (self.plan.paces.clone(), self.hands.leadership().clone());
        Tries { subject, cluster, paces, leadership, told: self.mailbox.own() }
    }
}

impl Tries {
    /// A gateway that stood still would tell clusters of a fence that another one has ended, and take away what that one set up (S6).
    fn leads(&self) -> bool {
        self.leadership.check().is_ok()
    }

    /// Tries until the cluster knows that the node is being fenced, and hands on whom it has for the node.
    pub(super) async fn cordon(self) {
        let release = &self.subject.release;
        let backoff = self.paces.announcement;
        let (mut time, mut pause) = (self.paces.first_announcement, backoff.first);
        while self.leads() {
            let asked = self.cluster.cordon(&self.subject, Instant::now() + time);
            let became = match timeout(time, asked).await {
                Ok(answer) => answer.map_err(ReleaseError::into_words),
                Err(_) => Err("no answer".to_owned()),
            };
            let is_done = became.is_ok();
            if let Err(why) = &became {
                tracing::warn!(%release, why, "that it is being fenced is not told there yet");
            }
            self.told.send(Command::Announced(self.subject.generation, release.clone(), became));
            if is_done {
                return;
            }
            sleep(pause).await;
            time = self.cluster.attempt_time();
            pause = backoff.after(pause);
        }
    }

    /// Tries until nobody else repairs the machine.
    pub(super) async fn exclude(self) {
        let release = &self.subject.release;
        let backoff = self.paces.exclusion;
        let (time, mut pause) = (self.cluster.attempt_time(), backoff.first);
        while self.leads() {
            match timeout(time, self.cluster.exclude(&self.subject, Instant::now() + time)).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    tracing::warn!(%release, %error, "others may remediate its machine meanwhile");
                }
                Err(_) => tracing::warn!(%release, "others may remediate its machine meanwhile: no answer"),
            }
            sleep(pause).await;
            pause = backoff.after(pause);
        }
    }

    /// Asks on and on whom the cluster has for the node, at a modest pace: the watch of power waits for none of it. What was found once is told
    /// again and again: the cluster may not say it twice, as what is ours there is taken away with it, and while the store is away, or a person
    /// is asked something else, the node's task does not take it.
    pub(super) async fn compare(self, pace: Duration) {
        let release = &self.subject.release;
        let time = self.cluster.attempt_time();
        let mut found: Option<String> = None;
        loop {
            sleep(pace).await;
            if !self.leads() {
                return;
            }
            match timeout(time, self.cluster.compare(&self.subject, Instant::now() + time)).await {
                Ok(Err(ReleaseError::Replaced(why))) => found = Some(why),
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(%release, %error, "who has the node's name there is not told");
                }
                Err(_) => tracing::debug!(%release, "who has the node's name there is not told"),
            }
            if let Some(why) = &found {
                self.told.send(Command::Replaced(self.subject.generation, release.clone(), why.clone()));
            }
        }
    }
}
