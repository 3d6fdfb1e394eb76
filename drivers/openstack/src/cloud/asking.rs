//! One question or command on its way: what goes with it, what came back, and why nothing did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::order::Order;
use picket_core::time::{BootTime, WallTime};
use picket_driver::unclear::Sending;
use picket_driver::{Barrier, Call, DriverError, Effort, ErrorKind};
use picket_reach::web::{self, Answer, NoAnswer};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::keystone::Token;
use super::{LONGEST, Service, words};

const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const REQUEST_ID: &str = "x-openstack-request-id";
/// How long after its call the answer to a command is still heard.
const HEARD: Duration = Duration::from_secs(60);

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
    /// Whether the answer leaves open what became of it.
    pub(crate) fn is_unclear(&self) -> bool {
        is_unclear(self.code, self.request.is_some())
    }

    /// What kind of error it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        words::kind_of(self.code)
    }
}

/// How late a command may be taken (S8).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// As the ledger says; `None`: nothing bounds it there.
    pub(crate) life: Option<Duration>,
    /// When the store said so for the last time: a token that was got later is none of its.
    pub(crate) checked_at: Option<BootTime>,
    /// When the permit's own time is over: later than that it does not begin to go.
    pub(crate) not_after: Option<WallTime>,
}

impl Bound {
    /// Of what is stored, and sent without asking the store once more.
    pub(crate) fn of(order: &Order) -> Self {
        Self { life: order.life(), checked_at: None, not_after: None }
    }
}

/// Commands that a service took, by its names for them: its answers are heard for longer than their calls, and end up here all the same. With each
/// stands until when its token lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken(Arc<Mutex<BTreeMap<String, BootTime>>>);

impl Taken {
    /// Another one was taken. An older one is kept no longer than it stands in the ledger: its host may be gone for good.
    pub(crate) fn took(&self, name: String, until: BootTime, now: BootTime) {
        let mut all = self.0.lock();
        all.retain(|_, until| *until > now);
        all.insert(name, until);
    }

    /// The request ids of these starts.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    /// That one has ended.
    pub(crate) fn ended(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

/// What is to be done, by one service.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    pub(crate) service: Service,
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Option<Value>,
    /// How late it may be taken; `None`: whenever.
    pub(crate) bound: Option<Bound>,
    /// It is followed after it was taken; `None`: its answer is all that matters of it.
    pub(crate) taken: Option<Taken>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    NeverSent(String),
    /// It might not go any more, once there was a connection.
    Barred(DriverError),
    Broken(String),
    Late,
}

impl Unanswered {
    pub(super) fn into_error(self, effort: &Effort, place: &str) -> DriverError {
        let (kind, why) = match self {
            Unanswered::Barred(error) => return error,
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

/// Whether an answer leaves open what became of the command. A service's own word has its name for the request with it; what comes from
/// in between says nothing of what the service does, and no success but the one that is known is one.
fn is_unclear(code: StatusCode, is_named: bool) -> bool {
    match code.as_u16() {
        200 | 202 | 204 => false,
        // Whoever gave up waiting for the request, or for the service, does not say which.
        408 => true,
        400..=499 => false,
        503 => !is_named,
        _ => true,
    }
}

/// What a service calls a request.
pub(super) fn request_id(answer: &Answer) -> Option<String> {
    answer.header(REQUEST_ID).map(str::to_owned)
}

/// Sends a command, whose caller may go away: its answer is heard all the same, and for longer than the call lasts. Whether it may go is
/// asked once more when there is a connection: that may take seconds.
pub(super) async fn carry(
    request: RequestBuilder,
    token: Arc<Token>,
    sending: Sending,
    taken: Option<(Taken, BootTime)>,
    not_after: Option<WallTime>,
    call: &Call,
) -> Result<Answer, Unanswered> {
    let deadline = call.deadline();
    let barrier = Barrier::default();
    let word = barrier.word(call, not_after);
    let clock = call.clone();
    let carried = tokio::spawn(async move {
        let answered = match bearing(request, &token) {
            Ok(request) => web::exchange_at_a_word(LONGEST, request, deadline + HEARD, word).await,
            Err(unsent) => Err(unsent),
        };
        let clear = match &answered {
            Ok(answer) => !is_unclear(answer.code, request_id(answer).is_some()),
            Err(failed) => matches!(failed, NoAnswer::NeverSent(_)),
        };
        // Before it is clear: nobody is to find neither.
        let is_followed = match (&answered, taken) {
            (Ok(answer), Some((taken, until))) if answer.code == StatusCode::ACCEPTED => {
                let name = request_id(answer);
                name.map(|name| taken.took(name, until, clock.now())).is_some()
            }
            _ => true,
        };
        if clear && is_followed {
            sending.answered();
        }
        answered
    });
    match timeout_at(deadline, carried).await {
        Ok(Ok(answered)) => {
            answered.map_err(|failed| barrier.barred().map_or_else(|| unanswered(failed), Unanswered::Barred))
        }
        Ok(Err(gone)) => Err(Unanswered::Broken(gone.to_string())),
        Err(_late) => Err(Unanswered::Late),
    }
}

fn bearing(request: RequestBuilder, token: &Token) -> Result<RequestBuilder, NoAnswer> {
    let Ok(mut value) = HeaderValue::from_bytes(token.secret.expose()) else {
        return Err(NoAnswer::NeverSent("the token cannot be sent: it is no header's value".to_owned()));
    };
    value.set_sensitive(true);
    Ok(request.header(TOKEN, value))
}

async fn exchange(request: RequestBuilder, token: &Token, end: Instant) -> Result<Answer, Unanswered> {
    let request = bearing(request, token).map_err(unanswered)?;
    web::exchange_up_to(LONGEST, request, end).await.map_err(unanswered)
}

pub(super) async fn ask(
    request: RequestBuilder,
    token: &Token,
    call: &Call,
    place: &str,
) -> Result<Answer, DriverError> {
    exchange(request, token, call.deadline())
        .await
        .map_err(|failed| failed.into_error(&Effort::reading(), place))
}

pub(super) fn versioned(request: RequestBuilder, version: &str) -> RequestBuilder {
    request.header("OpenStack-API-Version", format!("compute {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_was_taken_is_followed_while_its_token_lives_and_no_later_one_was_taken() {
        let at = |seconds| BootTime::default() + Duration::from_secs(seconds);
        let taken = Taken::default();
        taken.took("one".to_owned(), at(10), at(0));
        taken.took("two".to_owned(), at(30), at(9));
        assert_eq!(taken.names(), ["one", "two"]);
        taken.took("three".to_owned(), at(60), at(10));
        assert_eq!(taken.names(), ["three", "two"]);
        taken.ended("two");
        assert_eq!(taken.names(), ["three"]);
    }

    #[test]
    fn only_a_service_s_own_word_says_what_became_of_a_command() {
        for (code, named, unclear) in [
            (200, true, false),
            (202, false, false),
            (201, true, true),
            (302, true, true),
            (400, false, false),
            (401, false, false),
            (408, true, true),
            (409, false, false),
            (429, false, false),
            (500, true, true),
            (502, false, true),
            (503, true, false),
            (503, false, true),
            (504, true, true),
        ] {
            let code = StatusCode::from_u16(code).expect("a status");
            assert_eq!(is_unclear(code, named), unclear, "{code}, named: {named}");
        }
    }
}
