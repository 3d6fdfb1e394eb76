//! One command on its way: what goes with it, what came back, and why nothing did.
//!
//! # Invariants
//!
//! - Its permits are asked for last, after its token was chosen: a gateway that stands still in between
//!   sends what ends with that token (S6, S8). Nothing repeats it. Shown by
//!   `an_on_that_was_kept_between_its_permit_and_its_packet_is_not_taken`.

use std::sync::Arc;

use picket_cloud::{Bound, carry, redact};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use picket_reach::web::{Answer, NoAnswer};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH};
use time::OffsetDateTime;

use super::login::bearer;
use super::{Cloud, Failure, LONGEST, Stamps, date_of, words};
use crate::operation::Operation;
use crate::requests::{Open, RequestId};

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
pub(crate) struct CommandAnswer {
    /// What does it. That it was made is all that is known of it.
    pub(crate) operation: Operation,
    pub(crate) stamps: Stamps,
    /// What Google's clock said then.
    pub(crate) date: Option<OffsetDateTime>,
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
    ) -> Result<Result<CommandAnswer, Failure>, DriverError> {
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
            let detail = "there is no token that serves: a question comes first";
            return Err(DriverError::new(ErrorKind::Authentication, Effect::DidNotHappen, detail));
        };
        if let Some(bound) = bound {
            bound.allows(&token, call)?;
            minute.take_now(method)?;
        }
        let id = request.to_string();
        let mut query = query;
        query.push(("requestId", &id));
        let made = self.clients.commands.post(self.place(path, &query)?);
        let made = made.header(AUTHORIZATION, bearer(&token.secret)?).header(CONTENT_LENGTH, "0");
        call.may_send()?;
        let asked_at = call.now();
        let serial = open.sending(request, asked_at, asked_at + self.longest_life());
        let hears = open.clone();
        let heard = move |answered: &_| hear(&hears, serial, request, answered);
        let answer = match carry(made, LONGEST, bound, call, heard).await? {
            Ok(answer) => answer,
            Err(failed) => return Ok(Err(Failure::unanswered(method, &self.endpoint, failed))),
        };
        let stamps = Stamps { asked_at, answered_at: call.now() };
        let status = answer.code.as_u16();
        if status == 200 {
            minute.accepted();
            let date = date_of(&answer);
            return Ok(match operation(&answer) {
                Ok(operation) => Ok(CommandAnswer { operation, stamps, date }),
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

fn operation(answer: &Answer) -> Result<Operation, String> {
    if answer.cut {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
}

/// What an answer says of the copy that it is for, whether or not its caller waits for it.
fn hear(open: &Open, serial: u64, request: RequestId, answered: &Result<Answer, NoAnswer>) {
    match answered {
        Ok(answer) if answer.code.as_u16() == 200 => {
            if operation(answer).is_ok() {
                open.taken(serial, request);
            }
        }
        Ok(answer) if !words::is_unclear(answer.code.as_u16()) => open.refused(serial),
        Err(NoAnswer::NeverSent(_)) => open.refused(serial),
        Ok(_) | Err(_) => {}
    }
}
