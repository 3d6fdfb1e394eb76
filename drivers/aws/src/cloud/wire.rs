//! The way to AWS: what the SDK has signed is sent here, once, or not at all.
//!
//! # Invariants
//!
//! - Nothing below repeats a request, follows a redirect or goes through a proxy.
//! - A command is signed first. Its permits are asked for after that and once there is a connection, as the
//!   last thing before it leaves (S6, S8). A gateway that stands still in between sends what was signed
//!   before. Shown by `an_on_that_was_kept_between_its_permit_and_its_packet_is_not_taken`,
//!   `what_is_late_for_its_caller_does_not_leave`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use aws_sdk_ec2::config;
use aws_smithy_async::time::StaticTimeSource;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::DateTime;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::date_time::Format;
use parking_lot::{Mutex, MutexGuard};
use picket_cloud::{Unclear, redact};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use picket_reach::web::{self, Answer, NoAnswer};
use picket_reach::{LastWord, address};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Url};
use tokio::time::Instant;

/// As much of an answer as is read: a thousand instances are some eight MiB.
pub(super) const LONGEST: usize = 64 << 20;
/// Headers that nobody is shown.
const HIDDEN: [&str; 2] = ["authorization", "x-amz-security-token"];

/// When something was asked and answered, and what the far side's clock said then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub(crate) asked_at: BootTime,
    pub(crate) answered_at: BootTime,
    /// The answer's `Date`; `None`: it has none.
    pub(crate) date: Option<SystemTime>,
}

/// What became of one sending, as its sender saw it.
#[derive(Debug)]
pub(super) enum SendOutcome {
    /// It did not come to that.
    NotBegun,
    /// These of its tickets do not let it go.
    Barred(Vec<(usize, DriverError)>),
    NeverSent(String),
    Broken(String),
    Late,
    Answered(Stamps),
}

/// One order on its way, maybe with others'. Whoever waits for it may leave: then it is not sent.
#[derive(Debug)]
pub(crate) struct Ticket {
    call: Call,
    /// How long it may be taken after it left.
    life: Duration,
    /// After this it is not sent.
    not_after: Option<WallTime>,
    state: AtomicU8,
    unclear: Unclear,
    /// While it is not known what became of what was sent.
    open: Mutex<Option<picket_cloud::Sending>>,
}

const WAITING: u8 = 0;
const SENT: u8 = 1;
const LEFT: u8 = 2;

impl Ticket {
    pub(super) fn new(
        call: &Call,
        life: Duration,
        not_after: Option<WallTime>,
        unclear: &Unclear,
    ) -> Arc<Self> {
        let (state, open) = (AtomicU8::new(WAITING), Mutex::new(None));
        Arc::new(Self { call: call.clone(), life, not_after, state, unclear: unclear.clone(), open })
    }

