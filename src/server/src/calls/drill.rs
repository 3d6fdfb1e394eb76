//! Drill: a fence on purpose, followed until the node is back.

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use picket_core::device::DeviceClass;
use picket_core::ids::NodeId;
use picket_core::machine::Refused;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_engine::{Admission, EngineError, FenceCall, NodeView};
use picket_proto::v1::{self, ErrorReason, OutcomeKind};
use tonic::Status;

use super::Desk;
use crate::convert::request::{self, DrillAsked, DrillTarget};
use crate::convert::{outcome, plan};
use crate::door::Guest;
use crate::errors::{self, Verb};
use crate::fault::Fault;
use crate::follow::{self, Follower, Following, Goal, Start};
use crate::names;

/// The messages of a drill.
pub(crate) type Drilled = BoxStream<'static, Result<v1::DrillResponse, Status>>;

impl Desk {
    /// Fences a node of a group whose settings allow it, and follows it until it is back.
    pub(crate) async fn drill(&self, guest: Guest, request: v1::DrillRequest) -> Result<Drilled, Status> {
        let asked = self.heard(&guest, "drill", request::drill(&request, &guest.caller))?;
        let found = self.to_drill(&asked).await;
        let node = self.heard(&guest, "drill", found)?;
        let view = self.heard(&guest, "drill", self.view(&node))?;
        self.heard(&guest, "drill", self.no_orphan(&view))?;
        self.heard(&guest, "drill", allows(&view))?;
        if asked.dry_run {
            return self.drill_planned(&view, asked.call).await;
        }
        tracing::info!(%node, caller = guest.caller, reason = asked.call.holder.reason, "a drill is asked for");
        let (fence, start) = match self.engine.drill(&node, asked.call).await {
            Ok(Admission::Opened(id)) => (id, Start::Opened),
            Ok(Admission::Joined(id) | Admission::Already(id)) => (id, Start::Joined),
            // Asked again after its end: told as it ended.
            Ok(Admission::Superseded(fence)) => (fence.id, Start::Joined),
            Err(EngineError::Blocked { reason, detail }) => {
                let end = outcome::outcome(&Outcome::Blocked(reason), detail);
                return Ok(one(follow::at_once(&view, self.now().wall, None, end), Vec::new()));
            }
            Err(EngineError::Barred(bar)) => {
                let end = outcome::barred(&bar);
                return Ok(one(follow::at_once(&view, self.now().wall, None, end), Vec::new()));
            }
            Err(error) => return Err(errors::engine(error, Verb::Drill, &node, &self.engine).into()),
        };
        let following = Following { node, fence, goal: Goal::Drill, deadline: None, start };
        let updates = Follower::new(&self.engine, following, &self.door.stop(), guest.place)?.updates();
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

    /// Nothing is sent to an orphan, whatever the settings once allowed.
    fn no_orphan(&self, view: &NodeView) -> Result<(), Fault> {
        let Some(why) = &view.live.orphaned else { return Ok(()) };
        let detail = format!("{} is ORPHANED: {why}; put its settings back, or retire it", view.plan.id);
        let blocked = EngineError::Blocked { reason: Reason::Orphaned, detail };
        Err(errors::engine(blocked, Verb::Drill, &view.plan.id, &self.engine))
    }

    /// The node that is meant. Of a group the one whose last drill is the longest ago, of those that could be drilled now;
    /// asked again with the same key it is the same one.
    async fn to_drill(&self, asked: &DrillAsked) -> Result<NodeId, Fault> {
        let group = match &asked.target {
            DrillTarget::Node(node) => return node.find(self),
            DrillTarget::Group(group) => group,
        };
        self.leads()?;
        let members = group.members(self)?;
        let key = asked.call.key.as_ref().map(|bound| bound.key.as_str());
        let mut views = Vec::new();
        for member in members {
            if let Some(key) = key
                && self.engine.is_bound(&member, key).await.map_err(errors::asked)?
            {
                return Ok(member);
            }
            views.push(self.view(&member)?);
        }
        let Some(first) = views.first() else {
            return Err(Fault::new(ErrorReason::NodeNotFound, "the group has no node that you may drill"));
        };
        let could: Vec<&NodeView> = views.iter().filter(|view| allows(view).is_ok()).collect();
        if could.is_empty() {
            let would = views.iter().find(|view| view.plan.drills).unwrap_or(first);
            return Err(allows(would).err().unwrap_or_else(|| not_allowed(would)));
        }
        let idle = could.into_iter().filter(|view| view.stored.record.phase == Phase::Normal);
        let next = idle.min_by(|a, b| {
            let of = |view: &NodeView| view.stored.record.drilled_at;
            of(a).cmp(&of(b)).then_with(|| names::compare(a.plan.id.as_str(), b.plan.id.as_str()))
        });
        next.map(|view| view.plan.id.clone()).ok_or_else(|| {
            let message =
                "no node of the group is in phase normal: a drill is of a node of which nothing is wrong";
            Fault::new(ErrorReason::WrongPhase, message).with_list("wanted", &["NORMAL"])
        })
    }

    /// What a drill would do, by the same admission. Nothing is stored, and nothing is sent that changes power.
    async fn drill_planned(&self, view: &NodeView, call: FenceCall) -> Result<Drilled, Status> {
        let (record, node) = (&view.stored.record, &view.plan.id);
        if record.phase != Phase::Normal {
            let refused = Refused::Phase {
                wanted: "a drill",
                phase: record.phase.label(),
                hint: "a drill is of a node of which nothing is wrong",
            };
            return Err(errors::engine(refused.into(), Verb::Drill, node, &self.engine).into());
        }
        let found = self.engine.plan_drill(node, call).await;
        let found = found.map_err(|error| errors::engine(error, Verb::Drill, node, &self.engine))?;
        let mut end = plan::outcome_of(&found);
        if end.kind == i32::from(OutcomeKind::DryRun) {
            end.detail = format!("{node} would be fenced and brought back");
        }
        let levels = view.plan.with_wiring(record).supplies_first();
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

fn one(update: v1::FenceUpdate, findings: Vec<String>) -> Drilled {
    stream::iter([Ok(v1::DrillResponse { update: Some(update), findings })]).boxed()
}

fn allows(view: &NodeView) -> Result<(), Fault> {
    if !view.plan.drills {
        return Err(not_allowed(view));
    }
    // Outlets that feed something else, such as the switch before the BMC, would prove a machine dark that runs.
    let levels = view.plan.with_wiring(&view.stored.record);
    let guessed: Vec<&str> = levels
        .devices()
        .filter(|spec| spec.class == DeviceClass::Supply && !spec.verified)
        .map(|spec| spec.id.as_str())
        .collect();
    if guessed.is_empty() || view.plan.releases.is_empty() {
        return Ok(());
    }
    let message = format!(
        "nobody knows yet what {} feed, and {} has volumes that a drill would let go: drill it with `releases = []`, and \
         give it its releases after that",
        guessed.join(", "),
        view.plan.id
    );
    Err(Fault::new(ErrorReason::NotOffered, message).with_list("supplies", &guessed))
}

fn not_allowed(view: &NodeView) -> Fault {
    let groups: Vec<&str> = view.plan.groups.iter().map(String::as_str).collect();
    let of = if groups.is_empty() {
        "it is in no group".to_owned()
    } else {
        format!("its groups are {}", groups.join(", "))
    };
    let node = &view.plan.id;
    let message = format!(
        "the settings allow no drill of {node}: `drills = true` in the rules of one of its groups would, and false in none ({of})"
    );
    Fault::new(ErrorReason::NotOffered, message)
}
