//! One question or command on its way: what goes with it, what came back, and why nothing did.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use picket_cloud::{Bound, Sending, Unanswered, redact};
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind};
use picket_reach::web::{self, Answer, NoAnswer};
use reqwest::header::HeaderName;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::keystone::Token;
use super::{LONGEST, Service, words};

const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const REQUEST_ID: &str = "x-openstack-request-id";

/// How a command was answered.
#[derive(Debug)]
pub(crate) struct CommandAnswer {
    pub(crate) code: StatusCode,
    /// The service's own name for it.
    pub(crate) request: Option<String>,
    pub(crate) asked_at: BootTime,
    pub(crate) answered_at: BootTime,
    /// What was said, for people.
    pub(crate) words: String,
}

impl CommandAnswer {
    /// Whether the answer leaves open what became of it.
    pub(crate) fn is_unclear(&self) -> bool {
        is_unclear(self.code, self.request.is_some())
    }

    /// What kind of error it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        words::kind_of(self.code)
    }
}

/// Commands that a service took, by its names for them: its answers are heard for longer than their calls, and end up here all the same. With each
/// stands until when its token lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcceptedCommands(Arc<Mutex<BTreeMap<String, BootTime>>>);

impl AcceptedCommands {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, BootTime>> {
        self.0.lock()
    }

    /// Another one was taken. An older one is kept no longer than it stands in the ledger: its host may be gone for good.
    pub(crate) fn took(&self, name: String, until: BootTime, now: BootTime) {
        let mut all = self.all();
        all.retain(|_, until| *until > now);
        all.insert(name, until);
    }

    /// The request ids of these starts.
    pub(crate) fn names(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// That one has ended.
    pub(crate) fn ended(&self, name: &str) {
        self.all().remove(name);
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
    pub(crate) taken: Option<AcceptedCommands>,
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

/// A command whose answer may come when its caller has left.
pub(super) struct DetachedCommand {
    pub(super) sending: Sending,
    /// Where it is followed after it was taken, and until when.
    pub(super) taken: Option<(AcceptedCommands, BootTime)>,
    pub(super) call: Call,
}

impl DetachedCommand {
    /// What its answer says of it, whether or not its caller waits for it.
    pub(super) fn hear(self, answered: &Result<Answer, NoAnswer>) {
        let clear = match answered {
            Ok(answer) => !is_unclear(answer.code, request_id(answer).is_some()),
            Err(failed) => matches!(failed, NoAnswer::NeverSent(_)),
        };
        // Before it is clear: nobody is to find neither.
        let is_followed = match (answered, self.taken) {
            (Ok(answer), Some((taken, until))) if answer.code == StatusCode::ACCEPTED => {
                let name = request_id(answer);
                name.map(|name| taken.took(name, until, self.call.now())).is_some()
            }
            _ => true,
        };
        if clear && is_followed {
            self.sending.answered();
        }
    }
}

/// The request with that token.
pub(super) fn bearing(request: RequestBuilder, token: &Token) -> Result<RequestBuilder, DriverError> {
    let detail = "the token cannot be sent: it is no header's value";
    let value = redact::header(token.secret.expose());
    let value = value.ok_or_else(|| DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, detail))?;
    Ok(request.header(TOKEN, value))
}

/// An error of a question, or of a command, that nobody answered.
pub(super) fn unanswered(failed: NoAnswer, effort: &Effort, place: &str) -> DriverError {
    let Unanswered { kind, why, .. } = Unanswered::of(failed, place);
    effort.error(kind, format!("{place}: {why}"))
}

/// An answer without the token, unless it is what was asked for: whoever stands in between may repeat it.
pub(super) fn without(answer: Answer, token: &Token) -> Answer {
    if answer.code.is_success() { answer } else { redact::answer(answer, &[token.secret.expose()]) }
}

pub(super) async fn ask(
    request: RequestBuilder,
    token: &Token,
    call: &Call,
    place: &str,
) -> Result<Answer, DriverError> {
    let answer = web::exchange_up_to(LONGEST, bearing(request, token)?, call.deadline()).await;
    let answer = answer.map_err(|failed| unanswered(failed, &Effort::reading(), place))?;
    Ok(without(answer, token))
}

pub(super) fn versioned(request: RequestBuilder, version: &str) -> RequestBuilder {
    request.header("OpenStack-API-Version", format!("compute {version}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_command_that_was_taken_is_followed_while_its_token_lives_and_no_later_one_was_taken() {
        let at = |seconds| BootTime::default() + Duration::from_secs(seconds);
        let taken = AcceptedCommands::default();
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
