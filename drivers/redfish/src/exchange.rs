//! One request and its answer, or the same again: after a refused token, and while the service is busy.

use std::time::Duration;

use http::Method;
use picket_driver::{Call, DriverError, Effort, ErrorKind};
use tokio::time::{Instant, sleep_until};

use crate::answer::{Answer, LARGEST, TruncatedBody, tame};
use crate::connection::ConnectionError;
use crate::line::{Line, end_of};
use crate::oddities::Oddity;
use crate::service_request::ServiceRequest;
use crate::{quirks, redirect};

/// Wait before the same is asked again; it doubles.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

impl Line {
    /// One request on the connection that stands, and its answer.
    ///
    /// # Errors
    /// The permit has ended, or the request cannot be written. `Ok(Err)`: there is no whole answer.
    pub async fn one(
        &mut self,
        ask: &ServiceRequest,
        call: &Call,
        until: Instant,
        effort: &mut Effort,
    ) -> Result<Result<Answer, ConnectionError>, DriverError> {
        let own = self.session.as_ref().filter(|_| !ask.open && ask.token.is_none());
        let (is_own, own) = (own.is_some(), own.map(|session| session.token.clone()));
        let token = ask.token.clone().or(own);
        let by_basic = token.is_none() && self.is_authenticated(ask);
        let odd = |line: &Self| {
            line.error(&Effort::reading(), ErrorKind::Protocol, "a link or token that HTTP cannot carry")
        };
        let request = self.request(ask, token.as_ref(), by_basic).ok_or_else(|| odd(self))?;
        self.expect_session(effort)?;
        effort.may_send(call).map_err(|ended| effort.judge(ended))?;
        let asked_at = call.now();
        let (unclear_before, silent_before) = (self.unclear, self.unanswered_since);
        // All of this before it is sent: a caller who leaves does not wait for the answer.
        self.unanswered_since.get_or_insert(asked_at);
        if effort.is_control() {
            self.carried = true;
            self.unclear.sending(token.is_some());
        }
        if let Some(session) = self.session.as_mut().filter(|_| is_own) {
            session.last_used = Instant::now();
            session.carried |= effort.is_control();
        }
        let Some(connection) = &mut self.connection else {
            return Ok(Err(ConnectionError::NotSent("the connection is gone".to_owned())));
        };
        effort.sent();
        let told = match connection.exchange(request, until).await {
            Ok(answer) if ask.method == Method::GET => whole(answer),
            told => told,
        };
        match &told {
            Ok(answer) => {
                if answer.packed {
                    self.oddities.see(Oddity::Packed, || self.settings.authority());
                }
                if quirks::is_clear(answer) {
                    self.unclear = unclear_before;
                }
                // A service counts idle time from when it is done with a request.
                if let Some(session) = self.session.as_mut().filter(|_| is_own) {
                    session.last_used = Instant::now();
                }
                // A silence before it may have been a restart: that is known at the next look at the manager's life.
                self.unanswered_since = silent_before.filter(|_| self.tells_its_life());
            }
            Err(ConnectionError::NotSent(_)) => {
                effort.unsent();
                self.unclear = unclear_before;
                self.connection = None;
            }
            // Dropped, it takes back what this machine has not sent yet.
            Err(_) => self.connection = None,
        }
        Ok(told.map(|answer| Answer { asked_at, answered_at: call.now(), ..answer }))
    }

    /// One request that changes no power, on a connection that stands or is made for it.
    ///
    /// # Errors
    /// No connection.
    pub async fn once(
        &mut self,
        ask: &ServiceRequest,
        call: &Call,
        until: Instant,
    ) -> Result<Result<Answer, ConnectionError>, DriverError> {
        let effort = &mut Effort::reading();
        self.connect(call, until).await?;
        let told = self.one(ask, call, until, effort).await?;
        let there = told.as_ref().ok().and_then(|answer| redirect::to(&self.settings, &ask.path, answer));
        let Some(path) = there else { return Ok(told) };
        self.connect(call, until).await?;
        self.one(&ServiceRequest { path, ..ask.clone() }, call, until, effort).await
    }

