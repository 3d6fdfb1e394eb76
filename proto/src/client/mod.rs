//! A client of several gateways: it asks whichever of them leads.
//!
//! **Purpose.** A `FencingServiceClient` over [`Gateways`] goes on where a gateway does not answer, or says
//! that another one leads, without its caller's doing.
//! **Non-goals.** No request is repeated whose fate is not known: its caller repeats it with the same
//! idempotency key. Streams that break are opened again by their readers.
//!
//! # Invariants
//!
//! - A request is sent again only where it surely did nothing: nobody was connected to, or the gateway
//!   answered `NOT_LEADER` (S10). Shown by `only_who_does_not_lead_sends_us_on`,
//!   `one_that_refuses_is_not_taken_for_silent`.
//! - Where there are several gateways, one that was not heard for five seconds is asked a harmless question
//!   first: the kernel takes connections for a process that stands still. Shown by
//!   `one_that_stands_still_since_it_was_heard_is_passed_over`.
//! - The only gateway is connected to anew where its connection says nothing. Shown by
//!   `the_only_one_is_connected_to_anew_where_its_connection_says_nothing`.
//! - Connection and TLS have one limit in time: tonic's own is that of the connection alone. Shown by
//!   `one_that_takes_connections_and_no_session_is_passed_over`.
//! - An endpoint that a gateway names is followed only where its certificate is checked, or on the
//!   loopback. Shown by `a_foreign_endpoint_without_a_certificate_is_not_followed`.

mod answer;

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use answer::Redirect;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use prost::bytes::Bytes;
use tonic::ConnectError;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

/// An error of the way to a gateway.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Makes the way to an endpoint from its name (`https://g1:7070`).
pub type Maker = dyn Fn(&str) -> Result<Endpoint, BoxError> + Send + Sync;

/// How long it may take until a gateway is connected to and knows us, where the endpoint does not say.
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);

/// How long a gateway may take for its first answer, where another one could be asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// One that was heard so long ago is asked as it stands.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// How often one request may be sent on from gateway to gateway.
const HOPS: usize = 8;

/// Nobody was reached.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>().join("; "))]
pub struct Unreached(pub Vec<(String, BoxError)>);

/// Several gateways as one. Cheap to clone; all clones share what they learned.
#[derive(Clone)]
pub struct Gateways {
    make: Arc<Maker>,
    ways: Arc<Mutex<Ways>>,
    answers_within: Duration,
    heard_within: Duration,
}

#[derive(Debug, Default)]
struct Ways {
    all: Vec<Way>,
    /// Which of them is asked.
    at: usize,
}

#[derive(Clone, Debug)]
struct Way {
    name: String,
    channel: Option<Channel>,
    /// When it answered last.
    heard: Option<Instant>,
}

impl Way {
    fn new(name: String) -> Self {
        Self { name, channel: None, heard: None }
    }
}

impl fmt::Debug for Gateways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateways").field("ways", &self.ways).finish_non_exhaustive()
    }
}

impl Gateways {
    /// Gateways that answer at these endpoints, in the order in which they are tried. Nothing is sent yet.
    pub fn new(names: impl IntoIterator<Item = String>, make: Arc<Maker>) -> Self {
        let all = names.into_iter().map(Way::new).collect();
        let ways = Arc::new(Mutex::new(Ways { all, at: 0 }));
        Self { make, ways, answers_within: ANSWERS_WITHIN, heard_within: HEARD_WITHIN }
    }

    /// Connects to the first that can be reached.
    ///
    /// # Errors
    /// Why each of them could not.
    pub async fn connect(&self) -> Result<(), Unreached> {
        self.reach().await.map(drop)
    }

    /// The endpoint that is asked at present.
    pub fn asked(&self) -> String {
        let ways = self.ways.lock();
        ways.all.get(ways.at).map(|way| way.name.clone()).unwrap_or_default()
    }

    /// The channel to the one that is asked, or to the next that can be reached.
    async fn reach(&self) -> Result<Channel, Unreached> {
        let (count, mut at) = {
            let ways = self.ways.lock();
            (ways.all.len(), ways.at)
        };
        let mut unreached = Vec::new();
        for _ in 0..count {
            let Some(way) = self.ways.lock().all.get(at).cloned() else { break };
            let found = match way.channel {
                Some(channel) if self.is_heard(way.heard, &channel).await => Ok(channel),
                // The only one is connected to anew: what it had may be gone, and nobody says so on that connection.
                Some(_) if count > 1 => Err(self.silent()),
                _ => match self.connected(&way.name).await {
                    Ok(channel) if count > 1 && self.is_silent(channel.clone()).await => Err(self.silent()),
                    connected => connected,
                },
            };
            let fault = match found {
                Ok(channel) => {
                    let mut ways = self.ways.lock();
                    ways.all[at].channel = Some(channel.clone());
                    ways.at = at;
                    return Ok(channel);
                }
                Err(fault) => fault,
            };
            self.ways.lock().all[at].channel = None;
            unreached.push((way.name, fault));
            at = (at + 1) % count;
        }
        Err(Unreached(unreached))
    }

