//! What volumes are attached before the off: asked for beside identity and hold, and stored, for people and for who leads next.
//!
//! It stops no fence, and the first off waits for it no longer than one call takes.

use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::time::BootTime;
use picket_release::{Found, ReleaseError};

use super::Run;
use crate::node::releasing::Surveying;
use crate::node::{Fatal, NodeTask};

type Asking = BoxFuture<'static, (ReleaseId, Result<Found, ReleaseError>)>;

/// The surveys of a run.
pub(super) struct Surveys {
    asking: FuturesUnordered<Asking>,
    /// Which are asked, each with its device.
    waited: Vec<(ReleaseId, DeviceId)>,
    /// To be begun: nothing was asked yet, or somebody else asked the devices.
    due: bool,
    until: BootTime,
    /// Those that came to nothing, and why; told once the off is no longer kept by it.
    failed: Vec<(ReleaseId, String)>,
}

impl Surveys {
    /// Whether the first off may go.
    pub(super) fn let_off(&mut self, now: BootTime) -> bool {
        if now >= self.until {
            self.end("no answer in the time of one call");
        }
        self.waited.is_empty()
    }

    /// Until when the off waits, and for whose answer.
    pub(super) fn waited_for(&self) -> Option<(BootTime, &DeviceId)> {
        self.waited.first().map(|(_, device)| (self.until, device))
    }

    /// Nothing goes on with them while a command asks the same devices; they are begun again.
    pub(super) fn let_go(&mut self) {
        self.asking.clear();
        self.due = true;
    }

    fn end(&mut self, why: &str) {
        self.asking.clear();
        self.failed.extend(self.waited.drain(..).map(|(release, _)| (release, why.to_owned())));
    }

    /// The next answer; for ever where none is waited for.
    pub(super) async fn next(&mut self) -> (ReleaseId, Result<Found, ReleaseError>) {
        match self.asking.next().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

impl NodeTask {
    /// Which releases of this fence are made of parts, where no off was sent yet.
    pub(super) fn surveys(&self, now: BootTime) -> Surveys {
        let unsent = self.open_fence().filter(|fence| !fence.off_sent && !fence.all_released());
        let wholes = unsent.into_iter().flat_map(|fence| &fence.releases).filter(|one| !one.id.is_part());
        let device = |id: &ReleaseId| Some(self.releaser(id)?.in_parts()?.device().clone());
        let waited: Vec<(ReleaseId, DeviceId)> = wholes
            .filter(|one| !one.stage.is_over())
            .filter_map(|one| Some((one.id.clone(), device(&one.id)?)))
            .collect();
        let call = waited.iter().map(|(_, device)| self.hands.time(device)).max().unwrap_or(Duration::ZERO);
        Surveys { asking: FuturesUnordered::new(), waited, due: true, until: now + call, failed: Vec::new() }
    }

    /// Begins those that are not under way.
    pub(super) fn begin_surveys(&self, run: &mut Run) {
        let surveys = &mut run.surveys;
        let left = surveys.until.since(self.now());
        if !std::mem::take(&mut surveys.due) || left.is_zero() {
            return;
        }
        for (release, _) in &surveys.waited {
            let Some(releaser) = self.releaser(release) else { continue };
            let (release, asking) = (release.clone(), self.hands.survey(&releaser, left));
            surveys.asking.push(Box::pin(async move { (release, asking.await) }));
        }
    }

    /// Stores what was found. Where the store is away nothing waits for it.
    pub(super) async fn heard_of_volumes(
        &mut self,
        run: &mut Run,
        (release, found): (ReleaseId, Result<Found, ReleaseError>),
    ) -> Result<(), Fatal> {
        run.surveys.waited.retain(|(waited, _)| *waited != release);
        match found {
            Ok(found) => self.tell_found(run, release, Ok(found)).await,
            Err(error) => {
                run.surveys.failed.push((release, error.into_words()));
                Ok(())
            }
        }
    }

    /// Once an off was sent: what could not be told is told, and what comes from now on is of another time.
    pub(super) async fn tell_failed_surveys(&mut self, run: &mut Run) -> Result<(), Fatal> {
        if !self.open_fence().is_some_and(|fence| fence.off_sent) {
            return Ok(());
        }
        run.surveys.end("the off was sent before the answer came");
        for (release, why) in std::mem::take(&mut run.surveys.failed) {
            self.tell_found(run, release, Err(why)).await?;
        }
        Ok(())
    }

    async fn tell_found(
        &mut self,
        run: &mut Run,
        release: ReleaseId,
        found: Result<Found, String>,
    ) -> Result<(), Fatal> {
        let Some(releaser) = self.releaser(&release) else { return Ok(()) };
        let was_told = found.is_ok();
        match self.surveyed(&release, found, false, &releaser).await? {
            Ok(_) => Ok(()),
            Err(Surveying::Failed(why) | Surveying::TooMany(why)) => {
                tracing::warn!(%release, why, "what is attached before the off is not stored");
                if was_told {
                    run.surveys.failed.push((release, why));
                }
                Ok(())
            }
        }
    }
}
