//! What volumes are attached before the off: asked for beside identity and hold, and stored, for people and
//! for the next leader.
//!
//! # Invariants
//!
//! - The survey stops no fence, and the first off waits for it no longer than one call takes. Shown by
//!   `a_survey_that_fails_before_the_off_stops_no_fence_and_after_it_is_tried_again`.
//! - What is found before the off is stored in one write with it: no call to a device waits for that write.

use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::time::BootTime;
use picket_release::{Found, ReleaseError};

use super::Run;
use crate::node::NodeTask;
use crate::node::releasing::survey_event;

type Asking = BoxFuture<'static, (ReleaseId, Result<Found, ReleaseError>)>;

/// The surveys of a run.
pub(super) struct Surveys {
    asking: FuturesUnordered<Asking>,
    /// Which are asked, each with its device.
    waited: Vec<(ReleaseId, DeviceId)>,
    /// To be begun: nothing was asked yet, or somebody else asked the devices.
    due: bool,
    until: BootTime,
    /// What they came to: stored in one write with the first off.
    told: Vec<(ReleaseId, Result<Found, String>)>,
}

impl Surveys {
    /// Whether the first off may go.
    pub(super) fn let_off(&mut self, now: BootTime) -> bool {
        if now >= self.until {
            self.asking.clear();
            let late = || Err("no answer in the time of one call".to_owned());
            self.told.extend(self.waited.drain(..).map(|(release, _)| (release, late())));
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

    /// An answer came.
    pub(super) fn heard(&mut self, (release, found): (ReleaseId, Result<Found, ReleaseError>)) {
        self.waited.retain(|(waited, _)| *waited != release);
        self.told.push((release, found.map_err(ReleaseError::into_words)));
    }

    /// It is stored.
    pub(super) fn stored(&mut self) {
        self.told.clear();
    }

    /// The rules do not allow what was found. True if there was anything: that it could not be stored is told instead.
    pub(super) fn refused(&mut self, why: &str) -> bool {
        let found = self.told.iter_mut().filter(|(_, found)| found.is_ok());
        found.map(|(_, found)| *found = Err(why.to_owned())).count() > 0
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
        Surveys { asking: FuturesUnordered::new(), waited, due: true, until: now + call, told: Vec::new() }
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

    /// The first off, after what was found before it.
    pub(super) fn after_surveys<'a>(&self, run: &Run, off: Event<'a>) -> Event<'a> {
        let found = run.surveys.told.iter().filter_map(|(release, found)| {
            let releaser = self.releaser(release)?;
            Some(survey_event(release, found.clone(), false, &*releaser))
        });
        let found: Vec<Event<'a>> = found.collect();
        if found.is_empty() { off } else { Event::After { found, event: Box::new(off) } }
    }
}
