//! Following a node on its way, for one caller.
//!
//! # Invariants
//!
//! - A stream is only a look: it is made of what the node's view shows. Shown by
//!   `who_leaves_stops_nothing`.
//! - Every moment of the fence is told, in order. Readings and waits are folded. Shown by
//!   `a_fence_tells_each_step_in_order_and_its_outcome_last`, `readings_do_not_flood_a_long_fence`.
//! - The last message, and no other, has the outcome. A stream that cannot have one ends with an error that
//!   says what to do. Shown by `a_fence_tells_each_step_in_order_and_its_outcome_last`,
//!   `a_gateway_that_stops_ends_streams_with_an_error`.
//! - An outcome goes out only under the leadership under which the stream began (S6). Shown by
//!   `a_deposed_leader_does_not_say_fenced_once_it_is_confirmed`.

mod goal;
mod update_dedup;

use std::collections::VecDeque;
use std::time::Duration;

use futures::Stream;
use futures::stream;
use picket_core::ids::{FenceId, NodeId, Term};
use picket_core::record::{Fence, Moment};
use picket_core::time::WallTime;
use picket_engine::NodeView;
use picket_proto::v1;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use crate::admission::Slot;
use crate::calls::FencingHandlers;
use crate::convert::device::{CurrentTime, reading};
use crate::convert::time::{between, duration, timestamp};
use crate::convert::{evidence, node, outcome, words};
use crate::errors::{self, Verb};
pub(crate) use goal::Goal;
#[cfg(test)]
pub(crate) use goal::tests::a_fence;
use update_dedup::{Due, UpdateDedup};

/// What is followed, and for whom.
#[derive(Debug)]
pub(crate) struct FollowRequest {
    /// The node.
    pub(crate) node: NodeId,
    /// The fence.
    pub(crate) fence: FenceId,
    /// What is waited for.
    pub(crate) goal: Goal,
    /// The caller's own deadline, from now.
    pub(crate) deadline: Option<Duration>,
    /// What is news to the caller.
    pub(crate) start: StreamStart,
}

/// Where a stream begins.
#[derive(Debug)]
pub(crate) enum StreamStart {
    /// The fence was opened by this call: all that happened is news.
    Opened,
    /// This call set the node in motion, whose fence stood so before it.
    Moved(Box<NodeView>),
    /// It was under way before: the present is told first, then what happens.
    Joined,
}

/// A stream on its way to its outcome.
#[derive(Debug)]
pub(crate) struct Follower {
    handlers: FencingHandlers,
    following: FollowRequest,
    view: watch::Receiver<NodeView>,
    term: Term,
    dedup: UpdateDedup,
    queue: VecDeque<v1::FenceUpdate>,
    began: Instant,
    wake: Option<Instant>,
    joins: bool,
    over: bool,
    _slot: Slot,
}

impl Follower {
    /// Begins to follow. Fails where nobody leads here.
    pub(crate) fn new(
        handlers: &FencingHandlers,
        following: FollowRequest,
        slot: Slot,
    ) -> Result<Self, Status> {
        let engine = &handlers.engine;
        let term = engine.leading().map_err(|why| errors::ended(&why))?;
        let node = &following.node;
        let view = engine.follow(node).map_err(|error| errors::engine(error, Verb::Look, node, engine))?;
        let mut dedup = UpdateDedup::from_now(&view.borrow().live);
        if let StreamStart::Moved(before) = &following.start
            && let Some(fence) =
                before.stored.record.fence.as_ref().filter(|fence| fence.id == following.fence)
        {
            dedup.skip_moments(fence);
        }
        Ok(Self {
            handlers: handlers.clone(),
            joins: matches!(following.start, StreamStart::Joined),
            following,
            view,
            term,
            dedup,
            queue: VecDeque::new(),
            began: Instant::now(),
            wake: None,
            over: false,
            _slot: slot,
        })
    }

    /// The messages until the outcome.
    pub(crate) fn updates(self) -> impl Stream<Item = Result<v1::FenceUpdate, Status>> + Send {
        stream::unfold(
            self,
            |mut follower| async move { follower.next().await.map(|update| (update, follower)) },
        )
    }

