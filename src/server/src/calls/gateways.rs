//! ListGateways, and in which part this one answers.

use picket_engine::Part;
use picket_proto::v1;
use tonic::Status;

use super::FencingHandlers;
use crate::convert::gateway;
use crate::errors;
use crate::fault::Fault;

impl FencingHandlers {
    /// The gateways, and which of them leads. It is answered in whatever part.
    pub(crate) async fn list_gateways(
        &self,
        _request: v1::ListGatewaysRequest,
    ) -> Result<v1::ListGatewaysResponse, Status> {
        Ok(self.hiding(gateway::gateways(&self.engine)))
    }

    /// In which part this gateway tells what is stored; a refusal where it may not be so any more.
    pub(crate) fn tells(&self) -> Result<Part, Fault> {
        self.engine.part().map_err(|absent| errors::absent(&self.engine, &absent))
    }

    /// The same, as it goes out with an answer.
    pub(crate) fn served(&self) -> Result<v1::Served, Fault> {
        Ok(gateway::served(&self.engine.me(), &self.tells()?))
    }
}
