//! The gate before all services, as a layer: lets requests through with who sent them, or answers them itself.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use super::Guard;
use super::peer::Peer;

/// Puts the gate before a service.
#[derive(Clone, Debug)]
pub(crate) struct GateLayer(pub(crate) Arc<Guard>);

/// A service behind the gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate<S> {
    inner: S,
    guard: Arc<Guard>,
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, guard: self.0.clone() }
    }
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let peer = request.extensions().get::<Arc<Peer>>().cloned();
        match self.guard.admit(request.uri().path(), peer.as_deref()) {
            Ok(admitted) => {
                request.extensions_mut().insert(admitted);
                Either::Left(self.inner.call(request))
            }
            Err(fault) => Either::Right(ready(Ok(fault.status().into_http()))),
        }
    }
}
