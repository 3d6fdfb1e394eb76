//! How sessions are opened: by name and password, with patience where they are refused, and without where there are none.

use std::pin::Pin;
use std::time::Duration;

use picket_driver::{Call, DriverError, Effort, ErrorKind, Secret};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::answer::Answer;
use crate::connection::{Connection, ConnectionError};
use crate::exchange::FIRST_PAUSE;
use crate::line::{Line, NO_SESSIONS};
use crate::service::{Service, UNLISTED};
use crate::service_request::ServiceRequest;
use crate::session::{Session, place_in, places, same_place};
use crate::settings::Authentication;
use crate::{quirks, redirect};

/// Wait after refused credentials, first and longest: services lock accounts. The longest is short, as a fence has to wait for
/// what the checks before it have earned.
const LOCKOUT: Duration = Duration::from_secs(1);
const LONGEST_LOCKOUT: Duration = Duration::from_secs(10);
/// How long an answer to a login is waited for before another one is begun.
const LONGEST_LOGIN: Duration = Duration::from_secs(15);
/// How long basic authentication is used once the service had no session left.
const WITHOUT_SESSION: Duration = Duration::from_secs(30);
/// The same once a login was refused: each further one counts as a wrong password at services that lock accounts.
const WITHOUT_LOGIN: Duration = Duration::from_secs(600);

/// The role that DSP0266 ("Roles") gives the privileges Login and ConfigureSelf alone, as the only one of a session.
const READ_ONLY: &str = "ReadOnly";
/// That its session is of that.
pub(crate) const ONLY_READS: &str = "the service gives its account the role ReadOnly and no other, and that one switches nothing off: give it Operator, or \
     another role with ConfigureComponents";

/// Whether the answer to a login says that the session may only read (`Roles`, DSP2046, Session 1.7). Where it does not say that, nobody knows it
/// before an off is refused.
fn only_reads(answer: &Answer) -> bool {
    let said = answer.object();
    let roles = said.as_ref().and_then(|session| session.get("Roles")?.as_array());
    roles.is_some_and(|roles| !roles.is_empty() && roles.iter().all(|role| role == READ_ONLY))
}

/// What is said while nothing is asked.
pub(crate) struct Lockout {
    pub(crate) until: Instant,
    pub(crate) pause: Duration,
    pub(crate) error: DriverError,
}

/// A login that was sent: the connection on which it is, and what comes of it.
pub(crate) type Login = Pin<Box<dyn Future<Output = (Connection, Result<Answer, ConnectionError>)> + Send>>;

impl Line {
    /// That the service does not take who we say we are, in words.
    pub(crate) fn refusal(&self, answer: &Answer) -> String {
        format!(
            "the service refuses user {:?} or its password: {}",
            self.settings.username,
            answer.words_without(&self.settings.password)
        )
    }

    /// Notes that credentials were refused: the same is said for a while, without asking.
    pub(crate) fn lock_out(&mut self, error: DriverError) -> DriverError {
        let pause = self.lockout.as_ref().map_or(LOCKOUT, |last| (last.pause * 2).min(LONGEST_LOCKOUT));
        tracing::warn!(endpoint = %self.settings.authority(), wait = ?pause, %error, "login refused");
        self.lockout = Some(Lockout { until: Instant::now() + pause, pause, error: error.clone() });
        error
    }

