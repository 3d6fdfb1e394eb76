//! The kind `webhook`: an HTTPS POST to a receiver that lets volumes go.
//!
//! # Invariants
//!
//! - One attempt is one request on a connection of its own: nothing below repeats it, follows a redirect or
//!   goes through a proxy. Shown by `a_redirect_is_not_followed`.
//! - An answer counts only where it says so in words that were agreed. Everything that came after the
//!   request may have been read is *unknown* (S10). Shown by
//!   `only_the_agreed_words_are_complete_or_accepted`, `what_was_sent_and_not_answered_is_unknown`.
//! - Nothing but the receiver's own origin is ever asked. Shown by
//!   `the_status_url_is_followed_at_the_receiver_alone`.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_answers::release::{Progress, ReleaseError, Subject};
use picket_core::ground::{ATTEMPT_LIFE, ReleasePermit};
use picket_core::order::ReleaseOrder;
use picket_reach::token::Token;
use picket_reach::web::{self, Answer, NoAnswer};
use picket_reach::{KEPT, Settings, address, excerpt};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, StatusCode, Url};
use tokio::time::Instant;

use crate::allowed::Allowed;
use crate::message::Message;
use crate::pace::Pace;
use crate::releaser::Releaser;
use crate::reply::{Reply, Status};

/// How far the receiver's clock may be from ours: an attempt's life is longer than its `not_after` by so much.
pub const CLOCK_MARGIN: Duration = Duration::from_secs(5);
const EXAMPLE: &str = "https://storage.example/release";
/// An error is told so long before the caller gives up.
const MARGIN: Duration = Duration::from_millis(20);

/// A receiver behind a URL.
#[derive(Debug)]
pub struct Webhook {
    name: String,
    url: Url,
    token: Option<Token>,
    /// For looks.
    client: Client,
    /// For attempts.
    commands: Client,
    pace: Pace,
}

impl Webhook {
    /// Keys: `url` (https, or http to a loopback address), `ca_file`, `token_file` or `token_env` or
    /// `token_credential`, `plain_http` (lets http go elsewhere; never with a token).
    pub(crate) fn read(name: &str, settings: &mut Settings<'_>) -> Option<Self> {
        let url = settings.needed("url", &format!("{EXAMPLE:?}"));
        let plain_http = settings.flag("plain_http");
        let token = Token::read(settings);
        let ca_file = settings.text("ca_file").map(PathBuf::from);
        let pace = Pace::read(settings, ATTEMPT_LIFE);
        let url = match address::check(&url?, plain_http, token.is_some(), EXAMPLE) {
            Ok(url) => url,
            Err(why) => {
                settings.fault("url", why);
                return None;
            }
        };
        if url.scheme() != "https" && ca_file.is_some() {
            settings.fault("ca_file", "is of no use with http: give an https url");
        }
        let https = url.scheme() == "https";
        let client = web::client(https, ca_file.as_deref());
        let both = client.and_then(|client| Ok((client, web::commands(https, ca_file.as_deref())?)));
        match both {
            Ok((client, commands)) => {
                Some(Self { name: name.to_owned(), url, token, client, commands, pace })
            }
            Err(why) => {
                settings.fault("ca_file", why);
                None
            }
        }
    }

