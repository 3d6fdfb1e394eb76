//! The conversation with one service: one request in flight, one connection, one session, and what became of those before.
//!
//! **Invariants.** Before each request that changes something, on a connection that stands, the permit is asked (S6).
//! A session that carried a command is kept in mind until it is surely over on the far side (S8). What is asked for an on is
//! sent once, in the session in which power was read.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, IF_MATCH, USER_AGENT};
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use picket_core::power::{Epoch, EpochOrigin};
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, ErrorKind, Secret};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::answer::Answer;
use crate::connection::{Broken, Connection};
use crate::effort::Effort;
use crate::life::Life;
use crate::pool::Pool;
use crate::quirks;
use crate::service::{Later, Service};
use crate::session::Session;
use crate::settings::{Authentication, Settings};

/// Wait before the same is asked again; it doubles.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Wait after refused credentials, first and longest: services lock accounts. The longest is short, as a fence has to wait for
/// what the checks before it have earned.
const LOCKOUT: Duration = Duration::from_secs(1);
const LONGEST_LOCKOUT: Duration = Duration::from_secs(10);
/// How long basic authentication is used once the service had no session left.
const WITHOUT_SESSION: Duration = Duration::from_secs(30);

/// A request.
#[derive(Debug)]
pub struct Ask {
    method: Method,
    path: String,
    body: Option<Value>,
    if_match: Option<String>,
    /// It needs no authentication.
    open: bool,
    /// In a session of its own.
    token: Option<Secret>,
}

impl Ask {
    /// Read that.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, if_match: None, open: false, token: None }
    }

    /// The same, before we said who we are.
    pub fn open(path: impl Into<String>) -> Self {
        Self { open: true, ..Self::get(path) }
    }

    /// Do that.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }

    /// Change that, if it is still as it was read.
    pub fn patch(path: impl Into<String>, body: Value, if_match: Option<String>) -> Self {
        Self { method: Method::PATCH, body: Some(body), if_match, ..Self::get(path) }
    }

    /// Delete that session, in itself.
    pub fn end(session: &Session) -> Self {
        Self { method: Method::DELETE, token: Some(session.token.clone()), ..Self::get(&session.path) }
    }
}

struct Lockout {
    until: Instant,
    pause: Duration,
    error: DriverError,
}

/// The state of the conversation.
pub struct Line {
    pub(crate) settings: Arc<Settings>,
    tls: TlsConnector,
    name: ServerName<'static>,
    pool: Pool,
    connection: Option<Connection>,
    connections: u64,
    /// Where sessions are made.
    pub(crate) sessions: Option<String>,
    /// What was found at the service.
    pub(crate) service: Option<Service>,
    pub(crate) session: Option<Session>,
    /// Sessions that carried a command, or whose deletion was begun and its answer not seen.
    pub(crate) orphans: Vec<Session>,
    /// Without a session a command was sent then, and it was not answered.
    pub(crate) unanswered_command: Option<Instant>,
    /// Monitors of tasks whose end was not seen.
    pub(crate) tasks: Vec<String>,
    /// A task that cannot be followed was begun then.
    pub(crate) unfollowed: Option<Instant>,
    /// Something that changes something was sent since the last quiesce.
    carried: bool,
    no_session_until: Option<Instant>,
    lockout: Option<Lockout>,
    epochs: u64,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) life: Option<Life>,
    /// The connection on which the manager's life was looked at last.
    looked: Option<u64>,
    /// The epoch began after a loss, and power was not read in it yet.
    pub(crate) unseen: bool,
    /// Power was read in this session, or since we show who we are without one.
    pub(crate) sighted: bool,
    /// Since when questions are not answered, or not by a manager that is known to be in the same life.
    pub(crate) unanswered_since: Option<BootTime>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line")
            .field("settings", &self.settings)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// When a call must be back: a little before its deadline.
