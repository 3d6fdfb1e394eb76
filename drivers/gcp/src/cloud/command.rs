//! One command on its way: what goes with it, what came back, and why nothing did.
//!
//! **Invariant.** Its permits are asked for last, after its token was chosen: whoever stands still in between sends what ends with that
//! token (S6, S8). Nothing repeats it.

use std::sync::Arc;
use std::time::Duration;

use picket_cloud::{Token, redact};
use picket_core::order::Order;
use picket_core::time::{BootTime, WallTime};
use picket_driver::{Barrier, Call, DriverError, Effect, ErrorKind};
use picket_reach::LastWord;
use picket_reach::web::{self, Answer, NoAnswer};
use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH};
use time::OffsetDateTime;
use tokio::time::{Instant, timeout_at};

use super::login::bearer;
use super::{Cloud, Failure, LONGEST, Stamps, date_of, words};
use crate::operation::Operation;
use crate::requests::{Open, RequestId};

/// How long after its call the answer to a command is still heard.
const HEARD: Duration = Duration::from_secs(60);

/// How late a command may be taken (S8).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bound {
    /// As the ledger says; `None`: nothing bounds it there.
    pub(crate) life: Option<Duration>,
    /// When the store said so for the last time: a token that was got later is none of its.
    pub(crate) checked_at: Option<BootTime>,
    /// After this it is not sent.
    pub(crate) not_after: Option<WallTime>,
}

impl Bound {
    /// Of what is stored, and sent once the store was asked once more.
    pub(crate) fn of(order: &Order, checked_at: BootTime) -> Self {
        Self { life: order.life(), checked_at: Some(checked_at), not_after: None }
    }
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    /// As Google calls it (`instances.stop`).
    pub(crate) method: &'static str,
    pub(crate) path: &'a str,
    pub(crate) query: Vec<(&'a str, &'a str)>,
    pub(crate) request: RequestId,
    /// How late it may be taken; `None`: whenever.
    pub(crate) bound: Option<Bound>,
}

/// How a command was answered.
#[derive(Debug)]
pub(crate) struct Told {
    /// What does it. That it was made is all that is known of it.
    pub(crate) operation: Operation,
    pub(crate) stamps: Stamps,
    /// What Google's clock said then.
    pub(crate) date: Option<OffsetDateTime>,
}

fn refused(kind: ErrorKind, detail: impl Into<String>) -> DriverError {
    DriverError::new(kind, Effect::DidNotHappen, detail)
}

impl Cloud {
    /// Sends a command, once, with a token that is there: none is asked for.
    ///
    /// # Errors
    /// `Err` outside: nothing was sent. Within: it was refused, or it is not known what became of it.
    pub(crate) async fn tell(
        &self,
        command: Command<'_>,
        region: &str,
        open: &Arc<Open>,
        call: &Call,
    ) -> Result<Result<Told, Failure>, DriverError> {
        let Command { method, path, query, request, bound } = command;
        if call.may_only_read() || call.is_deposed() {
            call.may_send()?;
        }
        let minute = self.rates.minute(region, method);
        // What is bounded is wanted now: it does not wait for others' turns, and is asked for again.
        if bound.is_none() {
            minute.wait(method, call).await?;
        }
        let Some(token) = self.tokens.held(call.now()) else {
            return Err(refused(
                ErrorKind::Authentication,
                "there is no token that serves: a question comes first",
            ));
        };
        if let Some(bound) = bound {
            allowed(&bound, &token, call)?;
            minute.take_now(method)?;
        }
        let id = request.to_string();
        let mut query = query;
        query.push(("requestId", &id));
        let made = self.commands.post(self.place(path, &query)?);
        let made = made.header(AUTHORIZATION, bearer(&token.secret)?).header(CONTENT_LENGTH, "0");
        call.may_send()?;
        let asked_at = call.now();
        let serial = open.sending(request, asked_at, asked_at + self.longest_life());
        let barrier = Barrier::default();
        let word = barrier.word(call, bound.and_then(|bound| bound.not_after));
        let answer = match carry(made, open.clone(), (serial, request), word, call.deadline()).await {
            Ok(answer) => answer,
            Err(failed) => {
                return barrier
                    .barred()
                    .map_or(Ok(Err(Failure::unanswered(method, &self.endpoint, failed))), Err);
            }
        };
        let stamps = Stamps { asked_at, answered_at: call.now() };
        let status = answer.code.as_u16();
        if status == 200 {
            minute.accepted();
            let date = date_of(&answer);
            return Ok(match operation(&answer) {
                Ok(operation) => Ok(Told { operation, stamps, date }),
                Err(why) => Err(Failure::senseless(method, status, &why)),
            });
        }
        let answer = redact::answer(answer, &[token.secret.expose()]);
        let failure = Failure::of(method, &answer);
        match failure.kind {
            ErrorKind::Authentication => self.tokens.forget(&token, call.now()),
            ErrorKind::Throttled => minute.refused(date_of(&answer)),
            _ => {}
        }
        Ok(Err(failure))
    }
}

/// Whether that token may bear it.
fn allowed(bound: &Bound, token: &Token, call: &Call) -> Result<(), DriverError> {
    let left = token.outlives(call.now());
    if let Some(life) = bound.life.filter(|life| left > *life) {
        let detail = format!("a token lives for {left:?} more, and {life:?} stand in the ledger");
        return Err(refused(ErrorKind::Refused, detail));
    }
    if bound.checked_at.is_some_and(|checked_at| token.is_newer_than(checked_at)) {
        let detail = "the token is newer than the store's last word: that is asked for again";
        return Err(refused(ErrorKind::Refused, detail));
    }
    if bound.not_after.is_some_and(|until| call.clock().wall() > until) {
        return Err(refused(ErrorKind::Refused, "the permit's time is over"));
    }
    Ok(())
}

fn operation(answer: &Answer) -> Result<Operation, String> {
    if answer.cut {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
}

/// Sends a command, whose caller may go away: its answer is heard all the same, and for longer than the call lasts. Whether it may go is
/// asked once more when there is a connection.
async fn carry(
    made: RequestBuilder,
    open: Arc<Open>,
    (serial, request): (u64, RequestId),
    word: LastWord,
    deadline: Instant,
) -> Result<Answer, NoAnswer> {
    let carried = tokio::spawn(async move {
        let answered = web::exchange_at_a_word(LONGEST, made, deadline + HEARD, word).await;
        match &answered {
            Ok(answer) if answer.code.as_u16() == 200 => {
                if operation(answer).is_ok() {
                    open.taken(serial, request);
                }
            }
            Ok(answer) if !words::is_unclear(answer.code.as_u16()) => open.refused(serial),
            Err(NoAnswer::NeverSent(_)) => open.refused(serial),
            Ok(_) | Err(_) => {}
        }
        answered
    });
    match timeout_at(deadline, carried).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(gone)) => Err(NoAnswer::Broken(gone.to_string())),
        Err(_late) => Err(NoAnswer::Late),
    }
}