    fn open(&self) -> MutexGuard<'_, Option<picket_cloud::Sending>> {
        self.open.lock()
    }

    /// It is known what became of it, whether or not somebody waits for that.
    pub(super) fn ended(&self) {
        if let Some(sending) = self.open().take() {
            sending.answered();
        }
    }

    /// Asked right before each copy.
    fn claim(&self) -> Result<(), DriverError> {
        self.call.may_leave(self.not_after)?;
        match self.state.compare_exchange(WAITING, SENT, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                *self.open() = Some(self.unclear.sending(self.call.now() + self.life));
                Ok(())
            }
            Err(_) => {
                let detail = "whoever asked for it has left";
                Err(DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, detail))
            }
        }
    }

    /// What was claimed did not leave, or surely was not done.
    pub(super) fn unclaim(&self) {
        self.ended();
        let _ = self.state.compare_exchange(SENT, WAITING, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Nobody waits for it any more. True if it may have been sent.
    pub(super) fn leave(&self) -> bool {
        self.state.compare_exchange(WAITING, LEFT, Ordering::SeqCst, Ordering::SeqCst) == Err(SENT)
    }
}

/// One request, to be sent once.
#[derive(Clone, Debug)]
pub(crate) struct Sending(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    clock: Arc<dyn Clock>,
    until: Instant,
    tickets: Vec<Arc<Ticket>>,
    used: AtomicBool,
    /// Where the SDK would have it sent.
    place: LastAttempt,
    fate: Mutex<SendOutcome>,
}

impl Sending {
    /// With no tickets it is a question.
    pub(super) fn new(
        client: Client,
        clock: Arc<dyn Clock>,
        until: Instant,
        tickets: Vec<Arc<Ticket>>,
        place: LastAttempt,
    ) -> Self {
        let (used, fate) = (AtomicBool::new(false), Mutex::new(SendOutcome::NotBegun));
        Self(Arc::new(Inner { client, clock, until, tickets, used, place, fate }))
    }

    /// The configuration of the one operation that goes by it, signed as of that time.
    pub(super) fn config(&self, signed: Option<SystemTime>) -> config::Builder {
        let builder = config::Builder::new().http_client(self.clone());
        match signed {
            Some(when) => builder.time_source(StaticTimeSource::new(when)),
            None => builder,
        }
    }

    pub(super) fn fate(&self) -> SendOutcome {
        std::mem::replace(&mut *self.0.fate.lock(), SendOutcome::NotBegun)
    }
}

impl Inner {
    fn set(&self, fate: SendOutcome) {
        *self.fate.lock() = fate;
    }

    /// All of its tickets let it go now, or it does not leave.
    fn claim_all(&self) -> Result<(), SendOutcome> {
        let claimed: Vec<_> = self.tickets.iter().map(|ticket| ticket.claim()).collect();
        if claimed.iter().all(Result::is_ok) {
            return Ok(());
        }
        let free = self.tickets.iter().zip(&claimed).filter(|(_, claimed)| claimed.is_ok());
        free.for_each(|(ticket, _)| ticket.unclaim());
        let barred = claimed.into_iter().enumerate().filter_map(|(at, claimed)| Some((at, claimed.err()?)));
        Err(SendOutcome::Barred(barred.collect()))
    }

    /// The last word, once there is a connection: from then on it may have been done.
    fn last_word(&self) -> Result<(), String> {
        let claimed = self.claim_all();
        let refused = claimed.as_ref().map_err(|fate| format!("{fate:?}")).copied();
        self.set(claimed.err().unwrap_or(SendOutcome::Late));
        refused
    }

    /// What no answer means: a command that was not let go never left.
    fn unanswered(&self, failed: NoAnswer) -> SendOutcome {
        let before = std::mem::replace(&mut *self.fate.lock(), SendOutcome::NotBegun);
        match (before, failed) {
            (SendOutcome::Barred(barred), _) => SendOutcome::Barred(barred),
            (_, NoAnswer::NeverSent(why)) => SendOutcome::NeverSent(why),
            (SendOutcome::NotBegun, NoAnswer::Broken(why)) => SendOutcome::NeverSent(why),
            (SendOutcome::NotBegun, NoAnswer::Late) => {
                SendOutcome::NeverSent("no connection in time".to_owned())
            }
            (_, NoAnswer::Broken(why)) => SendOutcome::Broken(why),
            (_, NoAnswer::Late) => SendOutcome::Late,
        }
    }

    async fn send(self: Arc<Self>, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let failed = |fate: SendOutcome| {
            let words = format!("{fate:?}");
            self.set(fate);
            Err(ConnectorError::user(words.into()))
        };
        // A second one would be a repetition that nobody ordered.
        if self.used.swap(true, Ordering::SeqCst) {
            return Err(ConnectorError::user("it was sent once, and is not sent again".into()));
        }
        self.place.set(place(&request));
        let hidden = hidden(&request);
        let is_private = private(&request, address::is_private);
        let request = match is_private.and_then(|()| prepared(&self.client, request)) {
            Ok(request) => request,
            Err(why) => return failed(SendOutcome::NeverSent(why)),
        };
        let asked_at = self.clock.boot();
        let answered = if self.tickets.is_empty() {
            self.set(SendOutcome::Late);
            web::exchange_up_to(LONGEST, request, self.until).await
        } else {
            let lets_go = self.clone();
            let word: LastWord = Arc::new(move || lets_go.last_word());
            web::exchange_at_a_word(LONGEST, request, self.until, word).await
        };
        let answer = match answered {
            Ok(answer) if answer.cut => {
                return failed(SendOutcome::Broken(format!("the answer is longer than {LONGEST} bytes")));
            }
            Ok(answer) => answer,
            Err(unanswered) => return failed(self.unanswered(unanswered)),
        };
        let answer = without(answer, &hidden);
        let date = answer.header("date").and_then(date);
        self.set(SendOutcome::Answered(Stamps { asked_at, answered_at: self.clock.boot(), date }));
        response(answer)
    }
}

impl HttpConnector for Sending {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let inner = self.0.clone();
        HttpConnectorFuture::new(async move { inner.send(request).await })
    }
}