    /// Opens a session, or finds that there is none to be had and that the settings allow to go without.
    pub(crate) async fn log_in(&mut self, call: &Call, until: Instant) -> Result<(), DriverError> {
        let Some(mut path) = Service::sessions(self, call).await? else {
            return self.go_without("the service has no sessions", WITHOUT_SESSION);
        };
        let may_go_without = self.settings.authentication == Authentication::SessionOrBasic;
        let (mut pause, mut redirected) = (FIRST_PAUSE, false);
        loop {
            let effort = &Effort::reading();
            let told = self.introduce(&path, call, until).await?;
            let there = told.as_ref().ok().and_then(|answer| redirect::to(&self.settings, &path, answer));
            if let Some(there) = there.filter(|_| !redirected) {
                (redirected, self.sessions) = (true, Some(there.clone()));
                path = there;
                continue;
            }
            let (kind, why, wait) = match told {
                Ok(answer) if answer.is_success() => return self.take_session(answer, call, until).await,
                Ok(answer) if quirks::has_no_session_left(&answer) => {
                    if may_go_without {
                        let why = answer.words_without(&self.settings.password);
                        return self.go_without(&why, WITHOUT_SESSION);
                    }
                    let wait = answer.retry_after.unwrap_or(pause).max(pause);
                    let why = format!(
                        "all sessions of the service are taken: {}",
                        answer.words_without(&self.settings.password)
                    );
                    (ErrorKind::Throttled, why, wait)
                }
                Ok(answer) if matches!(answer.status, 404 | 405 | 501) => {
                    if self.unlisted {
                        // A later login begins at the first place again: the service may have been starting.
                        let is_other = |place: &&&str| !same_place(place, &path);
                        let next = UNLISTED.iter().skip_while(is_other).nth(1);
                        self.sessions = next.map(|place| (*place).to_owned());
                        if let Some(next) = next {
                            path = (*next).to_owned();
                            continue;
                        }
                    }
                    if may_go_without {
                        let why = answer.words_without(&self.settings.password);
                        return self.go_without(&why, WITHOUT_SESSION);
                    }
                    let why = format!(
                        "the service makes no sessions ({}): {}",
                        answer.words_without(&self.settings.password),
                        NO_SESSIONS
                    );
                    return Err(self.error(effort, ErrorKind::Unsupported, why));
                }
                Ok(answer) if matches!(answer.status, 400 | 401 | 403) => {
                    let error = self.error(effort, ErrorKind::Authentication, self.refusal(&answer));
                    if may_go_without {
                        let basic_is_refused = std::mem::take(&mut self.basic_is_refused);
                        self.go_without(&self.refusal(&answer), WITHOUT_LOGIN)?;
                        self.login_is_refused = true;
                        // Where it took neither, the two are tried in turn: accounts are locked after a few tries.
                        if !basic_is_refused {
                            return Ok(());
                        }
                    }
                    return Err(self.lock_out(error));
                }
                Ok(answer) => (
                    ErrorKind::Protocol,
                    format!("the login: {}", answer.words_without(&self.settings.password)),
                    pause,
                ),
                Err(ConnectionError::NotSent(why) | ConnectionError::Silent(why)) => {
                    (ErrorKind::Unreachable, why, pause)
                }
                Err(ConnectionError::Late) => {
                    return Err(self.error(effort, ErrorKind::TimedOut, "no answer to the login in time"));
                }
            };
            let next = Instant::now() + wait;
            if next >= until {
                return Err(self.error(effort, kind, why));
            }
            sleep_until(next).await;
            pause *= 2;
        }
    }

    /// One login: a new one, or one whose caller left before it was answered. Each makes a session at the service, which has few
    /// and keeps those that nobody knows for as long as the others.
    async fn introduce(
        &mut self,
        path: &str,
        call: &Call,
        until: Instant,
    ) -> Result<Result<Answer, ConnectionError>, DriverError> {
        if self.logging_in.is_none() {
            let password = String::from_utf8_lossy(self.settings.password.expose()).into_owned();
            let body = serde_json::json!({ "UserName": self.settings.username, "Password": password });
            let request = self.request(&ServiceRequest::post(path, body), None, false);
            self.connect(call, until).await?;
            let (Some(request), Some(mut connection)) = (request, self.connection.take()) else {
                let why = "a link that HTTP cannot carry";
                return Err(self.error(&Effort::reading(), ErrorKind::Protocol, why));
            };
            // A silence may be a restart: that is known at the next look at the manager's life.
            self.unanswered_since.get_or_insert(call.now());
            self.logging_in = Some(Box::pin(async move {
                let told = connection.exchange(request, Instant::now() + LONGEST_LOGIN).await;
                (connection, told)
            }));
        }
        let Some(login) = &mut self.logging_in else { return Ok(Err(ConnectionError::Late)) };
        let Ok((connection, told)) = timeout_at(until, login).await else {
            return Ok(Err(ConnectionError::Late));
        };
        self.logging_in = None;
        Ok(match told {
            Ok(answer) => {
                self.stands(connection);
                Ok(answer)
            }
            // Another one may be begun.
            Err(ConnectionError::Late) => {
                Err(ConnectionError::Silent("no answer to the login for long".to_owned()))
            }
            Err(broken) => Err(broken),
        })
    }

