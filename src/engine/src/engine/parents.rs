//! Which node a machine's name means, who holds whom, and questions from one node to another.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{DeviceClass, Grade};
use picket_core::ids::NodeId;
use picket_core::power::Power;
use picket_core::record::Phase;
use picket_driver::{Call, PowerDriver};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Shared;
use crate::error::EngineError;
use crate::node::Command;
use crate::office::names;
use crate::parents::{CLOUD_LABEL, CopyHost, NOT_SEEN, Nodes, ParentAnswer, ParentAsk, called};
use crate::parts::node_plan::NodePlan;
use crate::view::NodeView;

/// A fence waits no longer for where the gateway's own machine runs.
const LOCATE: Duration = Duration::from_secs(2);

#[async_trait]
impl Nodes for Shared {
    fn node(&self, node: &NodeId) -> Result<NodeView, EngineError> {
        Ok(self.slot(node)?.view.borrow().clone())
    }

    fn parent_named(&self, host: &str, cloud: Option<&str>) -> Result<NodeId, String> {
        let fleet = self.fleet();
        let of_that_name = || fleet.plans.values().filter(|plan| called(&plan.id, &plan.labels) == host);
        // Two clouds may call two machines alike. Where all devices are of one, its names need not say whose they are.
        let is_of_it = |plan: &&Arc<NodePlan>| match plan.labels.get(CLOUD_LABEL) {
            Some(of) => cloud == Some(of),
            None => !fleet.has_several_clouds,
        };
        let called: Vec<&Arc<NodePlan>> = of_that_name().filter(is_of_it).collect();
        match called.as_slice() {
            [] => Err(match (of_that_name().next(), cloud) {
                (Some(other), Some(cloud)) => format!(
                    "it runs on {host} of {cloud}, and whether {} is that one is not known: another cloud may call another machine so. If it is, \
                     give that node the label {CLOUD_LABEL} = {cloud:?}",
                    other.id
                ),
                _ => format!("it runs on {host}, which is no node of the settings"),
            }),
            [only] if only.topology.devices().any(|spec| spec.class == DeviceClass::Parent) => Err(format!(
                "it runs on {host}, and {} has a parent of its own: a machine that is fenced for another one must be fenced by its own devices",
                only.id
            )),
            [only] => Ok(only.id.clone()),
            [one, other, ..] => {
                Err(format!("it runs on {host}, and both {} and {} are called so", one.id, other.id))
            }
        }
    }

    fn host_of_a_copy(&self, host: &str, cloud: Option<&str>, least: Grade) -> CopyHost {
        let Ok(node) = self.parent_named(host, cloud) else { return CopyHost::MayRun };
        let Ok(slot) = self.slot(&node) else { return CopyHost::MayRun };
        let view = slot.view.borrow();
        let record = &view.stored.record;
        let evidence = record.fence.as_ref().and_then(|fence| fence.evidence.as_ref());
        match record.phase {
            // An orphan's power is read by nobody. A restored record has no evidence.
            Phase::Fenced | Phase::Released
                if view.live.orphaned.is_none() && evidence.is_some_and(|one| one.grade >= least) =>
            {
                CopyHost::Off(node)
            }
            Phase::Retired => CopyHost::Gone,
            _ => CopyHost::MayRun,
        }
    }

    fn plan_of(&self, node: &NodeId) -> Option<Arc<NodePlan>> {
        self.slot(node).ok().map(|slot| slot.plan.clone())
    }

    fn held_by(&self, child: &NodeId) -> Vec<NodeId> {
        self.office.held_by(child)
    }

    fn orphaned(&self, node: &NodeId) -> Option<String> {
        self.slot(node).ok()?.view.borrow().live.orphaned.as_ref().map(ToString::to_string)
    }

    fn seems_on(&self, node: &NodeId) -> Result<(), &'static str> {
        let slot = self.slot(node).map_err(|_| "is no node of the settings")?;
        let view = slot.view.borrow();
        let reads = |power: Power| {
            let of = |class: DeviceClass| {
                let specs = slot.plan.topology.devices().filter(move |spec| spec.class == class);
                specs.filter_map(|spec| view.live.devices.get(&spec.id)?.power)
            };
            let hosts: Vec<Power> = of(DeviceClass::Host).map(|(power, _)| power).collect();
            let said = if hosts.is_empty() {
                of(DeviceClass::Supply).map(|(power, _)| power).collect()
            } else {
                hosts
            };
            said.contains(&power)
        };
        match &view.stored.record.phase {
            Phase::Unfencing => Err("is being brought back"),
            Phase::Normal | Phase::PowerOnFailed if reads(Power::On) => Ok(()),
            Phase::Normal | Phase::PowerOnFailed => Err(NOT_SEEN),
            _ => Err("is kept off, and not for it"),
        }
    }

    async fn locate_own_host(&self) {
        let own = &self.parts.own;
        let own =
            self.fleet().slots.values().find(|slot| slot.is_own_host(own)).map(|slot| slot.plan.clone());
        let is_parent = |driver: &&Arc<dyn PowerDriver>| driver.traits().class == DeviceClass::Parent;
        let Some(parent) = own.iter().flat_map(|plan| plan.drivers.values()).find(is_parent) else { return };
        if parent.only_parent().is_none() {
            let call = Call::reading(Instant::now() + LOCATE, self.parts.clock.clone());
            let asked = tokio::time::timeout(LOCATE, parent.placement(&call)).await;
            if !matches!(asked, Ok(Ok(_))) {
                tracing::warn!(
                    "where this gateway's own machine runs is not said now: it is taken to be where it was"
                );
            }
        }
    }

    fn carries_own_host(&self, node: &NodeId) -> bool {
        let children = self.office.children(node);
        let fleet = self.fleet();
        let is_own =
            |child: &NodeId| fleet.slots.get(child).is_some_and(|slot| slot.is_own_host(&self.parts.own));
        children.iter().any(is_own)
    }

    fn tries_its_parent(&self, child: &NodeId) -> bool {
        self.office.standing(child).is_some_and(|child| child.tries_its_parent)
    }

    fn is_unfencing(&self, child: &NodeId) -> bool {
        self.office.standing(child).is_some_and(|child| child.is_unfencing)
    }

    fn askers(&self, child: &NodeId) -> String {
        self.office.standing(child).map(|child| names(&child.askers)).unwrap_or_default()
    }

    fn runs_on(&self, child: &NodeId, parent: &NodeId) {
        self.office.runs_on(child, parent);
    }

    async fn of_parent(&self, parent: &NodeId, ask: ParentAsk) -> Result<ParentAnswer, EngineError> {
        let slot = self.slot(parent)?;
        let term = self.led().map_err(EngineError::NoLeader)?.term();
        let (reply, answer) = oneshot::channel();
        let command = Command::Parent(ask, term, reply);
        slot.mailbox.send(command).await.map_err(|_| EngineError::Unanswered)?;
        answer.await.map_err(|_| EngineError::Unanswered)?
    }
}
