//! The kind `command`: a program of the operator's lets volumes go.
//!
//! # Invariants
//!
//! - Nothing of ours is in its arguments or its environment but what the settings say. The request is on
//!   its standard input. Shown by `the_program_gets_the_document_its_arguments_and_little_else`.
//! - The program ends in time or is killed, with all that it started, and dies with the gateway (S8). Shown
//!   by `a_program_that_takes_too_long_is_killed_with_all_that_it_started`,
//!   `a_program_dies_with_the_gateway`.
//! - Exit 0 alone is success. Only what surely did nothing is told as such (S10). Shown by
//!   `an_exit_says_what_happened`.

use std::time::Duration;

use async_trait::async_trait;
use picket_answers::release::{Progress, ReleaseError, Subject};
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_reach::process::{self, OVERTIME, Ran, RunError};
use picket_reach::program::Program;
use picket_reach::{KEPT, Settings, excerpt};
use tokio::time::Instant;

use crate::allowed::Allowed;
use crate::message::{Ask, Message};
use crate::pace::Pace;
use crate::releaser::Releaser;
use crate::reply::{Reply, Status};

/// `EX_TEMPFAIL` of sysexits.h: nothing was done, try again.
pub const TRY_AGAIN: i32 = 75;
/// The longest that one run may take.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// What is kept for killing it and telling so.
const MARGIN: Duration = Duration::from_millis(600);

/// A program.
#[derive(Debug)]
pub struct Command {
    name: String,
    program: Program,
    max_life: Option<Duration>,
    pace: Pace,
}

impl Command {
    /// Keys: `program` (an absolute path), `args`, `env` (names of variables that it inherits, besides `PATH`),
    /// `max_life` (how long what it asked of others may go on after it was killed; not given: nothing bounds it, and such an
    /// effect that stays open wants an operator).
    pub(crate) fn read(name: &str, settings: &mut Settings<'_>) -> Option<Self> {
        let program = Program::read(settings, "\"/usr/local/sbin/release-volumes\"");
        let second = Duration::from_secs(1);
        let max_life = settings.duration("max_life", second..=24 * 3600 * second);
        let pace = Pace::read(settings, LONGEST);
        Some(Self { name: name.to_owned(), program: program?, max_life, pace })
    }

    /// One run.
    pub(crate) async fn tell(
        &self,
        message: &Message,
        until: Instant,
        permit: Option<&ReleasePermit<'_>>,
    ) -> Result<Progress, ReleaseError> {
        let end = until.min(Instant::now() + self.pace.attempt);
        let end = end.checked_sub(MARGIN).unwrap_or(end);
        let shown = self.program.shown();
        let input = message.json()?;
        let allowed = Allowed::until(end, message.not_after_unix_ms);
        // The permit last: its leadership may have ended while this process stood still, and another one counts this attempt's life from
        // then on.
        let may_begin = || {
            allowed.may_begin()?;
            permit.map_or(Ok(()), |permit| permit.may_send().map_err(|why| format!("was not begun: {why}")))
        };
        let run = process::run(self.program.command(), &input, allowed.end(), may_begin);
        let ran = run.await.map_err(|error| match error {
            RunError::NotStarted(_) | RunError::TooLate => {
                ReleaseError::DidNotHappen(format!("{shown} {error}"))
            }
            RunError::Lives | RunError::Lost(_) => ReleaseError::Unknown(format!("{shown} {error}")),
        })?;
        let status = ran.status.map(|status| status.to_string());
        tracing::debug!(release = %self.name, key = %message.key, status = status.as_deref().unwrap_or("killed"), "program ran");
        self.judge(message.ask, &ran)
    }

    fn judge(&self, ask: Ask, ran: &Ran) -> Result<Progress, ReleaseError> {
        let shown = self.program.shown();
        let words = match (excerpt(&ran.stderr.bytes), excerpt(&ran.stdout.bytes)) {
            (err, _) if !err.is_empty() => format!(": {err}"),
            (_, out) if !out.is_empty() => format!(": {out}"),
            _ => String::new(),
        };
        let Some(status) = ran.status else {
            return Err(ReleaseError::Unknown(format!("{shown} did not end in time and was killed{words}")));
        };
        match status.code() {
            Some(0) => {}
            Some(TRY_AGAIN) => {
                return Err(ReleaseError::DidNotHappen(format!(
                    "{shown} did nothing (exit {TRY_AGAIN}){words}"
                )));
            }
            _ => return Err(ReleaseError::Unknown(format!("{shown} ended with {status}{words}"))),
        }
        if ran.stdout.cut {
            return Err(ReleaseError::Unknown(format!(
                "{shown} wrote more than {KEPT} bytes to its standard output"
            )));
        }
        let out = ran.stdout.bytes.trim_ascii();
        if !out.starts_with(b"{") {
            // A plain program: it ended well, so it is done.
            let detail = excerpt(out);
            return Ok(Progress::Complete(if detail.is_empty() { "complete".to_owned() } else { detail }));
        }
        let reply = Reply::parse(out).map_err(|error| {
            ReleaseError::Unknown(format!("{shown}: its answer is not understood ({error}){words}"))
        })?;
        match reply.status {
            Status::Complete => Ok(Progress::Complete(reply.detail_or("complete"))),
            Status::Accepted => Ok(Progress::Accepted(reply.reference.unwrap_or_default())),
            Status::Unknown if ask == Ask::Status => {
                Ok(Progress::NotThere(reply.detail_or("the program knows nothing of it")))
            }
            Status::Unknown => {
                Err(ReleaseError::Unknown(format!("{shown}: unknown is no answer to a release")))
            }
        }
    }
}

#[async_trait]
impl Releaser for Command {
    fn max_in_flight(&self) -> Option<Duration> {
        // A run goes on until its time is over where its gateway stands still; then comes what its operator vouches for.
        self.max_life.map(|life| self.pace.attempt + OVERTIME + life)
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
        self.tell(&Message::of(order, permit)?, until, Some(permit)).await
    }

    async fn observe(&self, subject: &Subject, until: Instant) -> Result<Progress, ReleaseError> {
        // A look that failed says nothing of the release.
        self.tell(&Message::status(subject), until, None).await.map_err(ReleaseError::into_unknown)
    }
}

#[cfg(test)]
mod tests;
