//! Drill: a fence on purpose, followed until the node is back.

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use picket_core::ids::NodeId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_engine::{Admission, EngineError, FenceCall, NodeView};
use picket_proto::v1::{self, ErrorReason, OutcomeKind};
use tonic::Status;

use super::FencingHandlers;
use crate::admission::AuthenticatedCaller;
use crate::convert::request::{self, DrillParameters, DrillTarget};
use crate::convert::{outcome, plan};
use crate::errors::{self, Verb};
use crate::fault::Fault;
use crate::follow::{self, FollowRequest, Follower, Goal, StreamStart};
use crate::natural_order;

/// The messages of a drill.
pub(crate) type DrillUpdates = BoxStream<'static, Result<v1::DrillResponse, Status>>;

impl FencingHandlers {
    /// Fences a node of a group whose settings allow it, and follows it until it is back.
    pub(crate) async fn drill(
        &self,
        caller: AuthenticatedCaller,
        request: v1::DrillRequest,
    ) -> Result<DrillUpdates, Status> {
        let mut asked = self.heard(&caller, "drill", request::drill(&request, &caller.name))?;
        asked.call.holder.asker = Some(self.rights.caller.person());
        let found = self.to_drill(&asked).await;
        let node = self.heard(&caller, "drill", found)?;
        let view = self.heard(&caller, "drill", self.view(&node))?;
        if asked.dry_run {
            return self.drill_planned(&view, asked.call).await;
        }
        tracing::info!(%node, caller = caller.name, reason = asked.call.holder.reason, "a drill is asked for");
        let (fence, start) = match self.engine.drill(&node, asked.call).await {
            Ok(Admission::Opened(id)) => (id, StreamStart::Opened),
            Ok(Admission::Joined(id) | Admission::Already(id)) => (id, StreamStart::Joined),
            // Asked again after its end: told as it ended.
            Ok(Admission::Superseded(fence)) => (fence.id, StreamStart::Joined),
            // Nothing is sent to an orphan, whoever asks again.
            Err(EngineError::Blocked { reason, detail }) if reason != Reason::Orphaned => {
                let end = outcome::outcome(&Outcome::Blocked(reason), detail);
                return Ok(one(follow::at_once(&view, self.now().wall, None, end), Vec::new()));
            }
            Err(EngineError::Barred(bar)) => {
                let end = outcome::barred(&bar, self.knows_all());
                return Ok(one(follow::at_once(&view, self.now().wall, None, end), Vec::new()));
            }
            Err(error) => return Err(errors::engine(error, Verb::Drill, &node, &self.engine).into()),
        };
        let following = FollowRequest { node, fence, goal: Goal::Drill, deadline: None, start };
        let updates = Follower::new(self, following, caller.slot)?.updates();
        let engine = self.engine.clone();
        let told = updates.then(move |update| {
            let engine = engine.clone();
            async move {
                let update = update?;
                let fence = engine.get_fence(fence).await.map_err(errors::asked)?;
                let findings = fence.iter().flat_map(|fence| fence.findings()).map(str::to_owned).collect();
                Ok(v1::DrillResponse { update: Some(update), findings })
            }
        });
        Ok(told.boxed())
    }

    /// The node that is meant. Of a group the one whose last drill is the longest ago, of those that could be drilled now;
    /// asked again with the same key it is the same one.
    async fn to_drill(&self, asked: &DrillParameters) -> Result<NodeId, Fault> {
        let group = match &asked.target {
            DrillTarget::Node(node) => return node.find(self),
            DrillTarget::Group(group) => group,
        };
        self.leads()?;
        let members = group.members(self)?;
        let key = asked.call.key.as_ref();
        let mut views = Vec::new();
        for member in members {
            if let Some(key) = key
                && self.engine.is_bound(&member, key).await.map_err(errors::asked)?
            {
                return Ok(member);
            }
            views.push(self.view(&member)?);
        }
        let possible = |view: &&NodeView| view.plan.may_be_drilled(&view.stored.record).is_ok();
        let next = views.iter().filter(possible).min_by(|a, b| {
            let of = |view: &NodeView| view.stored.record.drilled_at;
            of(a).cmp(&of(b)).then_with(|| natural_order::compare(a.plan.id.as_str(), b.plan.id.as_str()))
        });
        next.map(|view| view.plan.id.clone()).ok_or_else(|| self.none_to_drill(&views))
    }

    /// Why no node of a group can be drilled now: what is the nearest to one that can is told.
    fn none_to_drill(&self, views: &[NodeView]) -> Fault {
        let is_normal = |view: &NodeView| view.stored.record.phase == Phase::Normal;
        let allowed = || views.iter().filter(|view| view.plan.drills);
        if allowed().next().is_some() && !allowed().any(is_normal) {
            let message =
                "no node of the group is in phase normal: a drill is of a node of which nothing is wrong";
            return Fault::new(ErrorReason::WrongPhase, message).with_list("wanted", &["NORMAL"]);
        }
        let told = allowed().find(|view| is_normal(view)).or(views.first());
        let refused =
            told.and_then(|view| Some((view, view.plan.may_be_drilled(&view.stored.record).err()?)));
        match refused {
            Some((view, error)) => errors::engine(error, Verb::Drill, &view.plan.id, &self.engine),
            None => Fault::new(ErrorReason::NodeNotFound, "the group has no node that you may drill"),
        }
    }

    /// What a drill would do, by the same admission. Nothing is stored, and nothing is sent that changes power.
    async fn drill_planned(&self, view: &NodeView, call: FenceCall) -> Result<DrillUpdates, Status> {
        let (record, node) = (&view.stored.record, &view.plan.id);
        let found = self.engine.plan_drill(node, call).await;
        let found = found.map_err(|error| errors::engine(error, Verb::Drill, node, &self.engine))?;
        let mut end = plan::outcome_of(&found, self.knows_all());
        if end.kind == i32::from(OutcomeKind::DryRun) {
            end.detail = format!("{node} would be fenced and brought back");
        }
        let levels = view.plan.levels_now(record).supplies_first();
        let mut findings: Vec<String> = levels
            .levels()
            .iter()
            .enumerate()
            .map(|(index, level)| {
                let names: Vec<&str> = level.devices.iter().map(|spec| spec.id.as_str()).collect();
                format!("level {} would be {}", index + 1, names.join(", "))
            })
            .collect();
        findings
            .extend(view.plan.releases.iter().map(|release| format!("release {} would be made", release.id)));
        Ok(one(follow::at_once(view, self.now().wall, None, end), findings))
    }
}

fn one(update: v1::FenceUpdate, findings: Vec<String>) -> DrillUpdates {
    stream::iter([Ok(v1::DrillResponse { update: Some(update), findings })]).boxed()
}
