//! What people ask of a node besides fencing it: holds, attestation, retirement, an exchanged board.

use std::sync::Arc;

use picket_core::record::NodeRecord;
use picket_engine::{NodeView, Taken};
use picket_proto::v1;
use tonic::Status;

use super::motion::{is_repeated, log};
use super::{FencingHandlers, Updates};
use crate::admission::AuthenticatedCaller;
use crate::convert::request;
use crate::errors::{self, Verb};

impl FencingHandlers {
    /// Places a hold, or renews its reason.
    pub(crate) async fn hold(
        &self,
        caller: AuthenticatedCaller,
        request: v1::HoldRequest,
    ) -> Result<v1::Node, Status> {
        let mut asked = self.heard(&caller, "hold", request::hold(&request, &caller.name))?;
        let node = self.heard(&caller, "hold", asked.node.find(self))?;
        self.may_act_for(&asked.holder, &node)?;
        asked.ask.by_person = self.is_a_person(&node);
        let before = self.heard(&caller, "hold", self.view(&node))?;
        log("hold", &before, &caller, &asked);
        match self.engine.hold(&node, asked.holder, asked.ask).await {
            Ok(taken) => Ok(self.after(before, taken)),
            Err(error) => Err(errors::engine(error, Verb::Hold, &node, &self.engine).into()),
        }
    }

    /// Drops a hold, and waits for nothing. Asked of a node that is not fenced, or is being brought back, it is so already.
    /// What the holder has waiting in the queue ends first.
    pub(crate) async fn drop_hold(
        &self,
        caller: AuthenticatedCaller,
        request: v1::DropHoldRequest,
    ) -> Result<v1::Node, Status> {
        let mut asked = self.heard(&caller, "drop_hold", request::drop_hold(&request, &caller.name))?;
        let node = self.heard(&caller, "drop_hold", asked.node.find(self))?;
        asked.ask.by_person = self.is_a_person(&node);
        self.may_drop(&asked.holder, &node)?;
        let before = self.heard(&caller, "drop_hold", self.view(&node))?;
        log("drop-hold", &before, &caller, &asked);
        self.withdraw(&caller, "drop_hold", &node, &asked).await?;
        let expected = asked.ask.expected_generation;
        match self.dropped(&node, asked.holder, asked.ask).await {
            Ok(taken) => Ok(self.after(before, taken)),
            Err(error) => {
                let view = self.view_after(&node)?;
                if is_repeated(&error, expected, &view) {
                    return Ok(self.node(&view));
                }
                Err(errors::engine(error, Verb::Unfence, &node, &self.engine).into())
            }
        }
    }

    /// A person vouches that the node is off: follows its releases.
    pub(crate) async fn attest(
        &self,
        caller: AuthenticatedCaller,
        request: v1::AttestRequest,
    ) -> Result<Updates, Status> {
        let asked = self.heard(&caller, "attest", request::attest(&request, &caller.name))?;
        let node = self.heard(&caller, "attest", asked.node.find(self))?;
        let before = self.heard(&caller, "attest", self.view(&node))?;
        log("attest", &before, &caller, &asked);
        match self.engine.attest(&node, asked.ask).await {
            Ok(taken) => self.follow(caller, Verb::Attest, before, taken, None),
            Err(error) => Err(errors::engine(error, Verb::Attest, &node, &self.engine).into()),
        }
    }

    /// The hardware is gone for good.
    pub(crate) async fn retire(
        &self,
        caller: AuthenticatedCaller,
        request: v1::RetireRequest,
    ) -> Result<v1::Node, Status> {
        let asked = self.heard(&caller, "retire", request::retire(&request, &caller.name))?;
        let node = self.heard(&caller, "retire", asked.node.find(self))?;
        let before = self.heard(&caller, "retire", self.view(&node))?;
        log("retire", &before, &caller, &asked);
        match self.engine.retire(&node, asked.ask).await {
            Ok(taken) => Ok(self.after(before, taken)),
            Err(error) => Err(errors::engine(error, Verb::Retire, &node, &self.engine).into()),
        }
    }

    /// A board was exchanged: what the device says now is what it is to say.
    pub(crate) async fn accept_identity(
        &self,
        caller: AuthenticatedCaller,
        request: v1::AcceptIdentityRequest,
    ) -> Result<v1::Node, Status> {
        let came = request::accept_identity(&request, &caller.name);
        let (asked, device, expected) = self.heard(&caller, "accept_identity", came)?;
        let node = self.heard(&caller, "accept_identity", asked.node.find(self))?;
        let before = self.heard(&caller, "accept_identity", self.view(&node))?;
        log("accept-identity", &before, &caller, &asked);
        match self.engine.accept_identity(&node, device, expected, asked.ask).await {
            Ok(taken) => Ok(self.after(before, taken)),
            Err(error) => Err(errors::engine(error, Verb::Accept, &node, &self.engine).into()),
        }
    }

    /// The node as it stood when what was asked was stored. An orphan that was retired is not known any more by then.
    fn after(&self, before: NodeView, taken: Taken) -> v1::Node {
        let mut view = self.view(&before.plan.id).unwrap_or(before);
        if let Taken::Now(record) = taken {
            Arc::make_mut(&mut view.stored).record = NodeRecord::clone(&record);
        }
        self.node(&view)
    }
}
