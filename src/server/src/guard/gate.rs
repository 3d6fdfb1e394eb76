//! The gate before all services, as a layer: lets requests through with who sent them and with their place, or answers
//! them itself.
//!
//! **Invariants.** A place is taken before a byte of the request's message is read, and kept until the last of the
//! answer is sent, or nobody waits for it any more. No request takes for ever to read, and no answer goes on when the
//! certificate of who asked has expired.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use super::calls::Asked;
use super::peer::Peer;
use super::reading::Reading;
use super::staying::Staying;
use crate::door::{Door, Guest};

/// How long a request may take to be here in whole.
const READ: Duration = Duration::from_secs(10);
/// The same for reflection, in which one asks and is answered by turns.
const READ_BY_TURNS: Duration = Duration::from_secs(60);

/// Puts the gate before a service.
#[derive(Clone, Debug)]
pub(crate) struct GateLayer(pub(crate) Arc<Door>);

/// A service behind the gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate<S> {
    inner: S,
    door: Arc<Door>,
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, door: self.0.clone() }
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
        let peer = request.extensions().get::<Arc<Peer>>().cloned();
        let guest = match self.door.enter(request.uri().path(), peer.as_deref()) {
            Ok(guest) => guest,
            Err(fault) => return Box::pin(ready(Ok(fault.status().into_http()))),
        };
        let end = peer.and_then(|peer| self.door.guard.end_of(&peer));
        let time = time_to_read(&guest);
        let place = guest.place.clone();
        request.extensions_mut().insert(guest);
        let answer = self.inner.call(request.map(|body| Body::new(Reading::new(body, time))));
        Box::pin(async move { Ok(answer.await?.map(|body| Body::new(Staying::new(body, place, end)))) })
    }
}

fn time_to_read(guest: &Guest) -> Duration {
    match guest.who.asked {
        Asked::Aside("reflection") => READ_BY_TURNS,
        _ => READ,
    }
}