    /// One attempt. `may_send` is the permit's word, asked once the receiver is connected.
    pub(crate) async fn post(
        &self,
        message: &Message,
        until: Instant,
        may_send: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Progress, ReleaseError> {
        let body = message.json()?;
        let request = self
            .commands
            .request(Method::POST, self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", &message.key)
            .body(body);
        let request = web::bearing(request, self.token.as_ref());
        let allowed = self.begins(until, message.not_after_unix_ms)?;
        // A connection takes seconds, and a process that stands still has no end: the look may be old by then, and the leadership over.
        let word = move || {
            allowed.may_begin()?;
            may_send().map_err(|why| format!("was not begun: {why}"))
        };
        let answer = web::exchange_at_a_word(KEPT, request, allowed.end(), Arc::new(word)).await;
        let answer = answer.map_err(|failed| self.failure(failed))?;
        tracing::debug!(release = %self.name, key = %message.key, code = answer.code.as_u16(), "webhook answered");
        self.redacted(self.judge(&answer))
    }

    /// How far it is, by the receiver's status URL.
    pub(crate) async fn look(&self, status_url: &str, until: Instant) -> Result<Progress, ReleaseError> {
        let told = match self.same_origin(status_url) {
            Ok(url) => self.get(url, until).await,
            Err(why) => Err(ReleaseError::Unknown(why)),
        };
        let told = told.and_then(|answer| self.judge_status(&answer, status_url));
        // A look that failed says nothing of the release.
        self.redacted(told.map_err(ReleaseError::into_unknown))
    }

    fn judge_status(&self, answer: &Answer, status_url: &str) -> Result<Progress, ReleaseError> {
        let said = self.said(answer);
        if matches!(answer.code, StatusCode::NOT_FOUND | StatusCode::GONE) {
            return Ok(Progress::NotThere(format!("the receiver knows nothing of it: {said}")));
        }
        if !answer.code.is_success() || answer.cut {
            return Err(ReleaseError::Unknown(said));
        }
        let reply = Reply::parse(&answer.body).map_err(|error| {
            ReleaseError::Unknown(format!("{said}: the status is not understood: {error}"))
        })?;
        Ok(match reply.status {
            Status::Accepted => Progress::Accepted(status_url.to_owned()),
            Status::Complete => Progress::Complete(self.shown(&reply, "complete")),
            Status::Unknown => Progress::NotThere(self.shown(&reply, "the receiver knows nothing of it")),
        })
    }

    async fn get(&self, url: Url, until: Instant) -> Result<Answer, ReleaseError> {
        let end = self.begins(until, None)?.end();
        let answer = web::exchange(self.client.request(Method::GET, url), self.token.as_ref(), end).await;
        answer.map_err(|failed| self.failure(failed))
    }

    /// Until when it is allowed, and that it is so now.
    fn begins(&self, until: Instant, not_after: Option<u64>) -> Result<Allowed, ReleaseError> {
        let end = until.min(Instant::now() + self.pace.attempt);
        let allowed = Allowed::until(end.checked_sub(MARGIN).unwrap_or(end), not_after);
        let not_begun = |why| ReleaseError::DidNotHappen(format!("{}: {why}", self.place()));
        allowed.may_begin().map_err(not_begun)?;
        Ok(allowed)
    }

    /// Only where no connection came to be was nothing sent.
    fn failure(&self, failed: NoAnswer) -> ReleaseError {
        let place = self.place();
        match failed {
            NoAnswer::NeverSent(why) => ReleaseError::DidNotHappen(format!("{place}: {why}")),
            NoAnswer::Broken(why) => ReleaseError::Unknown(format!("{place}: {why}")),
            NoAnswer::Late => ReleaseError::Unknown(format!("{place} did not answer in time")),
        }
    }

    fn judge(&self, answer: &Answer) -> Result<Progress, ReleaseError> {
        let said = self.said(answer);
        let code = answer.code;
        if code.is_client_error() {
            // These three may come from something between us, after the receiver was asked.
            let unclear = matches!(
                code,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
            return Err(match (unclear, code) {
                (true, _) => ReleaseError::Unknown(said),
                (false, StatusCode::CONFLICT) => ReleaseError::DidNotHappen(format!(
                    "{said}: the receiver has seen a newer generation of this node"
                )),
                (false, _) => ReleaseError::DidNotHappen(said),
            });
        }
        if !code.is_success() {
            return Err(ReleaseError::Unknown(said));
        }
        if answer.cut {
            return Err(ReleaseError::Unknown(format!("{said}: the answer is longer than {KEPT} bytes")));
        }
        let reply = match Reply::parse(&answer.body) {
            Ok(reply) => reply,
            Err(_) if code == StatusCode::ACCEPTED && answer.body.trim_ascii().is_empty() => {
                Reply { status: Status::Accepted, detail: String::new(), status_url: None, reference: None }
            }
            Err(error) => {
                let want = r#"{"status": "complete"} or {"status": "accepted", "status_url": ...}"#;
                return Err(ReleaseError::Unknown(format!(
                    "{said}: not understood ({error}), expected {want}"
                )));
            }
        };
        match reply.status {
            Status::Complete if code == StatusCode::ACCEPTED => {
                Err(ReleaseError::Unknown(format!("{said}: 202 says accepted and the body complete")))
            }
            Status::Complete => Ok(Progress::Complete(self.shown(&reply, "complete"))),
            Status::Accepted => match reply.status_url.as_deref().or(answer.location()) {
                Some(status_url) => match self.same_origin(status_url) {
                    Ok(url) => Ok(Progress::Accepted(url.into())),
                    Err(why) => Err(ReleaseError::Unknown(format!("accepted, but {why}"))),
                },
                // Without it only asking again tells how far it is; until then the attempt stays open.
                None => Err(ReleaseError::Unknown("accepted, and no status_url to follow it by".to_owned())),
            },
            Status::Unknown => {
                Err(ReleaseError::Unknown(format!("{said}: unknown is no answer to a request")))
            }
        }
    }

    /// A status URL, absolute or relative to ours, that stays with the receiver: same scheme, host and port.
    fn same_origin(&self, status_url: &str) -> Result<Url, String> {
        let url = self.url.join(status_url).map_err(|error| format!("its status_url is no URL: {error}"))?;
        if url.origin() == self.url.origin() && url.username().is_empty() && url.password().is_none() {
            Ok(url)
        } else {
            let origin = excerpt(url.origin().ascii_serialization().as_bytes());
            Err(format!("its status_url leads to {origin}, and only {} is asked", self.place()))
        }
    }

    /// Scheme, host and port: what may be shown of the URL.
    fn place(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn said(&self, answer: &Answer) -> String {
        // First the token, then the cut: half a token is a secret, too.
        let body = excerpt(self.redact(&String::from_utf8_lossy(&answer.body)).as_bytes());
        match body.is_empty() {
            true => format!("{} answered {}", self.place(), answer.code),
            false => format!("{} answered {}: {body}", self.place(), answer.code),
        }
    }

    fn shown(&self, reply: &Reply, otherwise: &str) -> String {
        let detail = excerpt(self.redact(&reply.detail).as_bytes());
        if detail.is_empty() { otherwise.to_owned() } else { detail }
    }

    /// A far side may send back what it got: whatever is told goes on into logs and records.
    fn redacted(&self, told: Result<Progress, ReleaseError>) -> Result<Progress, ReleaseError> {
        match told {
            Ok(Progress::Accepted(text)) => Ok(Progress::Accepted(self.redact(&text))),
            Ok(Progress::Complete(text)) => Ok(Progress::Complete(self.redact(&text))),
            Ok(Progress::NotThere(text)) => Ok(Progress::NotThere(self.redact(&text))),
            Err(ReleaseError::DidNotHappen(text)) => Err(ReleaseError::DidNotHappen(self.redact(&text))),
            Err(ReleaseError::Barred(text)) => Err(ReleaseError::Barred(self.redact(&text))),
            Err(ReleaseError::Replaced(text)) => Err(ReleaseError::Replaced(self.redact(&text))),
            Err(ReleaseError::Unknown(text)) => Err(ReleaseError::Unknown(self.redact(&text))),
        }
    }

    fn redact(&self, text: &str) -> String {
        self.token.as_ref().map_or_else(|| text.to_owned(), |token| token.redact(text))
    }
}

#[async_trait]
impl Releaser for Webhook {
    /// The receiver begins nothing after `not_after`, by a clock that is at most [`CLOCK_MARGIN`] off.
    fn max_in_flight(&self) -> Option<Duration> {
        Some(ATTEMPT_LIFE + CLOCK_MARGIN)
    }

    fn remarks(&self) -> Vec<String> {
        // The receiver keeps the promise from here on, and cannot tell a gateway from anybody else (S4).
        let why = "has no token: whoever reaches its receiver may let go the volumes of a node that runs; set token_file, token_env or token_credential, and \
                   let the receiver refuse what comes without it";
        if self.token.is_some() { Vec::new() } else { vec![why.to_owned()] }
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError> {
        let check = permit.check();
        self.post(&Message::of(order, permit)?, until, move || check.may_send()).await
    }

    async fn observe(&self, subject: &Subject, until: Instant) -> Result<Progress, ReleaseError> {
        self.look(&subject.accepted, until).await
    }
}
