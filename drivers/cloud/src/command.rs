//! One command on its way: how late it may be taken, and that its answer is heard.
//!
//! # Invariants
//!
//! - Its permits are asked for last, after its token was chosen: a gateway that stands still in between
//!   sends what ends with that token (S6, S8). Nothing repeats it. Shown by
//!   `an_on_that_was_kept_between_its_permit_and_its_packet_is_not_taken`.
//! - A command whose call was cut off meanwhile, as by a breach, does not go. Shown by
//!   `a_detach_whose_caller_was_cut_off_is_not_sent`.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::order::Order;
use picket_core::time::{BootTime, WallTime};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use picket_reach::LastWord;
use picket_reach::web::{self, Answer, NoAnswer};
use reqwest::RequestBuilder;
use tokio::time::timeout_at;

use crate::token::Token;

/// How long after its call the answer to a command is still heard.
const HEARD: Duration = Duration::from_secs(60);

/// How late a command may be taken (S8).
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// As the ledger says; `None`: nothing bounds it there.
    pub life: Option<Duration>,
    /// When the store said so for the last time: a token that was got later is none of its.
    pub checked_at: Option<BootTime>,
    /// When the permit's own time is over: after that it is not sent.
    pub not_after: Option<WallTime>,
}

impl Bound {
    /// Of what is stored, and was checked once more then, where it was.
    pub fn of(order: &Order, checked_at: Option<BootTime>) -> Self {
        Self { life: order.life(), checked_at, not_after: None }
    }

    /// Whether that token may bear it.
    ///
    /// # Errors
    /// It would be taken for longer than the ledger says, or is not that of the store's last word. Nothing was sent.
    pub fn allows<Said>(&self, token: &Token<Said>, call: &Call) -> Result<(), DriverError> {
        let refused =
            |detail: String| Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, detail));
        let left = token.outlives(call.now());
        if let Some(life) = self.life.filter(|life| left > *life) {
            return refused(format!("a token lives for {left:?} more, and {life:?} stand in the ledger"));
        }
        if self.checked_at.is_some_and(|checked_at| token.is_newer_than(checked_at)) {
            let detail = "the token is newer than the store's last word: that is asked for again";
            return refused(detail.to_owned());
        }
        if self.not_after.is_some_and(|until| call.clock().wall() > until) {
            return refused("the permit's time is over".to_owned());
        }
        Ok(())
    }
}

/// Sends a command, whose caller may go away: its answer, up to so many bytes of it, is `heard` all the same, and for longer than the call
/// lasts. Whether it may go is asked once more when there is a connection: that may take seconds.
///
/// # Errors
/// It might not go any more, and was not sent. Within: there is no answer.
pub async fn carry(
    made: RequestBuilder,
    longest: usize,
    bound: Option<Bound>,
    call: &Call,
    heard: impl FnOnce(&Result<Answer, NoAnswer>) + Send + 'static,
) -> Result<Result<Answer, NoAnswer>, DriverError> {
    let deadline = call.deadline();
    let barred = Arc::default();
    let word = last_word(&barred, call, bound.and_then(|bound| bound.not_after));
    let carried = tokio::spawn(async move {
        let answered = web::exchange_at_a_word(longest, made, deadline + HEARD, word).await;
        heard(&answered);
        answered
    });
    let answered = match timeout_at(deadline, carried).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(gone)) => Err(NoAnswer::Broken(gone.to_string())),
        Err(_late) => Err(NoAnswer::Late),
    };
    let barred = barred.lock().take();
    match (answered, barred) {
        (Err(_never_sent), Some(error)) => Err(error),
        (answered, _) => Ok(answered),
    }
}

/// The error that barred a command, if one did. The call that waits for the command holds it; the connection does not.
type Barred = Arc<Mutex<Option<DriverError>>>;

/// Asks for the permit (S4, S6), whether it is late, for its caller and for whoever permitted it until then, and whether anybody waits
/// for it still.
fn last_word(barred: &Barred, call: &Call, not_after: Option<WallTime>) -> LastWord {
    let (barred, call) = (Arc::downgrade(barred), call.clone());
    Arc::new(move || {
        let Some(barred) = barred.upgrade() else {
            return Err("whoever asked for it has left".to_owned());
        };
        call.may_leave(not_after).map_err(|error| {
            let words = error.to_string();
            *barred.lock() = Some(error);
            words
        })
    })
}

#[cfg(test)]
mod tests {
    use picket_core::time::Clock;
    use picket_driver::Secret;
    use tokio::time::Instant;

    use super::*;

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn boot(&self) -> BootTime {
            at(1_000)
        }

        fn wall(&self) -> WallTime {
            WallTime::from_millis(5_000)
        }
    }

    fn at(seconds: u64) -> BootTime {
        BootTime::from_boot(Duration::from_secs(seconds))
    }

    /// A token of which 600 s are left, and with what clocks may differ by 630.
    #[tokio::test]
    async fn a_token_bears_no_command_that_would_be_taken_later_than_its_bound() {
        let call = Call::reading(Instant::now() + Duration::from_secs(15), Arc::new(Still));
        let life = Duration::from_secs(700);
        let token =
            Token { secret: Secret::new("t"), said: (), life, asked_at: at(899), answered_at: at(900) };
        let (left, free) =
            (Duration::from_secs(630), Bound { life: None, checked_at: None, not_after: None });
        for (bound, why) in [
            (free, None),
            (Bound { life: Some(left), ..free }, None),
            (Bound { life: Some(left - Duration::from_millis(1)), ..free }, Some("stand in the ledger")),
            (Bound { checked_at: Some(at(900)), ..free }, None),
            (Bound { checked_at: Some(at(899)), ..free }, Some("newer than the store's last word")),
            (Bound { not_after: Some(WallTime::from_millis(5_000)), ..free }, None),
            (Bound { not_after: Some(WallTime::from_millis(4_999)), ..free }, Some("time is over")),
        ] {
            match (bound.allows(&token, &call), why) {
                (Ok(()), None) => {}
                (Err(error), Some(why)) => {
                    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen));
                    assert!(error.detail.contains(why), "{error}");
                }
                (told, _) => panic!("{bound:?}: {told:?}"),
            }
        }
    }
}