impl HttpClient for Sending {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

/// Whether nobody on the way can say what is asked there, whichever of AWS's files or variables has the place (S1).
pub(super) fn private(request: &HttpRequest, is: impl Fn(&Url) -> bool) -> Result<(), String> {
    let url = Url::parse(request.uri()).map_err(|error| format!("it is asked at no URL: {error}"))?;
    if is(&url) {
        return Ok(());
    }
    let host = url.host_str().unwrap_or_default();
    Err(format!(
        "it would be asked at http://{host}, where whoever is on the way could say that an instance is stopped: make its endpoint https (http is for this machine alone)"
    ))
}

/// Where something was asked last, or what came of it, in words.
#[derive(Clone, Debug, Default)]
pub(super) struct LastAttempt(Arc<Mutex<Option<String>>>);

impl LastAttempt {
    pub(super) fn set(&self, words: Option<String>) {
        *self.0.lock() = words;
    }

    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

/// Where a request goes: its scheme, host and port, without what is asked there.
pub(super) fn place(request: &HttpRequest) -> Option<String> {
    Url::parse(request.uri()).ok().map(|url| url.origin().ascii_serialization())
}

/// The SDK's request as ours.
pub(super) fn prepared(client: &Client, request: HttpRequest) -> Result<reqwest::RequestBuilder, String> {
    let method = Method::from_bytes(request.method().as_bytes()).map_err(|error| error.to_string())?;
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        let mut value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
        value.set_sensitive(HIDDEN.contains(&name.as_str()));
        headers.append(name, value);
    }
    let body = request.body().bytes().ok_or("its body is not in memory")?.to_vec();
    Ok(client.request(method, request.uri()).headers(headers).body(body))
}

/// The secret values of a request's headers: errors do not show them.
pub(super) fn hidden(request: &HttpRequest) -> Vec<String> {
    HIDDEN.iter().filter_map(|name| request.headers().get(*name)).map(str::to_owned).collect()
}

/// An answer without these, unless it is what was asked for: whoever stands in between may repeat a request (S18).
pub(super) fn without(answer: Answer, hidden: &[String]) -> Answer {
    let hidden: Vec<&[u8]> = hidden.iter().map(String::as_bytes).collect();
    if answer.code.is_success() { answer } else { redact::answer(answer, &hidden) }
}

pub(super) fn response(answer: Answer) -> Result<HttpResponse, ConnectorError> {
    let wrong = |error: &dyn std::fmt::Display| ConnectorError::other(error.to_string().into(), None);
    let code = answer.code.as_u16().try_into().map_err(|error| wrong(&error))?;
    let mut response = HttpResponse::new(code, SdkBody::from(answer.body));
    for (name, value) in &answer.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        response.headers_mut().try_append(name.as_str().to_owned(), value).map_err(|error| wrong(&error))?;
    }
    Ok(response)
}

fn date(text: &str) -> Option<SystemTime> {
    SystemTime::try_from(DateTime::from_str(text, Format::HttpDate).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use picket_cloud::fakes::SetClock;
    use picket_driver::conformance::orders::Orders;
    use tokio::time::advance;

    use super::*;

    /// A request is of many, and lasts as long as the last of them waits: whose own time is over does not go with the others.
    #[tokio::test(start_paused = true)]
    async fn what_is_late_for_its_caller_does_not_leave() {
        let (clock, life) = (Arc::new(SetClock::at(0)), Duration::from_secs(930));
        let traits = picket_cloud::traits("aws i-1".to_owned(), life);
        let orders = Orders::new(&traits, clock.clone()).await.expect("orders");
        let call = Call::control(Instant::now() + Duration::from_secs(1), clock, orders.permit());
        let ticket = Ticket::new(&call, life, None, &Unclear::default());
        ticket.claim().expect("in time");
        ticket.unclaim();
        advance(Duration::from_secs(1)).await;
        let late = ticket.claim().expect_err("its time is over");
        assert_eq!((late.kind, late.effect), (ErrorKind::TimedOut, Effect::DidNotHappen), "{late}");
    }
}
