//! Every call of the service: it is noted, and answered from the script.

use std::pin::Pin;
use std::time::Duration;

use picket_proto::v1::fencing_service_server::FencingService;
use picket_proto::v1::*;
use tokio_stream::StreamExt;
use tonic::{Request, Response, Status};

use super::super::make::span;
use super::service::{Answer, Service, Streaming, name_of};

macro_rules! not_scripted {
    ($($call:ident: $request:ident -> $answer:ident;)*) => {$(
        // As `async_trait` would write it: it does not see what a macro makes.
        fn $call<'a, 'b>(
            &'a self,
            _: Request<$request>,
        ) -> Pin<Box<dyn Future<Output = Answer<$answer>> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($call))) })
        }
    )*};
}

#[tonic::async_trait]
impl FencingService for Service {
    type FenceStream = Streaming<FenceResponse>;
    type UnfenceStream = Streaming<UnfenceResponse>;
    type RetryStream = Streaming<RetryResponse>;
    type StandDownStream = Streaming<StandDownResponse>;
    type WatchNodesStream = Streaming<WatchNodesResponse>;
    type DrillStream = Streaming<DrillResponse>;
    type AttestStream = Streaming<AttestResponse>;
    type BackupStream = Streaming<BackupResponse>;
    type CheckDevicesStream = Streaming<CheckDevicesResponse>;

