//! One question or command on its way: what goes with it, what came back, and why nothing did.

use std::time::Duration;

use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effort, ErrorKind};
use picket_reach::web::{self, Answer, NoAnswer};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::keystone::Token;
use super::{LONGEST, Service, words};

const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// How a command was answered.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: StatusCode,
    /// The service's own name for it.
    pub(crate) request: Option<String>,
    pub(crate) asked_at: BootTime,
    pub(crate) answered_at: BootTime,
    /// What was said, for people.
    pub(crate) words: String,
}

impl Told {
    /// Whether the answer leaves open what became of it: one from in between, which gave up waiting, or a service that failed on its way.
    pub(crate) fn is_unclear(&self) -> bool {
        self.code.is_server_error() && self.code != StatusCode::SERVICE_UNAVAILABLE
            || self.code.is_informational()
    }

    /// What kind of error it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        words::kind_of(self.code)
    }
}

/// What is to be done, by one service.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    pub(crate) service: Service,
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Option<Value>,
    /// How long it may be taken, as the ledger says; `None`: whenever.
    pub(crate) life: Option<Duration>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    NeverSent(String),
    Broken(String),
    Late,
}

impl Unanswered {
    pub(super) fn into_error(self, effort: &Effort, place: &str) -> DriverError {
        let (kind, why) = match self {
            Unanswered::NeverSent(why) => (ErrorKind::Unreachable, why),
            Unanswered::Broken(why) => (ErrorKind::Protocol, format!("the answer broke off: {why}")),
            Unanswered::Late => (ErrorKind::TimedOut, "no answer in time".to_owned()),
        };
        effort.error(kind, format!("{place}: {why}"))
    }
}

pub(super) fn unanswered(failed: NoAnswer) -> Unanswered {
    match failed {
        NoAnswer::NeverSent(why) => Unanswered::NeverSent(why),
        NoAnswer::Broken(why) => Unanswered::Broken(why),
        NoAnswer::Late => Unanswered::Late,
    }
}

pub(super) async fn exchange(
    request: RequestBuilder,
    token: &Token,
    call: &Call,
) -> Result<Answer, Unanswered> {
    let Ok(mut value) = HeaderValue::from_bytes(token.secret.expose()) else {
        return Err(Unanswered::NeverSent("the token cannot be sent: it is no header's value".to_owned()));
    };
    value.set_sensitive(true);
    web::exchange_up_to(LONGEST, request.header(TOKEN, value), call.deadline()).await.map_err(unanswered)
}

pub(super) async fn ask(
    request: RequestBuilder,
    token: &Token,
    call: &Call,
    place: &str,
) -> Result<Answer, DriverError> {
    exchange(request, token, call).await.map_err(|failed| failed.into_error(&Effort::reading(), place))
}

pub(super) fn versioned(request: RequestBuilder, version: &str) -> RequestBuilder {
    request.header("OpenStack-API-Version", format!("compute {version}"))
}
