//! The service: each call lets its caller in, is answered in a file of its own, and maps the answer.

use futures::StreamExt;
use futures::stream::BoxStream;
use picket_proto::v1;
use picket_proto::v1::fencing_service_server::FencingService;
use tonic::{Request, Response, Status};

use crate::calls::FencingHandlers;

/// The service `picket.v1.FencingService`.
#[derive(Debug)]
pub(crate) struct Service(pub(crate) FencingHandlers);

type Answers<T> = BoxStream<'static, Result<T, Status>>;
type Streamed<T> = Result<Response<Answers<T>>, Status>;
type Answered<T> = Result<Response<T>, Status>;

/// Lets the caller in for a stream, and wraps each update into the call's own message.
macro_rules! updates {
    ($self:ident, $request:ident, $call:ident, $message:ident) => {{
        let caller = $self.0.admission.stream(&$request)?;
        let handlers = $self.0.of(&caller);
        let updates = handlers
            .$call(caller, $request.into_inner())
            .await
            .map_err(|status| handlers.refusing(status))?;
        let told = updates.map(move |update| {
            let update = Some(handlers.hiding(update.map_err(|status| handlers.refusing(status))?));
            Ok(v1::$message { update })
        });
        Ok(Response::new(told.boxed()))
    }};
}

/// Lets the caller in for one answer.
macro_rules! answer {
    ($self:ident, $request:ident, $call:ident) => {{
        let caller = $self.0.admission.call(&$request)?;
        let handlers = $self.0.of(&caller);
        let answer = handlers.$call($request.into_inner()).await;
        Ok(Response::new(answer.map_err(|status| handlers.refusing(status))?))
    }};
}

/// The same for a call that has to know its caller; `$of` makes the answer.
macro_rules! answer_guest {
    ($self:ident, $request:ident, $call:ident, $of:expr) => {{
        let caller = $self.0.admission.call(&$request)?;
        let handlers = $self.0.of(&caller);
        let answer = handlers.$call(caller, $request.into_inner()).await;
        Ok(Response::new($of(answer.map_err(|status| handlers.refusing(status))?)))
    }};
}

#[tonic::async_trait]
impl FencingService for Service {
    type FenceStream = Answers<v1::FenceResponse>;
    type UnfenceStream = Answers<v1::UnfenceResponse>;
    type WatchNodesStream = Answers<v1::WatchNodesResponse>;
    type RetryStream = Answers<v1::RetryResponse>;
    type StandDownStream = Answers<v1::StandDownResponse>;
    type DrillStream = Answers<v1::DrillResponse>;
    type AttestStream = Answers<v1::AttestResponse>;
    type BackupStream = Answers<v1::BackupResponse>;
    type CheckDevicesStream = Answers<v1::CheckDevicesResponse>;

    async fn fence(&self, request: Request<v1::FenceRequest>) -> Streamed<v1::FenceResponse> {
        updates!(self, request, fence, FenceResponse)
    }

    async fn unfence(&self, request: Request<v1::UnfenceRequest>) -> Streamed<v1::UnfenceResponse> {
        updates!(self, request, unfence, UnfenceResponse)
    }

    async fn get_node(&self, request: Request<v1::GetNodeRequest>) -> Answered<v1::GetNodeResponse> {
        answer!(self, request, get_node)
    }

    async fn list_nodes(&self, request: Request<v1::ListNodesRequest>) -> Answered<v1::ListNodesResponse> {
        answer!(self, request, list_nodes)
    }

    async fn watch_nodes(&self, request: Request<v1::WatchNodesRequest>) -> Streamed<v1::WatchNodesResponse> {
        let caller = self.0.admission.stream(&request)?;
        let (handlers, refusing) = (self.0.of(&caller), self.0.of(&caller));
        let told =
            handlers.watch(caller, request.into_inner()).await.map_err(|status| refusing.refusing(status))?;
        Ok(Response::new(told.map(move |told| told.map_err(|status| refusing.refusing(status))).boxed()))
    }

    async fn list_gateways(
        &self,
        request: Request<v1::ListGatewaysRequest>,
    ) -> Answered<v1::ListGatewaysResponse> {
        answer!(self, request, list_gateways)
    }

    async fn get_fence(&self, request: Request<v1::GetFenceRequest>) -> Answered<v1::GetFenceResponse> {
        answer!(self, request, get_fence)
    }

    async fn list_fences(&self, request: Request<v1::ListFencesRequest>) -> Answered<v1::ListFencesResponse> {
        answer!(self, request, list_fences)
    }

    async fn retry(&self, request: Request<v1::RetryRequest>) -> Streamed<v1::RetryResponse> {
        updates!(self, request, retry, RetryResponse)
    }

