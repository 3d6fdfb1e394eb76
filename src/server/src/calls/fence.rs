//! Fence: lets the caller in, and follows.

use futures::{StreamExt, stream};
use picket_core::outcome::Outcome;
use picket_engine::{Admission, EngineError};
use picket_proto::v1;

use super::{Desk, Updates};
use crate::convert::{outcome, request};
use crate::door::Guest;
use crate::errors::{self, Verb};
use crate::follow::{self, Follower, Following, Goal, Start};
use crate::guard::calls::OVERRIDE;

impl Desk {
    /// Opens or joins a fence, and follows it to its outcome.
    pub(crate) async fn fence(
        &self,
        guest: Guest,
        request: v1::FenceRequest,
    ) -> Result<Updates, tonic::Status> {
        let asked = self.heard(&guest, "fence", request::fence(&request, &guest.caller))?;
        let node = self.heard(&guest, "fence", asked.node.find(self))?;
        self.may_act_for(&asked.call.holder.name, &node)?;
        if request.override_budget.is_some() || request.override_quorum.is_some() {
            self.may_as(OVERRIDE, &node)?;
        }
        let (until, grade, then) = (asked.until, asked.call.min_grade, asked.call.holder.then);
        let deadline = asked.call.deadline;
        let present = self
            .heard(&guest, "fence", self.view(&node))?
            .stored
            .record
            .fence
            .map(|fence| fence.id.to_string());
        let key = asked.call.key.as_ref().map(|bound| bound.key.clone());
        tracing::info!(
            %node,
            fence = present,
            caller = guest.caller,
            holder = asked.call.holder.name,
            reason = asked.call.holder.reason,
            key,
            "a fence is asked for"
        );
        let admission = match self.engine.fence(&node, asked.call).await {
            Ok(admission) => admission,
            Err(error) => {
                tracing::info!(%node, fence = present, key, %error, "the request for a fence was not admitted");
                return match error {
                    EngineError::Blocked { reason, detail } => {
                        let end = outcome::outcome(&Outcome::Blocked(reason), detail);
                        let update = follow::at_once(&self.view(&node)?, self.now().wall, None, end);
                        Ok(stream::iter([Ok(update)]).boxed())
                    }
                    error => Err(errors::engine(error, Verb::Fence, &node, &self.engine).into()),
                };
            }
        };
        // Whoever has the fence's id finds by the key who asked for it.
        let how = word(&admission);
        tracing::info!(%node, fence = %admission.fence(), key, how, "the request for a fence was admitted");
        let (start, already) = match &admission {
            Admission::Opened(_) => (Start::Opened, false),
            Admission::Joined(_) => (Start::Joined, false),
            Admission::Already(_) => (Start::Joined, true),
            Admission::Superseded(fence) => {
                let view = self.view(&node)?;
                let end = outcome::superseded(Some(fence), &view.stored.record.phase);
                let update = follow::at_once(&view, self.now().wall, Some(fence), end);
                return Ok(stream::iter([Ok(update)]).boxed());
            }
        };
        let following = Following {
            node,
            fence: admission.fence(),
            goal: Goal::Fence { until, grade, then, already },
            // Who opened it has its deadline in the record, and the engine sees to it.
            deadline: deadline.filter(|_| !matches!(start, Start::Opened)),
            start,
        };
        Ok(Follower::new(&self.engine, following, self.door.stop(), guest.place)?.updates().boxed())
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
