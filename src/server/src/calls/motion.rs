//! What people ask of a node that is fenced, or was: unfence, retry, stand down, abandon a release.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use picket_core::event::BoundKey;
use picket_core::ids::{FenceId, Generation, NodeId};
use picket_core::machine::Refused;
use picket_core::outcome::Outcome;
use picket_core::record::{NodeRecord, Phase, Then};
use picket_engine::{EngineError, NodeView, Stale, Taken, Until};
use picket_proto::v1;
use tonic::Status;

use super::{FencingHandlers, Updates};
use crate::admission::AuthenticatedCaller;
use crate::convert::outcome;
use crate::convert::request::{self, MotionParameters};
use crate::errors::{self, Verb};
use crate::fault::Fault;
use crate::follow::{self, FollowRequest, Follower, Goal, StreamStart};

impl FencingHandlers {
    /// Drops a hold, and follows the node until it is back, or held by others.
    ///
    /// Asked of a node that is not fenced it is UNFENCED at once, and of one that is being brought back it follows:
    /// what was asked for is so, or is coming. So it does where it was not seen on, unless an operator asks: then it is tried again.
    /// What the holder has waiting in the queue ends first.
    pub(crate) async fn unfence(
        &self,
        caller: AuthenticatedCaller,
        request: v1::UnfenceRequest,
    ) -> Result<Updates, Status> {
        let mut asked = self.heard(&caller, "unfence", request::unfence(&request, &caller.name))?;
        let node = self.heard(&caller, "unfence", asked.node.find(self))?;
        asked.ask.by_person = self.is_a_person(&node);
        self.may_drop(&asked.holder, &node)?;
        let before = self.heard(&caller, "unfence", self.view(&node))?;
        log("unfence", &before, &caller, &asked);
        let withdrawn = self.withdraw(&caller, "unfence", &node, &asked).await?;
        let expected = asked.ask.expected_generation;
        let updates = match self.dropped(&node, asked.holder.clone(), asked.ask).await {
            Ok(taken) => self.follow(caller, Verb::Unfence, before, taken, asked.deadline)?,
            Err(error) => {
                let view = self.view_after(&node)?;
                if !is_repeated(&error, expected, &view) {
                    return Err(errors::engine(error, Verb::Unfence, &node, &self.engine).into());
                }
                let is_normal = view.stored.record.phase == Phase::Normal;
                match (view.stored.record.fence.as_ref().map(|fence| fence.id), &withdrawn) {
                    (_, Some(words)) if is_normal => {
                        return Ok(self.unfenced_at_once(&view, &format!("it was not fenced, and {words}")));
                    }
                    (Some(id), _) => self.join(caller, node.clone(), id, Goal::Back, asked.deadline)?,
                    (None, _) => {
                        let detail = "it was not fenced, so nothing was to be done";
                        return Ok(self.unfenced_at_once(&view, detail));
                    }
                }
            }
        };
        let Some(words) = withdrawn else { return Ok(updates) };
        let base = follow::at_once(&self.view_after(&node)?, self.now().wall, None, v1::Outcome::default());
        let first = v1::FenceUpdate { text: words, outcome: None, ..base };
        Ok(stream::iter([Ok(first)]).chain(updates).boxed())
    }

    fn unfenced_at_once(&self, view: &NodeView, detail: &str) -> Updates {
        let end = outcome::outcome(&Outcome::Unfenced, detail);
        let update = follow::at_once(view, self.now().wall, None, end);
        stream::iter([Ok(update)]).boxed()
    }

    /// Ends what the holder has waiting for the node in the queue; says which requests those were, if there were any.
    pub(super) async fn withdraw(
        &self,
        caller: &AuthenticatedCaller,
        call: &str,
        node: &NodeId,
        asked: &MotionParameters,
    ) -> Result<Option<String>, Fault> {
        let ended = self.engine.withdraw(node, &asked.holder, &asked.ask).await;
        let ended = ended.map_err(|error| errors::engine(error, Verb::Unfence, node, &self.engine));
        let numbers: Vec<String> =
            self.heard(caller, call, ended)?.iter().map(|ticket| format!("number {ticket}")).collect();
        Ok((!numbers.is_empty()).then(|| {
            format!("what waited in the queue for {} was withdrawn ({})", asked.holder, numbers.join(", "))
        }))
    }

    /// Tries again, and follows to whatever was tried.
    pub(crate) async fn retry(
        &self,
        caller: AuthenticatedCaller,
        request: v1::RetryRequest,
    ) -> Result<Updates, Status> {
        let asked = self.heard(&caller, "retry", request::retry(&request, &caller.name))?;
        let node = self.heard(&caller, "retry", asked.node.find(self))?;
        let before = self.heard(&caller, "retry", self.view(&node))?;
        log("retry", &before, &caller, &asked);
        let tried = match request.seen_off {
            true => self.engine.retry_seen_off(&node, asked.ask).await,
            false => self.engine.retry(&node, asked.ask).await,
        };
        match tried {
            Ok(taken) => self.follow(caller, Verb::Retry, before, taken, asked.deadline),
            Err(error) => Err(errors::engine(error, Verb::Retry, &node, &self.engine).into()),
        }
    }