    /// Whether whoever is there answered just now, or does.
    async fn is_heard(&self, last: Option<Instant>, channel: &Channel) -> bool {
        last.is_some_and(|last| last.elapsed() < self.heard_within) || !self.is_silent(channel.clone()).await
    }

    fn silent(&self) -> BoxError {
        format!("it takes connections, and answers nothing in {:?}", self.answers_within).into()
    }

    async fn connected(&self, name: &str) -> Result<Channel, BoxError> {
        let endpoint = (self.make)(name)?;
        let within = endpoint.get_connect_timeout().unwrap_or(CONNECTS_WITHIN);
        // Its own limit is that of the connection, and TLS comes after that.
        let late = |_| format!("it takes connections, and no session in {within:?}");
        Ok(tokio::time::timeout(within, endpoint.connect()).await.map_err(late)??)
    }

    /// Whether whoever is there answers nothing at all. What the answer is does not matter, also where it is a refusal, of a
    /// certificate for instance: the request itself tells it.
    async fn is_silent(&self, mut channel: Channel) -> bool {
        // grpc.health.v1 asks for nothing and changes nothing; an empty message is five bytes.
        let question = Request::post("/grpc.health.v1.Health/Check")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Body::new(Full::new(Bytes::from_static(&[0; 5]))));
        let Ok(question) = question else { return false };
        let answer = async {
            std::future::poll_fn(|cx| channel.poll_ready(cx)).await?;
            channel.call(question).await
        };
        tokio::time::timeout(self.answers_within, answer).await.is_err()
    }

    fn was_heard(&self, name: &str) {
        if let Some(way) = self.ways.lock().all.iter_mut().find(|way| way.name == name) {
            way.heard = Some(Instant::now());
        }
    }

    /// The one that was asked does not answer: the next one from here on.
    fn leave(&self, name: &str) {
        let mut ways = self.ways.lock();
        let Some(at) = ways.all.iter().position(|way| way.name == name) else { return };
        ways.all[at].channel = None;
        if ways.at == at {
            ways.at = (at + 1) % ways.all.len();
        }
    }

    /// Another one leads: that one from here on. False: it cannot be asked.
    fn go(&self, from: &str, to: &Redirect) -> bool {
        let mut ways = self.ways.lock();
        let known = |ways: &Ways, name: &String| ways.all.iter().position(|way| way.name == *name);
        let found = to.endpoints.iter().filter(|name| *name != from).find_map(|name| known(&ways, name));
        let found = found.or_else(|| {
            let safe = |name: &&String| *name != from && is_checked(name) && (self.make)(name).is_ok();
            let name = to.endpoints.iter().find(safe)?.clone();
            ways.all.push(Way::new(name));
            Some(ways.all.len() - 1)
        });
        match found {
            Some(at) => ways.at = at,
            // Who leads answers elsewhere for us than for the others: it may be one of those that we know.
            None => ways.at = (ways.at + 1) % ways.all.len().max(1),
        }
        found.is_some() || ways.all.len() > 1
    }

    async fn ask(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        for hop in 1.. {
            let mut channel = self.reach().await?;
            let asked = self.asked();
            let again = Request::from_parts(parts.clone(), Body::new(Full::new(body.clone())));
            let answer = async {
                std::future::poll_fn(|cx| channel.poll_ready(cx)).await?;
                channel.call(again).await
            };
            match answer.await {
                Ok(response) => {
                    self.was_heard(&asked);
                    match Redirect::of(response.headers()) {
                        Some(redirect) if hop < HOPS && self.go(&asked, &redirect) => {}
                        _ => return Ok(response),
                    }
                }
                Err(error) => {
                    self.leave(&asked);
                    // Where nobody was connected to, nothing was sent.
                    if hop >= HOPS || !was_not_sent(&error) {
                        return Err(error.into());
                    }
                }
            }
        }
        unreachable!("the hops are counted")
    }
}

/// Whether whoever answers there shows a certificate that is checked, or stands on this machine.
fn is_checked(name: &str) -> bool {
    let plain = |rest: &str| is_here(rest.trim_end_matches('/'));
    name.starts_with("https://") || name.strip_prefix("http://").is_some_and(plain)
}

/// Whether `host:port` is this machine: a loopback address, or the name `localhost`. What is said there without encryption does not leave it.
pub fn is_here(authority: &str) -> bool {
    let Some((host, _)) = authority.rsplit_once(':') else { return false };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn was_not_sent(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<ConnectError>() {
            return true;
        }
        next = error.source();
    }
    false
}

impl Service<Request<Body>> for Gateways {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().ask(request))
    }
}

#[cfg(test)]
mod tests;