pub fn end_of(call: &Call) -> Instant {
    let left = call.deadline().saturating_duration_since(Instant::now());
    call.deadline() - (left / 10).min(Duration::from_millis(20))
}

impl Line {
    /// Nothing was said yet.
    pub fn new(settings: Arc<Settings>, tls: TlsConnector, name: ServerName<'static>, pool: Pool) -> Self {
        Self {
            settings,
            tls,
            name,
            pool,
            connection: None,
            connections: 0,
            sessions: None,
            service: None,
            session: None,
            orphans: Vec::new(),
            unanswered_command: None,
            tasks: Vec::new(),
            unfollowed: None,
            carried: false,
            no_session_until: None,
            lockout: None,
            epochs: 0,
            epoch: None,
            life: None,
            looked: None,
            unseen: false,
            sighted: false,
            unanswered_since: None,
        }
    }

    /// An error with what it means for all that was sent.
    pub fn error(&self, effort: &Effort, kind: ErrorKind, detail: impl std::fmt::Display) -> DriverError {
        effort.error(kind, format!("{}: {detail}", self.settings.authority()))
    }

    /// Whether requests carry a token, or shall.
    pub fn is_by_session(&self) -> bool {
        match self.settings.authentication {
            Authentication::Session => true,
            Authentication::SessionOrBasic => {
                self.no_session_until.is_none_or(|until| Instant::now() >= until)
            }
            Authentication::Basic => false,
        }
    }

    /// Whether a request says who we are. Where there are sessions, what needs none is asked without.
    fn is_authenticated(&self, ask: &Ask) -> bool {
        !ask.open || !self.is_by_session()
    }

    /// At the end of a call: only so many connections are kept that did nothing but look.
    pub fn settle(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        if !self.carried && connection.place.is_none() {
            connection.place = self.pool.place();
            if connection.place.is_none() {
                self.connection = None;
            }
        }
    }

    /// The connection is closed, and nothing counts as carried any more.
    pub fn hang_up(&mut self) {
        self.connection = None;
        self.carried = false;
        self.sighted = false;
        self.looked = None;
    }