    /// The session that a login made. One that has no place is used all the same, and waited out; one without a token is of no use.
    async fn take_session(&mut self, answer: Answer, call: &Call, until: Instant) -> Result<(), DriverError> {
        let collection = self.sessions.clone().unwrap_or_default();
        let (said, only_reads) = (places(&collection, &answer), only_reads(&answer));
        let believed = |token: &Secret, orphans: &[Session]| {
            said.iter().find_map(|said| place_in(&collection, said, token, orphans.iter()))
        };
        let Some(token) = answer.token else {
            let place = believed(&Secret::new(b""), &self.orphans);
            return self.end_useless(place, call, until).await;
        };
        (self.lockout, self.basic_is_refused) = (None, false);
        let path = believed(&token, &self.orphans);
        self.placeless = path.is_none();
        self.only_reads = only_reads;
        if path.is_none() {
            let endpoint = self.settings.authority();
            tracing::warn!(%endpoint, "a session whose place cannot be believed: nothing but its idleness ends it");
        }
        tracing::debug!(endpoint = %self.settings.authority(), "session opened");
        let certificate = self.certificate.clone();
        self.session = Some(Session {
            path,
            token,
            last_used: Instant::now(),
            carried: false,
            is_ours: false,
            certificate,
        });
        self.no_session_until = None;
        self.sighted = false;
        Ok(())
    }

    /// A session whose token was not said stays at the service as long as any other, and takes one of its few places: it is ended by
    /// name and password, and none is made again at once.
    async fn end_useless(
        &mut self,
        place: Option<String>,
        call: &Call,
        until: Instant,
    ) -> Result<(), DriverError> {
        let why =
            |left: &str| format!("the service made a session and does not say its token; the session {left}");
        let stays = why("stays there until its idle limit");
        let may_go_without = self.settings.authentication == Authentication::SessionOrBasic;
        // Before it is asked to end: a caller may leave meanwhile, and the next one would make another session.
        let error = match may_go_without {
            true => {
                self.go_without(&stays, WITHOUT_LOGIN)?;
                None
            }
            false => {
                let error = self.error(&Effort::reading(), ErrorKind::Protocol, stays);
                Some(self.lock_out(error))
            }
        };
        let is_over = match place.map(ServiceRequest::delete) {
            Some(end) => {
                let told = self.once(&end, call, until).await;
                matches!(told, Ok(Ok(answer)) if matches!(answer.status, 200 | 204))
            }
            None => false,
        };
        let Some(mut error) = error else { return Ok(()) };
        if is_over {
            error = self.error(&Effort::reading(), ErrorKind::Protocol, why("was ended"));
            if let Some(lockout) = &mut self.lockout {
                lockout.error = error.clone();
            }
        }
        Err(error)
    }

    /// For a while, by name and password.
    fn go_without(&mut self, why: &str, time: Duration) -> Result<(), DriverError> {
        tracing::warn!(endpoint = %self.settings.authority(), why, "no session is to be had: basic authentication");
        self.no_session_until = Some(Instant::now() + time);
        (self.sighted, self.login_is_refused) = (false, false);
        Ok(())
    }
}
