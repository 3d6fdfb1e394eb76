//! Fence: lets the caller in, and follows.

use std::time::Duration;

use futures::{StreamExt, stream};
use picket_core::device::Grade;
use picket_core::ids::NodeId;
use picket_core::outcome::Outcome;
use picket_core::record::Then;
use picket_engine::{Admission, EngineError, LetIn, Until};
use picket_proto::v1;

use super::{FencingHandlers, Updates, queue_wait};
use crate::admission::{AuthenticatedCaller, Slot};
use crate::convert::request::fence::FenceParameters;
use crate::convert::{outcome, request};
use crate::errors::{self, Verb};
use crate::fault::Fault;
use crate::follow::{self, FollowRequest, Follower, Goal, StreamStart};

impl FencingHandlers {
    /// Opens or joins a fence, and follows it to its outcome.
    pub(crate) async fn fence(
        &self,
        caller: AuthenticatedCaller,
        request: v1::FenceRequest,
    ) -> Result<Updates, tonic::Status> {
        let (node, asked) = self.fence_parameters(&caller, &request)?;
        self.is_meant(&caller, &node, &asked).await?;
        if asked.dry_run {
            return self.dry_run(&node, asked).await;
        }
        let present = self
            .heard(&caller, "fence", self.view(&node))?
            .stored
            .record
            .fence
            .clone()
            .map(|fence| fence.id.to_string());
        let key = asked.call.key.as_ref().map(|bound| bound.written().to_owned());
        tracing::info!(
            %node,
            fence = present,
            caller = caller.name,
            holder = asked.call.holder.name,
            reason = asked.call.holder.reason,
            key,
            "a fence is asked for"
        );
        let options = FenceStreamOptions::of(&asked);
        let let_in = match asked.queue {
            Some(at_most) => self.engine.fence_or_wait(&node, asked.call, at_most).await,
            None => self.engine.fence(&node, asked.call).await.map(LetIn::In),
        };
        match let_in {
            Ok(LetIn::In(admission)) => self.admitted(caller.slot, node, admission, &options),
            Ok(LetIn::Waits(waits)) => Ok(queue_wait::stream(self, caller.slot, node, waits, options)?),
            Err(error) => self.not_admitted(&node, error),
        }
    }

    /// A request for a fence, checked: its node, and whether its caller may ask for it so.
    pub(crate) fn fence_parameters(
        &self,
        caller: &AuthenticatedCaller,
        request: &v1::FenceRequest,
    ) -> Result<(NodeId, FenceParameters), Fault> {
        let mut asked = self.heard(caller, "fence", request::fence(request, &caller.name))?;
        let node = self.heard(caller, "fence", asked.node.find(self))?;
        self.may_act_for(&asked.call.holder.name, &node)?;
        asked.call.holder.by_person = self.is_a_person(&node);
        asked.call.holder.asker = Some(self.rights.caller.person());
        if request.override_budget.is_some() {
            self.may_set_aside("a budget", &node)?;
        }
        if request.override_quorum.is_some() {
            self.may_set_aside("a quorum", &node)?;
        }
        Ok((node, asked))
    }

    /// What bars it is an outcome, and no error.
    pub(crate) fn not_admitted(&self, node: &NodeId, error: EngineError) -> Result<Updates, tonic::Status> {
        tracing::info!(%node, %error, "the request for a fence was not admitted");
        let end = match error {
            EngineError::Blocked { reason, detail } => outcome::outcome(&Outcome::Blocked(reason), detail),
            EngineError::Barred(bar) => outcome::barred(&bar, self.knows_all()),
            error => return Err(errors::engine(error, Verb::Fence, node, &self.engine).into()),
        };
        let update = follow::at_once(&self.view(node)?, self.now().wall, None, end);
        Ok(stream::iter([Ok(update)]).boxed())
    }

    /// Follows what a request was let in to.
    pub(crate) fn admitted(
        &self,
        slot: Slot,
        node: NodeId,
        admission: Admission,
        options: &FenceStreamOptions,
    ) -> Result<Updates, tonic::Status> {
        let FenceStreamOptions { until, grade, then, .. } = *options;
        // Whoever has the fence's id finds by the key who asked for it.
        let how = word(&admission);
        tracing::info!(%node, fence = %admission.fence(), key = options.key, how, "the request for a fence was admitted");
        let (start, already) = match &admission {
            Admission::Opened(_) => (StreamStart::Opened, false),
            Admission::Joined(_) => (StreamStart::Joined, false),
            Admission::Already(_) => (StreamStart::Joined, true),
            Admission::Superseded(fence) => {
                let view = self.view_after(&node)?;
                let end = outcome::superseded(Some(fence), &view.stored.record.phase);
                let update = follow::at_once(&view, self.now().wall, Some(fence), end);
                return Ok(stream::iter([Ok(update)]).boxed());
            }
        };
        let opened = matches!(start, StreamStart::Opened);
        let first = options.superfluous(opened).map(|text| {
            let mut update =
                follow::at_once(&self.view_after(&node)?, self.now().wall, None, v1::Outcome::default());
            (update.text, update.outcome) = (text, None);
            Ok::<_, Fault>(update)
        });
        let first = first.transpose()?;
        let following = FollowRequest {
            node,
            fence: admission.fence(),
            goal: Goal::Fence { until, grade, then, already },
            deadline: options.deadline,
            start,
        };
        let follower = Follower::new(self, following, slot)?;
        Ok(stream::iter(first.map(Ok)).chain(follower.updates()).boxed())
    }
}

/// What a caller of Fence wants of its stream.
#[derive(Clone, Debug)]
pub(crate) struct FenceStreamOptions {
    until: Until,
    grade: Option<Grade>,
    then: Then,
    deadline: Option<Duration>,
    key: Option<String>,
    /// Limits were to be set aside.
    aside: bool,
}

impl FenceStreamOptions {
    fn of(asked: &FenceParameters) -> Self {
        let call = &asked.call;
        Self {
            until: asked.until,
            grade: call.min_grade,
            then: call.holder.then,
            deadline: call.deadline,
            key: call.key.as_ref().map(|bound| bound.written().to_owned()),
            aside: call.set_aside.is_some(),
        }
    }

    /// What was to be set aside and did not have to be. Of whoever opened a fence, its moments say so.
    fn superfluous(&self, opened: bool) -> Option<String> {
        let words =
            "setting limits aside was of no use: the fence was open already, and none bars who joins it";
        (self.aside && !opened).then(|| words.to_owned())
    }
}

fn word(admission: &Admission) -> &'static str {
    match admission {
        Admission::Opened(_) => "opened",
        Admission::Joined(_) => "joined",
        Admission::Already(_) => "already fenced",
        Admission::Superseded(_) => "superseded",
    }
}
