//! PlanFence, and Fence with `dry_run`: what would happen, through the same code.

use futures::{StreamExt, stream};
use picket_core::ids::NodeId;
use picket_engine::Plan;
use picket_proto::v1;
use tonic::Status;

use super::{FencingHandlers, Updates};
use crate::admission::AuthenticatedCaller;
use crate::convert::plan;
use crate::convert::request::fence::FenceParameters;
use crate::errors::{self, Verb};
use crate::fault::Fault;
use crate::follow;

impl FencingHandlers {
    /// Plans the fence that the request would open.
    pub(crate) async fn plan_fence(
        &self,
        caller: AuthenticatedCaller,
        request: v1::PlanFenceRequest,
    ) -> Result<v1::PlanFenceResponse, Status> {
        let request = request.fence.unwrap_or_default();
        let (node, asked) = self.fence_parameters(&caller, &request)?;
        self.is_meant(&caller, &node, &asked).await?;
        let (found, outcome) = self.planned(&node, asked).await?;
        Ok(self.hiding(plan::plan(&node, &found, outcome)))
    }

    /// The same as a stream: a message a step, and the outcome.
    pub(super) async fn dry_run(&self, node: &NodeId, asked: FenceParameters) -> Result<Updates, Status> {
        let (found, outcome) = self.planned(node, asked).await?;
        let view = self.view(node)?;
        let now = self.now().wall;
        let steps = found.steps.iter().map(|step| {
            let base = follow::at_once(&view, now, None, v1::Outcome::default());
            let level = u32::try_from(step.level).unwrap_or(u32::MAX);
            v1::FenceUpdate { text: plan::in_words(step), level, outcome: None, ..base }
        });
        let end = follow::at_once(&view, now, None, outcome);
        let updates: Vec<Result<v1::FenceUpdate, Status>> = steps.chain([end]).map(Ok).collect();
        Ok(stream::iter(updates).boxed())
    }

    async fn planned(&self, node: &NodeId, asked: FenceParameters) -> Result<(Plan, v1::Outcome), Fault> {
        let found = self.engine.plan(node, asked.call).await;
        let found = found.map_err(|error| errors::engine(error, Verb::Fence, node, &self.engine))?;
        let outcome = plan::outcome_of(&found, self.knows_all());
        Ok((found, outcome))
    }
}