    /// A connection that stands.
    async fn connect(&mut self, until: Instant) -> Result<&mut Connection, DriverError> {
        let usable = match &mut self.connection {
            Some(connection) => connection.is_usable().await,
            None => false,
        };
        if !usable {
            self.connection = None;
            self.connections += 1;
            let opened =
                Connection::open(self.connections, &self.settings, &self.tls, &self.name, until).await?;
            self.connection = Some(opened);
        }
        let gone = DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, "the connection is gone");
        self.connection.as_mut().ok_or(gone)
    }

    fn basic(&self) -> Option<HeaderValue> {
        let Settings { username, password, .. } = &*self.settings;
        let mut plain = Zeroizing::new(Vec::with_capacity(username.len() + 1 + password.expose().len()));
        plain.extend_from_slice(username.as_bytes());
        plain.push(b':');
        plain.extend_from_slice(password.expose());
        let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(&*plain)));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn request(&self, ask: &Ask, token: Option<&Secret>, by_basic: bool) -> Option<Request<Full<Bytes>>> {
        let body = ask.body.as_ref().map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(&ask.path)
            .header(HOST, self.settings.authority())
            .header(USER_AGENT, concat!("picket/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json")
            .header("OData-Version", "4.0")
            .header(CACHE_CONTROL, "no-cache");
        if ask.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(version) = &ask.if_match {
            request = request.header(IF_MATCH, version);
        }
        if let Some(token) = token {
            let mut value = HeaderValue::from_bytes(token.expose()).ok()?;
            value.set_sensitive(true);
            request = request.header("X-Auth-Token", value);
        }
        if by_basic {
            request = request.header(AUTHORIZATION, self.basic()?);
        }
        request.body(Full::new(body)).ok()
    }

    /// One request on the connection that stands, and its answer.
    ///
    /// # Errors
    /// The permit has ended, or the request cannot be written. `Ok(Err)`: there is no whole answer.
    pub async fn one(
        &mut self,
        ask: &Ask,
        call: &Call,
        until: Instant,
        effort: &mut Effort,
    ) -> Result<Result<Answer, Broken>, DriverError> {
        let own = self.session.as_ref().filter(|_| !ask.open && ask.token.is_none());
        let (is_own, own) = (own.is_some(), own.map(|session| session.token.clone()));
        let token = ask.token.clone().or(own);
        let by_basic = token.is_none() && self.is_authenticated(ask);
        let odd = |line: &Self| {
            line.error(&Effort::reading(), ErrorKind::Protocol, "a link or token that HTTP cannot carry")
        };
        let request = self.request(ask, token.as_ref(), by_basic).ok_or_else(|| odd(self))?;
        effort.may_send(call).map_err(|ended| effort.judge(ended))?;
        let asked_at = call.now();
        let (unanswered_before, silent_before) = (self.unanswered_command, self.unanswered_since);
        // All of this before it is sent: a caller who leaves does not wait for the answer.
        self.unanswered_since.get_or_insert(asked_at);
        if effort.is_control() {
            self.carried = true;
            self.unanswered_command = if token.is_none() { Some(Instant::now()) } else { unanswered_before };
        }
        if let Some(session) = self.session.as_mut().filter(|_| is_own) {
            session.last_used = Instant::now();
            session.carried |= effort.is_control();
        }
        let Some(connection) = &mut self.connection else {
            return Ok(Err(Broken::NotSent("the connection is gone".to_owned())));
        };
        effort.sent();
        let told = connection.exchange(request, until).await;
        match &told {
            Ok(_) => {
                // A service counts idle time from when it is done with a request.
                if let Some(session) = self.session.as_mut().filter(|_| is_own) {
                    session.last_used = Instant::now();
                }
                // A silence before it may have been a restart: that is known at the next look at the manager's life.
                self.unanswered_since = silent_before.filter(|_| self.settings.last_reset_time);
                self.unanswered_command = unanswered_before;
            }
            Err(Broken::NotSent(_)) => {
                effort.unsent();
                self.unanswered_command = unanswered_before;
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
        ask: &Ask,
        call: &Call,
        until: Instant,
    ) -> Result<Result<Answer, Broken>, DriverError> {
        self.connect(until).await?;
        self.one(ask, call, until, &mut Effort::reading()).await
    }

    /// A request and its answer: with a connection and a session, again after a refused token, and while the service is busy.
    /// At the deadline the last answer is given, whatever it says.
    ///
    /// # Errors
    /// No answer in time, no connection, no session; `effect` speaks of everything in `effort`.
    pub async fn ask(&mut self, ask: &Ask, call: &Call, effort: &mut Effort) -> Result<Answer, DriverError> {
        let until = end_of(call);
        let (mut pause, mut asked_anew) = (FIRST_PAUSE, false);
        loop {
            self.prepare(ask, call, until, effort).await.map_err(|error| effort.judge(error))?;
            let (answer, why) = match self.one(ask, call, until, effort).await? {
                Ok(answer) => (Some(answer), String::new()),
                Err(Broken::NotSent(why)) => (None, why),
                Err(Broken::Silent(why)) if effort.is_bound() => {
                    return Err(self.error(effort, ErrorKind::Unreachable, why));
                }
                Err(Broken::Silent(why)) => (None, why),
                Err(Broken::Late) => {
                    return Err(self.error(effort, ErrorKind::TimedOut, "no answer in time"));
                }
            };
            let mut wait = pause;
            if let Some(answer) = answer {
                match answer.status {
                    401 if self.is_authenticated(ask) => {
                        effort.refused();
                        let by_token = self.session.take().is_some();
                        self.sighted &= !by_token;
                        if by_token && !asked_anew && !effort.is_bound() {
                            // The service ended the session, or restarted: that says nothing of the password.
                            asked_anew = true;
                            continue;
                        }
                        if by_token && effort.is_bound() {
                            let why = "its session is over; power is read first";
                            return Err(self.error(effort, ErrorKind::Unreachable, why));
                        }
                        let error = self.error(effort, ErrorKind::Authentication, self.refusal(&answer));
                        return Err(self.lock_out(error));
                    }
                    429 | 503 => {
                        if quirks::is_surely_refused(answer.status, answer.retry_after) {
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

    /// Makes ready what the request needs.
    async fn prepare(
        &mut self,
        ask: &Ask,
        call: &Call,
        until: Instant,
        effort: &Effort,
    ) -> Result<(), DriverError> {
        if let Some(lockout) = self.lockout.as_ref().filter(|lockout| Instant::now() < lockout.until) {
            return Err(lockout.error.clone());
        }
        if effort.is_bound() && !self.sighted {
            let why = "power was not read in this session: it is read first";
            return Err(self.error(effort, ErrorKind::Unreachable, why));
        }
        if !ask.open && self.is_by_session() && self.session.is_none() {
            self.log_in(call, until).await?;
        }
        if effort.wants_sight() && self.settings.last_reset_time {
            let fresh = self.connect(until).await?.id();
            // A connection does not outlive the manager at its other end. Where each is closed after an answer, the look is the
            // last thing before.
            if self.looked != Some(fresh) || self.epoch.is_none() {
                self.look_at_life(call).await?;
            }
            if self.unseen {
                let why = "its manager restarted; power is read first";
                return Err(self.error(effort, ErrorKind::Unreachable, why));
            }
        }
        self.connect(until).await?;
        Ok(())
    }

    fn refusal(&self, answer: &Answer) -> String {
        format!("the service refuses user {:?} or its password: {}", self.settings.username, answer.words())
    }

    fn lock_out(&mut self, error: DriverError) -> DriverError {
        let pause = self.lockout.as_ref().map_or(LOCKOUT, |last| (last.pause * 2).min(LONGEST_LOCKOUT));
        tracing::warn!(endpoint = %self.settings.authority(), wait = ?pause, %error, "login refused");
        self.lockout = Some(Lockout { until: Instant::now() + pause, pause, error: error.clone() });
        error
    }

    /// Opens a session, or finds that there is none to be had and that the settings allow to go without.
    async fn log_in(&mut self, call: &Call, until: Instant) -> Result<(), DriverError> {
        let Some(path) = Service::sessions(self, call).await? else {
            return self.go_without("the service has no sessions");
        };
        let password = String::from_utf8_lossy(self.settings.password.expose()).into_owned();
        let body = serde_json::json!({ "UserName": self.settings.username, "Password": password });
        let ask = Ask { open: true, ..Ask::post(path, body) };
        let mut pause = FIRST_PAUSE;
        loop {
            self.connect(until).await?;
            let effort = &mut Effort::reading();
            let (kind, why, wait) = match self.one(&ask, call, until, effort).await? {
                Ok(answer) if answer.is_success() => {
                    self.lockout = None;
                    return self.take_session(answer);
                }
                Ok(answer) if quirks::has_no_session_left(&answer) => {
                    if self.settings.authentication == Authentication::SessionOrBasic {
                        return self.go_without(&answer.words());
                    }
                    let wait = answer.retry_after.unwrap_or(pause).max(pause);
                    let why = format!("all sessions of the service are taken: {}", answer.words());
                    (ErrorKind::Throttled, why, wait)
                }
                Ok(answer) if matches!(answer.status, 404 | 405 | 501) => {
                    if self.settings.authentication == Authentication::SessionOrBasic {
                        return self.go_without(&answer.words());
                    }
                    let why = format!("the service makes no sessions ({}): {}", answer.words(), NO_SESSIONS);
                    return Err(self.error(effort, ErrorKind::Unsupported, why));
                }
                Ok(answer) if matches!(answer.status, 400 | 401 | 403) => {
                    let error = self.error(effort, ErrorKind::Authentication, self.refusal(&answer));
                    return Err(self.lock_out(error));
                }
                Ok(answer) => (ErrorKind::Protocol, format!("the login: {}", answer.words()), pause),
                Err(Broken::NotSent(why) | Broken::Silent(why)) => (ErrorKind::Unreachable, why, pause),
                Err(Broken::Late) => {
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

    fn take_session(&mut self, answer: Answer) -> Result<(), DriverError> {
        let named = || answer.object()?.get("@odata.id")?.as_str().and_then(crate::answer::path_of);
        let path = answer.location.clone().or_else(named);
        let (Some(token), Some(path)) = (answer.token, path) else {
            let why = "the service made a session and does not say its token and place";
            return Err(self.error(&Effort::reading(), ErrorKind::Protocol, why));
        };
        tracing::debug!(endpoint = %self.settings.authority(), "session opened");
        self.session = Some(Session { path, token, last_used: Instant::now(), carried: false });
        self.no_session_until = None;
        self.sighted = false;
        Ok(())
    }

    /// For a while, by name and password.
    fn go_without(&mut self, why: &str) -> Result<(), DriverError> {
        tracing::warn!(endpoint = %self.settings.authority(), why, "no session is to be had: basic authentication");
        self.no_session_until = Some(Instant::now() + WITHOUT_SESSION);
        self.sighted = false;
        Ok(())
    }

    /// Asks the manager whether it is in the same life, and knows by that in which epoch we are.
    ///
    /// # Errors
    /// It does not answer, or does not say.
    pub fn look_at_life<'a>(&'a mut self, call: &'a Call) -> Later<'a, Epoch> {
        // Boxed: looking is itself a request, of the kind that needs no look.
        Box::pin(self.see_life(call))
    }

    async fn see_life(&mut self, call: &Call) -> Result<Epoch, DriverError> {
        let effort = &mut Effort::reading();
        let managers = self.service.as_ref().map(|service| service.managers.clone()).unwrap_or_default();
        let [manager] = &managers[..] else {
            let why = format!(
                "the system names {} managers (Links.ManagedBy), and the restarts of one would have to be seen: \
                 set last_reset_time = false",
                managers.len()
            );
            return Err(self.error(effort, ErrorKind::Settings, why));
        };
        let answer = self.ask(&Ask::get(manager), call, effort).await?;
        let found = match answer.object().filter(|_| answer.status == 200) {
            Some(object) => {
                Life::read(&object).map_err(|why| self.error(effort, ErrorKind::Settings, why))?
            }
            None => {
                let why = format!("its manager: {}", answer.words());
                return Err(self.error(effort, ErrorKind::Protocol, why));
            }
        };
        let goes_on = self.life.as_ref().map(|life| life.goes_on_in(&found));
        let since = self.unanswered_since.take().unwrap_or(answer.asked_at);
        self.looked = self.connection.as_ref().map(Connection::id);
        self.life = Some(found);
        if let (Some(true), Some(epoch)) = (goes_on, self.epoch) {
            return Ok(epoch);
        }
        let origin = match goes_on {
            Some(false) => EpochOrigin::AfterLoss { since },
            _ => EpochOrigin::Fresh,
        };
        self.epochs += 1;
        let epoch = Epoch { id: self.epochs, origin };
        if origin.is_loss() {
            tracing::warn!(endpoint = %self.settings.authority(), epoch = epoch.id, "the manager restarted");
        }
        self.unseen = origin.is_loss();
        self.epoch = Some(epoch);
        Ok(epoch)
    }
}

/// What to do about a service without sessions.
pub const NO_SESSIONS: &str =
    "authentication = \"basic\" goes without, and max_life then says how late a command may land";