    async fn fence(&self, request: Request<FenceRequest>) -> Answer<Self::FenceStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().fenced.push(request);
        self.play(&node, |update| FenceResponse { update: Some(update) })
    }

    async fn unfence(&self, request: Request<UnfenceRequest>) -> Answer<Self::UnfenceStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().unfenced.push(request);
        self.play(&node, |update| UnfenceResponse { update: Some(update) })
    }

    async fn retry(&self, request: Request<RetryRequest>) -> Answer<Self::RetryStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().retried.push(request);
        self.play(&node, |update| RetryResponse { update: Some(update) })
    }

    async fn stand_down(&self, request: Request<StandDownRequest>) -> Answer<Self::StandDownStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().stood_down.push(request);
        self.play(&node, |update| StandDownResponse { update: Some(update) })
    }

    async fn list_nodes(&self, request: Request<ListNodesRequest>) -> Answer<ListNodesResponse> {
        let request = request.into_inner();
        self.script().listed.push(request.clone());
        if let Some(status) = self.script().unlisted.clone() {
            return Err(status);
        }
        let nodes = self.select(&request.nodes)?;
        // Pages of three, whatever is asked for, so that every list of more has to turn pages.
        let from: usize = request.page_token.parse().unwrap_or(0);
        let to = nodes.len().min(from + 3);
        let next = if to < nodes.len() { to.to_string() } else { String::new() };
        Ok(Response::new(ListNodesResponse {
            nodes: nodes[from..to].to_vec(),
            next_page_token: next,
            revision: "life/40".to_owned(),
            total_size: i32::try_from(nodes.len()).expect("few"),
            troubles: Vec::new(),
            served: self.script().served.clone(),
        }))
    }

    async fn watch_nodes(&self, request: Request<WatchNodesRequest>) -> Answer<Self::WatchNodesStream> {
        let mut script = self.script();
        script.watched.push(request.into_inner());
        let steps =
            script.watches.pop_front().ok_or_else(|| Status::unavailable("nothing is scripted any more"))?;
        Ok(Response::new(Box::pin(tokio_stream::iter(steps).throttle(Duration::from_millis(1)))))
    }

    async fn list_gateways(&self, _: Request<ListGatewaysRequest>) -> Answer<ListGatewaysResponse> {
        Ok(Response::new(self.script().gateways.clone()))
    }

    async fn get_fence(&self, request: Request<GetFenceRequest>) -> Answer<GetFenceResponse> {
        let id = request.into_inner().fence_id;
        let fence = self.script().fences.iter().find(|fence| fence.id == id).cloned();
        match fence {
            Some(fence) => Ok(Response::new(GetFenceResponse { fence: Some(fence) })),
            None => Err(Status::not_found(format!("there is no fence {id}"))),
        }
    }

    async fn list_fences(&self, request: Request<ListFencesRequest>) -> Answer<ListFencesResponse> {
        let request = request.into_inner();
        let all = self.script().fences.clone();
        let from: usize = request.page_token.parse().unwrap_or(0);
        let size = usize::try_from(request.page_size).expect("a size").min(2);
        let to = all.len().min(from + size);
        let next_page_token = if to < all.len() { to.to_string() } else { String::new() };
        Ok(Response::new(ListFencesResponse { fences: all[from..to].to_vec(), next_page_token }))
    }

    async fn abandon_release(
        &self,
        request: Request<AbandonReleaseRequest>,
    ) -> Answer<AbandonReleaseResponse> {
        let request = request.into_inner();
        let name = name_of(&request.node);
        let mut script = self.script();
        script.abandoned.push(request);
        if let Some(status) = &script.abandon {
            return Err(status.clone());
        }
        let node = script.nodes.iter().find(|node| node.name == name).cloned();
        Ok(Response::new(AbandonReleaseResponse { node }))
    }

    async fn pause(&self, request: Request<PauseRequest>) -> Answer<PauseResponse> {
        let PauseRequest { scope, reason, lasts } = request.into_inner();
        let mut script = self.script();
        script.paused.push((scope.clone(), reason.clone(), lasts.map(|lasts| lasts.seconds)));
        if let Some(status) = &script.abandon {
            return Err(status.clone());
        }
        let expires_at = Some(prost_types::Timestamp { seconds: 1_795_252_220, nanos: 0 });
        let pause = Pause { scope, reason, by: "alice".to_owned(), since: None, expires_at };
        Ok(Response::new(PauseResponse { pause: Some(pause) }))
    }

    async fn resume(&self, request: Request<ResumeRequest>) -> Answer<ResumeResponse> {
        let ResumeRequest { scope, reason } = request.into_inner();
        let mut script = self.script();
        script.paused.push((scope, reason, None));
        match &script.abandon {
            Some(status) => Err(status.clone()),
            None => Ok(Response::new(ResumeResponse { pauses: Vec::new() })),
        }
    }

    async fn plan_fence(&self, request: Request<PlanFenceRequest>) -> Answer<PlanFenceResponse> {
        let request = request.into_inner().fence.unwrap_or_default();
        let name = name_of(&request.node);
        let mut script = self.script();
        script.fenced.push(request);
        let plan = script.plans.iter().find(|plan| plan.node == name).cloned();
        plan.map(Response::new).ok_or_else(|| Status::internal("no plan in the script"))
    }

    async fn drill(&self, request: Request<DrillRequest>) -> Answer<Self::DrillStream> {
        let request = request.into_inner();
        let node = match &request.target {
            Some(drill_request::Target::Node(node)) => name_of(&Some(node.clone())),
            _ => "r1n07".to_owned(),
        };
        self.script().drilled.push(request);
        let findings = || vec!["off by bmc, and back".to_owned()];
        let wrap = move |update| DrillResponse { update: Some(update), findings: findings() };
        self.play(&node, wrap)
    }

    async fn attest(&self, request: Request<AttestRequest>) -> Answer<Self::AttestStream> {
        let request = request.into_inner();
        let node = name_of(&request.node);
        self.script().attested.push(request);
        self.play(&node, |update| AttestResponse { update: Some(update) })
    }

    async fn backup(&self, _: Request<BackupRequest>) -> Answer<Self::BackupStream> {
        let told: Vec<_> = self.script().backup.iter().cloned().map(Ok).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(told))))
    }

    async fn check_devices(&self, _: Request<CheckDevicesRequest>) -> Answer<Self::CheckDevicesStream> {
        let told: Vec<_> = self.script().checked.iter().cloned().map(Ok).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(told))))
    }

    async fn hold(&self, request: Request<HoldRequest>) -> Answer<HoldResponse> {
        let asked = request.into_inner();
        let said = format!("hold {:?} {:?}", asked.holder, asked.expected_generation);
        Ok(Response::new(HoldResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    async fn drop_hold(&self, request: Request<DropHoldRequest>) -> Answer<DropHoldResponse> {
        let asked = request.into_inner();
        let said = format!("drop {:?} {:?}", asked.holder, asked.expected_generation);
        Ok(Response::new(DropHoldResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    async fn retire(&self, request: Request<RetireRequest>) -> Answer<RetireResponse> {
        let asked = request.into_inner();
        let said = format!("retire {:?} {:?}", asked.reason, asked.expected_generation);
        Ok(Response::new(RetireResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    async fn accept_identity(
        &self,
        request: Request<AcceptIdentityRequest>,
    ) -> Answer<AcceptIdentityResponse> {
        let asked = request.into_inner();
        let said = format!("accept {} {:?}", asked.device, asked.uuid);
        Ok(Response::new(AcceptIdentityResponse { node: Some(self.called(&asked.node, said)?) }))
    }

    async fn get_receipt(&self, _: Request<GetReceiptRequest>) -> Answer<GetReceiptResponse> {
        let receipt = self.script().receipt.clone();
        Ok(Response::new(GetReceiptResponse { receipt, lasts: span(600, 0) }))
    }

    async fn return_receipt(&self, _: Request<ReturnReceiptRequest>) -> Answer<ReturnReceiptResponse> {
        Ok(Response::new(ReturnReceiptResponse {}))
    }

    async fn verify_receipt(&self, _: Request<VerifyReceiptRequest>) -> Answer<VerifyReceiptResponse> {
        let verdict = ReceiptVerdict::Holds.into();
        Ok(Response::new(VerifyReceiptResponse {
            verdict,
            lasts: span(590, 0),
            detail: "it was read Off at its issue".to_owned(),
        }))
    }

    async fn list_receipt_keys(&self, _: Request<ListReceiptKeysRequest>) -> Answer<ListReceiptKeysResponse> {
        let keys = self.script().keys.clone();
        Ok(Response::new(ListReceiptKeysResponse { keys }))
    }

    not_scripted! {
        get_node: GetNodeRequest -> GetNodeResponse;
    }
}