    /// It was alive: follows until it is seen on, or the person's word is taken.
    pub(crate) async fn stand_down(
        &self,
        caller: AuthenticatedCaller,
        request: v1::StandDownRequest,
    ) -> Result<Updates, Status> {
        let asked = self.heard(&caller, "stand_down", request::stand_down(&request, &caller.name))?;
        let node = self.heard(&caller, "stand_down", asked.node.find(self))?;
        let before = self.heard(&caller, "stand_down", self.view(&node))?;
        log("stand-down", &before, &caller, &asked);
        match self.engine.stand_down(&node, asked.ask).await {
            Ok(taken) => self.follow(caller, Verb::StandDown, before, taken, None),
            Err(error) => Err(errors::engine(error, Verb::StandDown, &node, &self.engine).into()),
        }
    }

    /// Gives a release up, by name.
    pub(crate) async fn abandon(
        &self,
        caller: AuthenticatedCaller,
        request: v1::AbandonReleaseRequest,
    ) -> Result<v1::Node, Status> {
        let (asked, release) = self.heard(&caller, "abandon", request::abandon(&request, &caller.name))?;
        let node = self.heard(&caller, "abandon", asked.node.find(self))?;
        log("abandon", &self.heard(&caller, "abandon", self.view(&node))?, &caller, &asked);
        let record = self
            .engine
            .abandon(&node, release, asked.ask)
            .await
            .map_err(|error| errors::engine(error, Verb::Abandon, &node, &self.engine))?;
        let mut view = self.view_after(&node)?;
        Arc::make_mut(&mut view.stored).record = record;
        Ok(self.node(&view))
    }

    /// Follows what was set in motion, or what a request with the same key had set in motion before.
    pub(super) fn follow(
        &self,
        caller: AuthenticatedCaller,
        verb: Verb,
        before: NodeView,
        taken: Taken,
        deadline: Option<Duration>,
    ) -> Result<Updates, Status> {
        let node = before.plan.id.clone();
        match taken {
            Taken::Before(None) => {
                let view = self.view_after(&node)?;
                let record = &view.stored.record;
                if record.fence.is_none() {
                    let detail = "it was not fenced when this was asked first, so nothing was to be done";
                    return Ok(self.unfenced_at_once(&view, detail));
                }
                let phase = record.phase.label().replace('_', " ");
                let detail = format!(
                    "it was not fenced when this was asked first, and was fenced since: it is in phase {phase}"
                );
                let end = outcome::outcome(&Outcome::Superseded, detail);
                let update = follow::at_once(&view, self.now().wall, None, end);
                Ok(stream::iter([Ok(update)]).boxed())
            }
            Taken::Before(Some(id)) => {
                let goal = goal(verb, &self.view_after(&node)?.stored.record, id);
                self.join(caller, node, id, goal, deadline)
            }
            Taken::Now(record) => {
                let Some(id) = record.fence.as_ref().map(|fence| fence.id) else {
                    return Err(errors::internal("what was set in motion has no fence").into());
                };
                let goal = goal(verb, &record, id);
                let start = StreamStart::Moved(Box::new(before));
                self.start(caller, FollowRequest { node, fence: id, goal, deadline, start })
            }
        }
    }

    fn join(
        &self,
        caller: AuthenticatedCaller,
        node: NodeId,
        fence: FenceId,
        goal: Goal,
        deadline: Option<Duration>,
    ) -> Result<Updates, Status> {
        self.start(caller, FollowRequest { node, fence, goal, deadline, start: StreamStart::Joined })
    }

    pub(super) fn start(
        &self,
        caller: AuthenticatedCaller,
        following: FollowRequest,
    ) -> Result<Updates, Status> {
        Ok(Follower::new(self, following, caller.slot)?.updates().boxed())
    }
}

/// Who asks for what, of the fence as it stands.
pub(super) fn log(call: &str, view: &NodeView, caller: &AuthenticatedCaller, asked: &MotionParameters) {
    let record = &view.stored.record;
    tracing::info!(
        call,
        node = %record.node,
        fence = record.fence.as_ref().map(|fence| fence.id.to_string()),
        caller = caller.name,
        holder = asked.holder,
        reason = asked.ask.person.reason,
        key = asked.ask.key.as_ref().map(BoundKey::written),
        "a person asks"
    );
}

/// Where a node that was set in motion goes: back to its work, or, tried again within its fence, to the proof and the
/// release.
fn goal(verb: Verb, record: &NodeRecord, id: FenceId) -> Goal {
    let fences =
        record.fence.as_ref().is_some_and(|fence| fence.id == id && fence.generation == record.generation);
    match verb {
        // A person's word is asked again after its fence has ended: that is told as it ended.
        Verb::Attest => {
            Goal::Fence { until: Until::Released, grade: None, then: Then::StayOff, already: false }
        }
        Verb::Retry if fences => {
            Goal::Fence { until: Until::Released, grade: None, then: Then::StayOff, already: false }
        }
        _ => Goal::Back,
    }
}

/// Whether what an unfence asks for is so, or is coming: the node is not fenced, or is being brought back. A caller who
/// expected the generation before this one asked for what has happened since.
pub(super) fn is_repeated(error: &EngineError, expected: Option<Generation>, view: &NodeView) -> bool {
    let record = &view.stored.record;
    let back = matches!(record.phase, Phase::Normal | Phase::Unfencing);
    match error {
        // It was switched on, and what becomes of that is an operator's to say.
        EngineError::Refused(Refused::Phase { phase: "power_on_failed", wanted: "unfencing", .. }) => {
            record.phase == Phase::PowerOnFailed
        }
        EngineError::Refused(Refused::Phase { phase, .. }) => {
            back && matches!(*phase, "normal" | "unfencing")
        }
        EngineError::Stale(Stale::Generation { .. }) => {
            back && expected.is_some_and(|expected| expected.next() == record.generation)
        }
        _ => false,
    }
}