    /// A request and its answer: with a connection and a session, again after a refused token, while the service is busy, and once at
    /// the same place with or without its last slash, where it is redirected there.
    /// At the deadline the last answer is given, whatever it says.
    ///
    /// # Errors
    /// No answer in time, no connection, no session; `effect` speaks of everything in `effort`.
    pub async fn ask(
        &mut self,
        ask: &ServiceRequest,
        call: &Call,
        effort: &mut Effort,
    ) -> Result<Answer, DriverError> {
        let until = end_of(call);
        let (place, mut ask) =
            (&ask.path, ServiceRequest { path: self.answered_at(&ask.path), ..ask.clone() });
        let (mut pause, mut asked_anew, mut redirected) = (FIRST_PAUSE, false, false);
        // When the first copy was sent of what is not answered yet: one that is sent again does not renew it (S2).
        let mut first = None;
        loop {
            self.prepare(&ask, call, until, effort).await.map_err(|error| effort.judge(error))?;
            let asked_at = *first.get_or_insert_with(|| call.now());
            let shortest = self.settings.session_timeout - self.settings.session_timeout / 20;
            let is_alive = self.session.as_ref().is_some_and(|one| one.last_used.elapsed() < shortest);
            let (answer, why) = match self.one(&ask, call, until, effort).await? {
                Ok(answer) => {
                    first = None;
                    (Some(Answer { asked_at, ..answer }), String::new())
                }
                Err(ConnectionError::NotSent(why)) => (None, why),
                Err(ConnectionError::Silent(why)) if effort.is_bound() => {
                    return Err(self.error(effort, ErrorKind::Unreachable, why));
                }
                Err(ConnectionError::Silent(why)) => (None, why),
                Err(ConnectionError::Late) => {
                    return Err(self.error(effort, ErrorKind::TimedOut, "no answer in time"));
                }
            };
            let mut wait = pause;
            if let Some(answer) = answer {
                match answer.status {
                    401 if self.is_authenticated(&ask) && !ask.may_hide && !answer.stored => {
                        effort.refused();
                        let by_token = self.leave_session().is_some();
                        if by_token && is_alive {
                            self.refused_at = Some(call.now());
                        }
                        self.sighted &= !by_token;
                        if by_token && !asked_anew && !effort.is_tied() {
                            // The service ended the session, or restarted: that says nothing of the password.
                            asked_anew = true;
                            continue;
                        }
                        if by_token && effort.is_tied() {
                            let why = "its session is over; power is read first";
                            return Err(self.error(effort, ErrorKind::Unreachable, why));
                        }
                        if !by_token && self.login_is_refused {
                            // It takes neither: the next try is a login.
                            (self.no_session_until, self.basic_is_refused) = (None, true);
                        }
                        let error = self.error(effort, ErrorKind::Authentication, self.refusal(&answer));
                        return Err(self.lock_out(error));
                    }
                    300..=399 => {
                        let Some(path) = redirect::to(&self.settings, &ask.path, &answer) else {
                            return Ok(answer);
                        };
                        // A copy that did nothing; the next one has a permit of its own.
                        effort.refused();
                        if redirected {
                            self.note_moved(place, place);
                            let why =
                                format!("a redirect from {} to {path}, and another one before it", ask.path);
                            return Err(self.error(effort, ErrorKind::Protocol, why));
                        }
                        // Each task has a place of its own, which is asked for a while and then never again.
                        if !ask.may_hide {
                            self.note_moved(place, &path);
                        }
                        (redirected, ask.path) = (true, path);
                        continue;
                    }
                    429 | 503 => {
                        if quirks::is_surely_refused(&answer) {
                            effort.refused();
                        }
                        wait = answer.retry_after.unwrap_or(pause).max(pause);
                        if effort.is_bound() || Instant::now() + wait >= until {
                            return Ok(answer);
                        }
                    }
                    _ => return Ok(answer),
                }
            } else if Instant::now() + wait >= until {
                return Err(self.error(effort, ErrorKind::Unreachable, why));
            }
            sleep_until(Instant::now() + wait).await;
            pause *= 2;
        }
    }
}

/// The answer to a question. What it says stands in its body: of one that was read in part nothing counts but a refusal (S1). To whoever
/// tells the service to do something the status alone says what became of that.
fn whole(answer: Answer) -> Result<Answer, ConnectionError> {
    match &answer.cut {
        Some(TruncatedBody::Broken(why)) if answer.is_success() => Err(ConnectionError::Silent(why.clone())),
        Some(TruncatedBody::Late) if answer.is_success() => Err(ConnectionError::Late),
        _ => Ok(answer),
    }
}

/// What an answer says that is not the object that was asked for.
pub fn unread(line: &Line, answer: &Answer, what: &str) -> DriverError {
    let kind = match answer.status {
        403 => ErrorKind::Forbidden,
        429 | 503 => ErrorKind::Throttled,
        _ => ErrorKind::Protocol,
    };
    let why = match answer.status {
        300..=399 => format!(
            "{what}: a redirect to {:?} ({}), which is not followed: name the service itself in host",
            tame(answer.said_location.as_deref().unwrap_or_default()),
            answer.words()
        ),
        200..=299 if answer.stored => format!("{what}: an answer that a cache had kept (Age)"),
        200..=299 if matches!(answer.cut, Some(TruncatedBody::Long)) => {
            format!("{what}: an answer larger than {LARGEST} bytes")
        }
        200..=299 => match &answer.cut {
            Some(TruncatedBody::Coded(coding)) => {
                format!("{what}: an answer that is packed ({coding}), which was not asked for")
            }
            _ => format!("{what}: an answer that is no JSON object"),
        },
        _ => format!("{what}: {}", answer.words()),
    };
    line.error(&Effort::reading(), kind, why)
}
