//! CheckDevices: each device is asked now. Nothing is changed.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::record::Phase;
use picket_engine::NodeView;
use picket_proto::v1::{self, ErrorReason};
use tokio::time::Instant;
use tonic::Status;

use super::FencingHandlers;
use crate::admission::AuthenticatedCaller;
use crate::convert::device::devices;
use crate::convert::request;
use crate::convert::time::duration;
use crate::errors::{self, Verb};
use crate::fault::{Fault, Fields};
use crate::select::NodeSetTarget;

/// So many nodes are asked side by side.
const AT_ONCE: usize = 64;

impl FencingHandlers {
    /// Asks the devices of these nodes, and tells each as it answers. Of a node that is fenced, or on its way there, what is
    /// known is told: its devices are read all the time, and nothing else is asked of them.
    pub(crate) async fn check_devices(
        &self,
        caller: AuthenticatedCaller,
        request: v1::CheckDevicesRequest,
    ) -> Result<impl Stream<Item = Result<v1::CheckDevicesResponse, Status>> + Send + use<>, Status> {
        let mut fields = Fields::default();
        let wanted = NodeSetTarget::of(request.nodes.as_ref(), "nodes", &mut fields);
        let device = match request.device.as_str() {
            "" => None,
            text => request::device(text, &mut fields),
        };
        fields.done()?;
        let Some(wanted) = wanted else { return Err(errors::internal("a set was lost").into()) };
        self.leads()?;
        let mut nodes = Vec::new();
        let mut known = BTreeSet::new();
        let mut retired = Vec::new();
        for node in wanted.members(self)? {
            let view = self.view(&node)?;
            // Its hardware is gone: there is nothing that could be fenced, or could not.
            if view.stored.record.phase == Phase::Retired {
                retired.push(node.to_string());
                continue;
            }
            let names: BTreeSet<DeviceId> =
                view.plan.topology.devices().map(|spec| spec.id.clone()).collect();
            let asked =
                names.iter().filter(|name| device.as_ref().is_none_or(|device| device == *name)).count();
            known.extend(names);
            if asked > 0 {
                nodes.push((node, asked));
            }
        }
        if nodes.is_empty() && known.is_empty() && !retired.is_empty() {
            let message = format!(
                "all of these nodes are retired, and nothing is asked of them: {}",
                retired.join(", ")
            );
            return Err(Fault::new(ErrorReason::WrongPhase, message).into());
        }
        if let Some(device) = device.as_ref().filter(|_| nodes.is_empty()) {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            let message = format!("none of these nodes has a device {:?}", device.as_str());
            let fault = Fault::new(ErrorReason::DeviceNotFound, message);
            return Err(fault.resource("device", device.as_str()).with_list("devices", &names).into());
        }
        let mut left: usize = nodes.iter().map(|(_, devices)| devices).sum();
        let (handlers, slot) = (self.clone(), caller.slot);
        let asked = stream::iter(nodes).map(move |(node, _)| {
            let handlers = handlers.clone();
            async move {
                let began = Instant::now();
                let answer = handlers.checked(&node).await;
                (node, began.elapsed(), answer)
            }
        });
        let handlers = self.clone();
        let told = asked.buffer_unordered(AT_ONCE).map(move |(node, took, answer)| {
            let _slot = &slot;
            // Devices took their time, and whoever asked may have for the answer before.
            match answer.and_then(|view| handlers.may(&node).map(|()| view)) {
                Ok(view) => handlers.told(&node, &view, device.as_ref(), took, &mut left),
                Err(fault) => vec![Err(fault.into())],
            }
        });
        Ok(told.flat_map(stream::iter))
    }

    /// Asks the devices of one, if the caller may have it asked by the labels of now: many nodes are asked one after the other.
    async fn checked(&self, node: &NodeId) -> Result<NodeView, Fault> {
        self.may(node)?;
        let told = |error| errors::engine(error, Verb::Look, node, &self.engine);
        self.engine.check(node).await.map_err(told)
    }

    fn told(
        &self,
        node: &NodeId,
        view: &NodeView,
        device: Option<&DeviceId>,
        took: Duration,
        left: &mut usize,
    ) -> Vec<Result<v1::CheckDevicesResponse, Status>> {
        let all = devices(view, self.now()).into_iter();
        let wanted = all.filter(|told| device.is_none_or(|device| device.as_str() == told.id));
        wanted
            .map(|mut told| {
                if let Some(why) = &view.live.orphaned {
                    told.readiness = v1::Readiness::NotReady.into();
                    let kind = v1::DeviceProblemKind::Settings.into();
                    told.problems.insert(0, v1::DeviceProblem { kind, text: format!("ORPHANED: {why}") });
                }
                *left = left.saturating_sub(1);
                let checked = view.live.devices.iter().find(|(id, _)| id.as_str() == told.id);
                let took =
                    checked.and_then(|(_, live)| live.checked.as_ref()).map_or(took, |checked| checked.took);
                Ok(self.hiding(v1::CheckDevicesResponse {
                    node: node.to_string(),
                    device: Some(told),
                    took: Some(duration(took)),
                    left: u32::try_from(*left).unwrap_or(u32::MAX),
                }))
            })
            .collect()
    }
}