    async fn next(&mut self) -> Option<Result<v1::FenceUpdate, Status>> {
        loop {
            if let Some(update) = self.queue.pop_front() {
                // Asked as late as can be: after the leadership another gateway may have brought the node back (S20).
                if update.outcome.is_some()
                    && let Err(status) = self.expect_leadership()
                {
                    return Some(Err(self.broken(status)));
                }
                return Some(Ok(update));
            }
            if self.over {
                return None;
            }
            let view = self.view.borrow_and_update().clone();
            if let Err(status) = self.take(&view).await {
                return Some(Err(self.broken(status)));
            }
            if self.queue.is_empty()
                && let Err(status) = self.wait().await
            {
                return Some(Err(self.broken(status)));
            }
        }
    }

    fn broken(&mut self, status: Status) -> Status {
        self.over = true;
        status
    }

    /// Whether the leadership under which the stream began still lasts.
    fn expect_leadership(&self) -> Result<(), Status> {
        let over = match self.handlers.engine.leading() {
            Ok(term) if term == self.term => return Ok(()),
            Ok(_) => "another leadership has begun".to_owned(),
            Err(why) => why,
        };
        Err(errors::ended(&over).into())
    }

    /// Waits until there may be something to tell.
    async fn wait(&mut self) -> Result<(), Status> {
        let wake = self.wake;
        let timer = async {
            match wake {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = self.view.changed() => changed.map_err(|_| errors::shutting_down().into()),
            () = self.handlers.stop.cancelled() => Err(errors::shutting_down().into()),
            () = self.handlers.engine.until_over(self.term) => self.expect_leadership(),
            () = timer => Ok(()),
        }
    }

    /// Tells what is new in the view.
    async fn take(&mut self, view: &NodeView) -> Result<(), Status> {
        // Its labels may differ since the call was let in, and the roles go by these.
        self.handlers.may(&self.following.node)?;
        let (goal, id) = (self.following.goal.clone(), self.following.fence);
        let (fence, mut end) = goal.end(&self.handlers.engine, view, id).await.map_err(|error| {
            errors::engine(error, Verb::Look, &self.following.node, &self.handlers.engine)
        })?;
        let now = Instant::now();
        self.wake = None;
        let deadline =
            self.following.deadline.filter(|_| end.is_none() && goal.has_deadline(&view.stored.record));
        // What the one who opened the fence gave it stands in the record, and the engine sees to it: unless somebody joined who has longer.
        let is_the_fence_s = |deadline: &Duration| {
            let opened = matches!(self.following.start, StreamStart::Opened);
            opened && fence.as_ref().is_some_and(|fence| fence.deadline <= *deadline)
        };
        let deadline = deadline.filter(|deadline| !is_the_fence_s(deadline));
        if let Some(deadline) = deadline {
            let at = self.began + deadline;
            if at <= now {
                end = Some(goal.too_late(deadline));
            } else {
                self.wake = Some(at);
            }
        }
        let mut updates = self.moments(view, fence.as_ref());
        // A warning, and no reason to wait: who waits for the fence may know better (K9). Of the fence that is followed, and of no later one.
        let is_now = view.stored.record.fence.as_ref().is_some_and(|now| now.id == id);
        if is_now && self.following.goal.is_fence() {
            let warnings = self.dedup.new_unannounced(&view.live).into_iter();
            let base = self.update(view, fence.as_ref());
            updates.extend(warnings.map(|text| v1::FenceUpdate { text, ..base.clone() }));
        }
        if updates.is_empty() && end.is_none() {
            match self.dedup.due(&view.live, now) {
                Due::No => {}
                Due::Now => updates.push(self.update(view, fence.as_ref())),
                Due::At(at) => self.wake = Some(self.wake.map_or(at, |wake| wake.min(at))),
            }
        }
        if let Some(end) = end {
            let text = outcome::in_words(&end);
            updates.push(v1::FenceUpdate { text, outcome: Some(end), ..self.update(view, fence.as_ref()) });
            self.over = true;
        }
        if let Some(last) = updates.last_mut() {
            let at = self.now();
            let fresh = self.dedup.new_readings(&view.live);
            last.readings =
                fresh.iter().filter_map(|(device, live)| reading(device.as_str(), live, at)).collect();
            if last.text.is_empty() {
                last.text = readings_in_words(&last.readings);
            }
            self.dedup.note(&view.live, now);
        }
        self.queue.extend(updates);
        Ok(())
    }

    /// What happened since the message before; to one who joined, first where it stands.
    fn moments(&mut self, view: &NodeView, fence: Option<&Fence>) -> Vec<v1::FenceUpdate> {
        let Some(fence) = fence else { return Vec::new() };
        if std::mem::take(&mut self.joins) {
            self.dedup.skip_moments(fence);
            let text = fence.moments.last().map(|moment| moment.what.clone()).unwrap_or_default();
            return vec![v1::FenceUpdate { text, ..self.update(view, Some(fence)) }];
        }
        let base = self.update(view, Some(fence));
        let moments = self.dedup.new_moments(&fence.moments);
        let told = moments.iter().enumerate().map(|(index, moment)| v1::FenceUpdate {
            time: Some(timestamp(moment.at)),
            phase: words::phase_of(&moment.phase).into(),
            text: moment.what.clone(),
            // What is waited for now was not waited for at the moments before.
            wait: base.wait.clone().filter(|_| index + 1 == moments.len()),
            ..base.clone()
        });
        told.collect()
    }

    /// Where the node stands, now.
    fn update(&self, view: &NodeView, fence: Option<&Fence>) -> v1::FenceUpdate {
        let record = &view.stored.record;
        let now = self.handlers.engine.clock().wall();
        let fencing = words::phase(&record.phase) == v1::Phase::Fencing;
        let level =
            fence.filter(|_| fencing).map_or(0, |fence| u32::try_from(fence.level + 1).unwrap_or(u32::MAX));
        let elapsed = match self.following.start {
            StreamStart::Opened | StreamStart::Moved(_) => self.began.elapsed(),
            StreamStart::Joined => fence.map(|fence| between(self.began_at(fence), now)).unwrap_or_default(),
        };
        // What once proved says nothing of a node whose fence has ended, or that is brought back.
        let evident = fence.filter(|fence| fence.ended_at.is_none() && self.following.goal.is_fence());
        v1::FenceUpdate {
            time: Some(timestamp(now)),
            node: record.node.to_string(),
            fence_id: self.following.fence.to_string(),
            generation: record.generation.0,
            phase: words::phase(&record.phase).into(),
            text: String::new(),
            level,
            readings: Vec::new(),
            releases: fence.map(evidence::releases).unwrap_or_default(),
            evidence: evident.and_then(evidence::evidence),
            wait: view.live.wait.as_ref().map(|wait| node::wait(wait, &record.phase)),
            elapsed: Some(duration(elapsed)),
            outcome: None,
            off_sent: fence.map(|fence| fence.off_sent),
            open_releases: fence.map(evidence::open_releases).unwrap_or_default(),
        }
    }

    /// When what is followed began.
    fn began_at(&self, fence: &Fence) -> WallTime {
        let unfencing = |moment: &&Moment| moment.phase == "unfencing";
        let back =
            fence.moments.iter().rev().skip_while(|moment| !unfencing(moment)).take_while(unfencing).last();
        back.filter(|_| !self.following.goal.is_fence()).map_or(fence.opened_at, |moment| moment.at)
    }

    fn now(&self) -> CurrentTime {
        let clock = self.handlers.engine.clock();
        CurrentTime { wall: clock.wall(), boot: clock.boot() }
    }
}

fn readings_in_words(readings: &[v1::DeviceReading]) -> String {
    let word = |reading: &v1::DeviceReading| {
        let power = match reading.power() {
            v1::Power::On => "says On",
            v1::Power::Off => "says Off",
            v1::Power::Unknown | v1::Power::Unspecified => "answers neither on nor off",
        };
        format!("{} {power}", reading.device)
    };
    readings.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// A stream of one message: the outcome is known at once.
pub(crate) fn at_once(
    view: &NodeView,
    now: WallTime,
    fence: Option<&Fence>,
    end: v1::Outcome,
) -> v1::FenceUpdate {
    let record = &view.stored.record;
    v1::FenceUpdate {
        time: Some(timestamp(now)),
        node: record.node.to_string(),
        fence_id: fence.map(|fence| fence.id.to_string()).unwrap_or_default(),
        generation: record.generation.0,
        phase: words::phase(&record.phase).into(),
        text: outcome::in_words(&end),
        releases: fence.map(evidence::releases).unwrap_or_default(),
        off_sent: fence.map(|fence| fence.off_sent),
        open_releases: fence.map(evidence::open_releases).unwrap_or_default(),
        outcome: Some(end),
        ..Default::default()
    }
}
