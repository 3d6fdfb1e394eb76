//! The gate before all services, as a layer: it lets requests through with their caller and their slot, or
//! answers them itself.
//!
//! # Invariants
//!
//! - A slot is taken before a byte of the request's message is read. It is kept until the last of the answer
//!   is sent, or nobody waits for it any more. Shown by `who_looks_takes_no_place_of_who_fences`,
//!   `a_place_is_kept_until_the_body_ends_or_is_dropped`.
//! - No request takes for ever to read. Shown by
//!   `who_does_not_send_the_whole_request_is_waited_for_ten_seconds`.
//! - No answer goes on when the certificate of its caller has expired. Shown by
//!   `a_stream_ends_with_the_certificate_that_opened_it_and_frees_its_place`.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, ready};
use picket_metrics::{Metrics, REQUEST, REQUESTS};
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use super::body_timeout::TimedBody;
use super::calls::RequestTarget;
use super::peer::Peer;
use super::stream_expiry::ExpiringBody;
use crate::admission::{AdmissionControl, AuthenticatedCaller};

/// How long a request may take to be here in whole.
const READ: Duration = Duration::from_secs(10);
/// The same for reflection, in which one asks and is answered by turns.
const READ_BY_TURNS: Duration = Duration::from_secs(60);

/// Puts the gate before a service.
#[derive(Clone, Debug)]
pub(crate) struct GateLayer(pub(crate) Arc<AdmissionControl>);

/// A service behind the gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate<S> {
    inner: S,
    admission: Arc<AdmissionControl>,
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, admission: self.0.clone() }
    }
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let from = Instant::now();
        let metrics = self.admission.guard.metrics.clone();
        let call = super::calls::of(request.uri().path()).word();
        let peer = request.extensions().get::<Arc<Peer>>().cloned();
        let caller = match self.admission.admit(request.uri().path(), peer.as_deref()) {
            Ok(caller) => caller,
            Err(fault) => {
                let answer = fault.status().into_http();
                count(&metrics, call, &answer, from);
                return Box::pin(ready(Ok(answer)));
            }
        };
        let end = peer.and_then(|peer| self.admission.guard.expiry_of(&peer));
        let time = time_to_read(&caller);
        let slot = caller.slot.clone();
        request.extensions_mut().insert(caller);
        let answer = self.inner.call(request.map(|body| Body::new(TimedBody::new(body, time))));
        Box::pin(async move {
            let answer = answer.await?;
            count(&metrics, call, &answer, from);
            Ok(answer.map(|body| Body::new(ExpiringBody::new(body, slot, end))))
        })
    }
}

/// Counts a request by the code with which its answer ends; one that goes on beyond its head has begun well.
fn count<B>(metrics: &Metrics, call: &str, answer: &Response<B>, from: Instant) {
    let code = answer.headers().get("grpc-status").map_or(Code::Ok, |code| Code::from_bytes(code.as_bytes()));
    metrics.count(&REQUESTS, &[call, word(code)]);
    metrics.took(&REQUEST, &[call], from.elapsed());
}

/// A code's word, as gRPC writes it.
fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

fn time_to_read(caller: &AuthenticatedCaller) -> Duration {
    match caller.rights.target {
        RequestTarget::Aside("reflection") => READ_BY_TURNS,
        _ => READ,
    }
}
