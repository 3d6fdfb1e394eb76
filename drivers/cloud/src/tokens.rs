//! The token of one account: renewed before its end, by one login at a time.
//!
//! # Invariants
//!
//! - Credentials that were refused are not tried again and again: accounts are locked after a few tries.
//!   Shown by `credentials_that_were_refused_are_not_tried_again_at_once`.
//! - What is left of a token serves until its end. Shown by
//!   `what_is_left_of_a_token_serves_where_there_is_no_new_one`.
//! - The longest life that a token was given is known, as it bounds what carries one (S8). Shown by
//!   `a_token_that_lives_longer_than_the_ledger_says_bears_no_on`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use tokio::sync::Mutex;
use tokio::time::timeout_at;

use crate::token::{CLOCKS, Token};

/// A token is renewed so long before its end, or a quarter of its life where that is shorter.
const RENEWED: Duration = Duration::from_secs(120);

/// The token that is there, if one is, and what is known of those before it.
pub struct Tokens<Said = ()> {
    held: RwLock<Option<Arc<Token<Said>>>>,
    renewing: Mutex<Option<Refusal>>,
    /// In seconds; 0: none was seen.
    longest: AtomicU64,
}

/// When and why we were refused a token last.
struct Refusal {
    at: BootTime,
    error: DriverError,
}

impl<Said> Default for Tokens<Said> {
    fn default() -> Self {
        Self::asked_for(0)
    }
}

impl<Said> Tokens<Said> {
    /// None yet, of which each is asked for so many seconds.
    pub fn asked_for(seconds: u64) -> Self {
        Self { held: RwLock::default(), renewing: Mutex::default(), longest: AtomicU64::new(seconds) }
    }

    /// S8: how long what carries one may still be taken, by the longest life that one was given or is asked for; `None`: none was.
    pub fn longest_life(&self) -> Option<Duration> {
        let seconds = self.longest.load(Ordering::Relaxed);
        (seconds != 0).then(|| Duration::from_secs(seconds) + CLOCKS)
    }

    /// The one that was got last, also where its time is over.
    pub fn last(&self) -> Option<Arc<Token<Said>>> {
        self.held.read().clone()
    }

    /// The one with which a command would go: it serves.
    pub fn held(&self, now: BootTime) -> Option<Arc<Token<Said>>> {
        self.last().filter(|token| !token.serves(now).is_zero())
    }

    /// The same, where it need not be renewed yet.
    fn fresh(&self, now: BootTime) -> Option<Arc<Token<Said>>> {
        self.held(now).filter(|token| token.serves(now) > RENEWED.min(token.life / 4))
    }

    /// One that serves: a new one by `log_in` if need be, which is not begun again within `pause` after credentials were refused.
    ///
    /// # Errors
    /// That of the login, or its time is over. Nothing was sent by a token.
    pub async fn get(
        &self,
        call: &Call,
        pause: Duration,
        log_in: impl Future<Output = Result<Token<Said>, DriverError>>,
    ) -> Result<Arc<Token<Said>>, DriverError> {
        if let Some(token) = self.fresh(call.now()) {
            return Ok(token);
        }
        let late =
            |_| DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, "no token was to be had in time");
        let mut refusal = timeout_at(call.deadline(), self.renewing.lock()).await.map_err(late)?;
        // Somebody else may have renewed it meanwhile.
        if let Some(token) = self.fresh(call.now()) {
            return Ok(token);
        }
        if let Some(Refusal { at, error }) = &*refusal
            && call.now().since(*at) < pause
        {
            let detail = format!("{}; not asked again for {pause:?}", error.detail);
            return self.held(call.now()).ok_or_else(|| DriverError { detail, ..error.clone() });
        }
        *refusal = None;
        match log_in.await {
            Ok(token) => Ok(self.keep(token)),
            Err(error) => {
                if matches!(error.kind, ErrorKind::Authentication | ErrorKind::Forbidden) {
                    *refusal = Some(Refusal { at: call.now(), error: error.clone() });
                }
                // Whoever gives tokens may be away, or not know us, for a moment: what is left of the old one serves.
                self.held(call.now()).ok_or(error)
            }
        }
    }

    fn keep(&self, token: Token<Said>) -> Arc<Token<Said>> {
        let token = Arc::new(token);
        let seconds = token.life.as_secs() + u64::from(token.life.subsec_nanos() > 0);
        self.longest.fetch_max(seconds, Ordering::Relaxed);
        *self.held.write() = Some(token.clone());
        token
    }

    /// A service does not know that token: it is not used again. One that was given just now is known everywhere, and what is refused is
    /// the request.
    pub fn forget(&self, token: &Arc<Token<Said>>, now: BootTime) {
        if token.is_young(now) {
            return;
        }
        let mut held = self.held.write();
        held.take_if(|held| Arc::ptr_eq(held, token));
    }
}

#[cfg(test)]
mod tests;