    async fn stand_down(&self, request: Request<v1::StandDownRequest>) -> Streamed<v1::StandDownResponse> {
        updates!(self, request, stand_down, StandDownResponse)
    }

    async fn abandon_release(
        &self,
        request: Request<v1::AbandonReleaseRequest>,
    ) -> Answered<v1::AbandonReleaseResponse> {
        answer_guest!(self, request, abandon, |node| v1::AbandonReleaseResponse { node: Some(node) })
    }

    async fn get_receipt(&self, request: Request<v1::GetReceiptRequest>) -> Answered<v1::GetReceiptResponse> {
        let caller = self.0.admission.call(&request)?;
        let handlers = self.0.of(&caller);
        let answer = handlers.get_receipt(&caller, request.into_inner()).await;
        Ok(Response::new(answer.map_err(|status| handlers.refusing(status))?))
    }

    async fn return_receipt(
        &self,
        request: Request<v1::ReturnReceiptRequest>,
    ) -> Answered<v1::ReturnReceiptResponse> {
        let caller = self.0.admission.call(&request)?;
        let handlers = self.0.of(&caller);
        let answer = handlers.return_receipt(&caller, request.into_inner()).await;
        Ok(Response::new(answer.map_err(|status| handlers.refusing(status))?))
    }

    async fn verify_receipt(
        &self,
        request: Request<v1::VerifyReceiptRequest>,
    ) -> Answered<v1::VerifyReceiptResponse> {
        answer!(self, request, verify_receipt)
    }

    async fn list_receipt_keys(
        &self,
        request: Request<v1::ListReceiptKeysRequest>,
    ) -> Answered<v1::ListReceiptKeysResponse> {
        answer!(self, request, list_receipt_keys)
    }

    async fn hold(&self, request: Request<v1::HoldRequest>) -> Answered<v1::HoldResponse> {
        answer_guest!(self, request, hold, |node| v1::HoldResponse { node: Some(node) })
    }

    async fn drop_hold(&self, request: Request<v1::DropHoldRequest>) -> Answered<v1::DropHoldResponse> {
        answer_guest!(self, request, drop_hold, |node| v1::DropHoldResponse { node: Some(node) })
    }

    async fn retire(&self, request: Request<v1::RetireRequest>) -> Answered<v1::RetireResponse> {
        answer_guest!(self, request, retire, |node| v1::RetireResponse { node: Some(node) })
    }

    async fn accept_identity(
        &self,
        request: Request<v1::AcceptIdentityRequest>,
    ) -> Answered<v1::AcceptIdentityResponse> {
        answer_guest!(self, request, accept_identity, |node| v1::AcceptIdentityResponse { node: Some(node) })
    }

    async fn drill(&self, request: Request<v1::DrillRequest>) -> Streamed<v1::DrillResponse> {
        let caller = self.0.admission.stream(&request)?;
        let handlers = self.0.of(&caller);
        let told =
            handlers.drill(caller, request.into_inner()).await.map_err(|status| handlers.refusing(status))?;
        let told = told.map(move |told| {
            told.map(|told| handlers.hiding(told)).map_err(|status| handlers.refusing(status))
        });
        Ok(Response::new(told.boxed()))
    }

    async fn attest(&self, request: Request<v1::AttestRequest>) -> Streamed<v1::AttestResponse> {
        updates!(self, request, attest, AttestResponse)
    }

    async fn pause(&self, request: Request<v1::PauseRequest>) -> Answered<v1::PauseResponse> {
        answer_guest!(self, request, pause, std::convert::identity)
    }

    async fn resume(&self, request: Request<v1::ResumeRequest>) -> Answered<v1::ResumeResponse> {
        answer_guest!(self, request, resume, std::convert::identity)
    }

    async fn plan_fence(&self, request: Request<v1::PlanFenceRequest>) -> Answered<v1::PlanFenceResponse> {
        answer_guest!(self, request, plan_fence, std::convert::identity)
    }

    async fn backup(&self, request: Request<v1::BackupRequest>) -> Streamed<v1::BackupResponse> {
        let caller = self.0.admission.stream(&request)?;
        Ok(Response::new(self.0.of(&caller).backup(caller, request.into_inner()).await?.boxed()))
    }

    async fn check_devices(
        &self,
        request: Request<v1::CheckDevicesRequest>,
    ) -> Streamed<v1::CheckDevicesResponse> {
        let caller = self.0.admission.stream(&request)?;
        let handlers = self.0.of(&caller);
        let told = handlers.check_devices(caller, request.into_inner()).await;
        let told = told.map_err(|status| handlers.refusing(status))?;
        Ok(Response::new(told.map(move |told| told.map_err(|status| handlers.refusing(status))).boxed()))
    }
}
