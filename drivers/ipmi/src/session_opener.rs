//! How sessions are opened: address, suites, repeated attempts, and patience with wrong credentials.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipmi_rs_core::connection::IpmiCommand;
use picket_core::power::Epoch;
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::Random;
use crate::attempt::{Attempt, AttemptEnd};
use crate::command::SetPrivilege;
use crate::handshake::Refusal;
use crate::link::{Counters, Link};
use crate::live_session::LiveSession;
use crate::quirks::{self, LoginVerdict, Verdict};
use crate::session::Answer;
use crate::settings::Settings;
use crate::suites;
use picket_driver::pace::{FIRST_PAUSE, Pace};

/// How often a BMC that proved the password may refuse ours in RAKP 4 before it is believed: doubled packets make it.
const RAKP4_REFUSALS: u32 = 3;
/// How long before the end of a call a wrong code is believed where Open Session was sent, or answered, more than once: a
/// BMC that knows only the last of its answers signs with an id that we may not have seen.
const DOUBT: Duration = Duration::from_millis(500);
/// How long Set Session Privilege Level may stay unanswered before the handshake begins again.
const RAISE: Duration = Duration::from_millis(1_750);
/// Wait after refused credentials, first and longest: BMCs lock accounts. The longest is short, as a fence has to wait for
/// what the checks before it have earned.
const LOCKOUT: Duration = Duration::from_secs(1);
const LONGEST_LOCKOUT: Duration = Duration::from_secs(10);
/// Open Session, RAKP 1 and 3, Set Session Privilege Level, and a reading.
const ANSWERS: u32 = 5;
/// Completion codes of Set Session Privilege Level: this user, or this channel, does not get it (IPMI 2.0 table 22-22).
const NO_SUCH_LEVEL: [u8; 2] = [0x80, 0x81];

struct Lockout {
    until: Instant,
    pause: Duration,
    error: DriverError,
}

/// What opens sessions, and what it learned from doing so.
pub struct SessionOpener {
    settings: Arc<Settings>,
    random: Random,
    counters: Arc<Counters>,
    pace: Pace,
    /// The last handshake's packets came more than once.
    doubled: bool,
    /// How much time the newest call has for a login.
    has: Duration,
    lockout: Option<Lockout>,
    /// A session that the call before opened, and that is not at its privilege yet. It has carried nothing.
    unraised: Option<LiveSession>,
    /// The cipher suites that the BMC said it offers. It is asked once, where it refuses ours; then until a session is open.
    offered: Option<Vec<u8>>,
}

impl std::fmt::Debug for SessionOpener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn soon() -> Instant {
    Instant::now() + DOUBT
}

fn failed(kind: ErrorKind, detail: impl Into<String>) -> DriverError {
    // Opening a session changes nothing at the host.
    DriverError::new(kind, Effect::DidNotHappen, detail)
}

impl SessionOpener {
    /// A door that was never opened.
    pub fn new(settings: Arc<Settings>, random: Random, counters: Arc<Counters>) -> Self {
        let pace = Pace::new();
        Self {
            settings,
            random,
            counters,
            pace,
            doubled: false,
            has: Duration::ZERO,
            lockout: None,
            unraised: None,
            offered: None,
        }
    }

    /// Opens a session of that epoch, at the privilege of the settings. What a call that ended too soon came to is gone on with:
    /// a BMC that takes a second for each answer takes longer for a login than one call.
    pub async fn open(
        &mut self,
        epoch: Epoch,
        call: &Call,
        until: Instant,
    ) -> Result<LiveSession, DriverError> {
        self.has = until.saturating_duration_since(Instant::now());
        if let Some(lockout) = self.lockout.as_ref().filter(|lockout| Instant::now() < lockout.until) {
            return Err(lockout.error.clone());
        }
        // One that may have ended by its idleness would cost more than a new one.
        self.unraised.take_if(|live| live.is_stale());
        let opened = self.enter(epoch, call, until).await;
        match &opened {
            Ok(_) => {
                self.lockout = None;
                self.offered = None;
            }
            Err(error) if matches!(error.kind, ErrorKind::Authentication | ErrorKind::Forbidden) => {
                self.lock_out(error.clone());
            }
            Err(_) => {}
        }
        opened
    }

    fn lock_out(&mut self, error: DriverError) {
        let pause = self.lockout.as_ref().map_or(LOCKOUT, |last| (last.pause * 2).min(LONGEST_LOCKOUT));
        tracing::warn!(endpoint = %self.settings.authority(), wait = ?pause, %error, "login refused");
        self.lockout = Some(Lockout { until: Instant::now() + pause, pause, error });
    }

    async fn addresses(&self, until: Instant) -> Result<Vec<SocketAddr>, String> {
        let Settings { host, port, .. } = &*self.settings;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, *port)]);
        }
        let found = timeout_at(until, tokio::net::lookup_host((host.as_str(), *port))).await;
        let found = found.map_err(|_| "its name was not resolved in time".to_owned())?;
        Ok(found.map_err(|error| format!("its name cannot be resolved: {error}"))?.collect())
    }

    /// A link to the first address to which there is a route.
    async fn connect(&self, until: Instant) -> Result<Link, DriverError> {
        let unreachable =
            |why| failed(ErrorKind::Unreachable, format!("{}: {why}", self.settings.authority()));
        let mut why = "its name has no address".to_owned();
        for address in self.addresses(until).await.map_err(unreachable)? {
            match Link::connect(address, self.counters.clone()) {
                Ok(link) => return Ok(link),
                // Of a name that has several addresses it says which.
                Err(error) if self.settings.host.parse::<IpAddr>().is_ok() => why = error.to_string(),
                Err(error) => why = format!("{address}: {error}"),
            }
        }
        Err(unreachable(why))
    }

    /// Lets a session go that was opened and not used.
    pub fn forget(&mut self) {
        self.unraised = None;
    }

    async fn enter(&mut self, epoch: Epoch, call: &Call, until: Instant) -> Result<LiveSession, DriverError> {
        match self.raise(None, call, until).await? {
            Some(live) => Ok(live.in_epoch(epoch)),
            None if Instant::now() >= until => {
                Err(self.in_vain(self.unraised.as_ref().and_then(LiveSession::trouble), false))
            }
            None => self.knock(epoch, call, until).await,
        }
    }

    async fn knock(&mut self, epoch: Epoch, call: &Call, until: Instant) -> Result<LiveSession, DriverError> {
        let settings = self.settings.clone();
        self.pace.begin();
        let mut link = self.connect(until).await?;
        let mut earlier = 0;
        // The first one in each knock: that it is refused is said by nobody in particular, and must not bind the next.
        let mut suite = 0;
        let mut rakp4_refusals = 0;
        let mut full = 0;
        loop {
            let mut attempt = Attempt::new(&settings.login, settings.suites[suite], &mut link, &self.random);
            let slower = earlier / 3 + rakp4_refusals;
            let ended = attempt.run(&mut self.pace, slower, rakp4_refusals, self.doubled, until).await;
            let ambiguous = attempt.is_ambiguous();
            self.doubled = attempt.was_doubled();
            drop(attempt);
            // How long to wait before the next attempt.
            let pause = match ended {
                AttemptEnd::Open(session, raised) => {
                    let live =
                        LiveSession::new(*session, link, self.random.clone(), epoch, self.pace.of_commands());
                    self.unraised = Some(live);
                    match self.raise(raised, call, until).await? {
                        Some(live) => return Ok(live),
                        None => link = self.connect(until).await?,
                    }
                    Duration::ZERO
                }
                AttemptEnd::Silent => Duration::ZERO,
                AttemptEnd::Refused(Refusal::OtherAlgorithms) => {
                    return Err(failed(
                        ErrorKind::Protocol,
                        "the BMC chose algorithms that were not proposed; nothing weaker is accepted",
                    ));
                }
                // Said of a handshake that may have been another: believed when the call's time is over.
                AttemptEnd::Refused(Refusal::WrongPassword | Refusal::WrongKey)
                    if ambiguous && until > soon() =>
                {
                    Duration::ZERO
                }
                AttemptEnd::Refused(Refusal::WrongPassword) => {
                    return Err(failed(
                        ErrorKind::Authentication,
                        format!("the BMC has another password for user {:?}", settings.login.username),
                    ));
                }
                AttemptEnd::Refused(Refusal::WrongKey) => {
                    return Err(failed(ErrorKind::Authentication, "the BMC has another BMC key (K_G)"));
                }
                AttemptEnd::Refused(Refusal::Rakp4(_)) if rakp4_refusals < RAKP4_REFUSALS => {
                    rakp4_refusals += 1;
                    Duration::ZERO
                }
                AttemptEnd::Refused(Refusal::Rakp4(status)) if ambiguous => {
                    // Not a word of the credentials, which RAKP 2 has proven: nothing is locked.
                    let authority = settings.authority();
                    return Err(failed(
                        ErrorKind::Protocol,
                        format!(
                            "{authority}: packets come more than once, and RAKP 3 is refused ({})",
                            quirks::describe_status(status)
                        ),
                    ));
                }
                AttemptEnd::Refused(Refusal::Rakp4(status) | Refusal::Status(status)) => {
                    match quirks::login_verdict(status) {
                        LoginVerdict::OtherSuite if suite + 1 < settings.suites.len() => {
                            suite += 1;
                            // Not a failed attempt: nothing was lost.
                            continue;
                        }
                        LoginVerdict::Full => {
                            full += 1;
                            FIRST_PAUSE * 2_u32.pow(full.min(3))
                        }
                        LoginVerdict::Again => Duration::from_millis(20) * 2_u32.pow(earlier.min(6)),
                        LoginVerdict::OtherSuite => {
                            if self.offered.is_none() {
                                self.offered = Some(suites::offered(&mut link, until).await);
                            }
                            return Err(self.refused(LoginVerdict::OtherSuite, status));
                        }
                        verdict => return Err(self.refused(verdict, status)),
                    }
                }
            };
            earlier += 1;
            let next = Instant::now() + pause;
            if next >= until {
                return Err(self.in_vain(link.trouble(), full > 0));
            }
            if pause > Duration::ZERO {
                sleep_until(next).await;
            }
        }
    }

    /// Raises the session that is open to the privilege of the settings, unless the handshake did (`raised`); `None`: there is
    /// none, or the BMC does not answer in it. It stays for the next call where the time was too short to say the latter.
    async fn raise(
        &mut self,
        raised: Option<Answer>,
        call: &Call,
        until: Instant,
    ) -> Result<Option<LiveSession>, DriverError> {
        let wanted = self.settings.login.privilege;
        let mut raised = raised;
        let mut pause = FIRST_PAUSE;
        loop {
            let Some(live) = self.unraised.as_mut() else { return Ok(None) };
            let answer = match raised.take() {
                Some(answer) => answer,
                None => {
                    let patience = live.patience(RAISE);
                    let over = until.min(Instant::now() + patience);
                    let mut effort = Effort::reading();
                    match live.ask(SetPrivilege(wanted).into(), call, over, &mut effort).await? {
                        Some(heard) => heard.answer,
                        None => {
                            // Short calls must not ask in a session for ever that the BMC does not know any more.
                            let since = live.unanswered_since().unwrap_or(call.now());
                            if over < until || call.now().since(since) >= patience {
                                self.unraised = None;
                            }
                            return Ok(None);
                        }
                    }
                }
            };
            let kind = match (quirks::verdict(answer.code), answer.code) {
                (Verdict::Done, _) => match SetPrivilege::parse_success_response(&answer.data) {
                    Ok(level) if level >= wanted.level() => return Ok(self.unraised.take()),
                    Ok(_) => ErrorKind::Forbidden,
                    Err(_) => ErrorKind::Protocol,
                },
                (_, code) if NO_SUCH_LEVEL.contains(&code) => ErrorKind::Forbidden,
                (Verdict::Forbidden, _) => ErrorKind::Forbidden,
                // Neither says anything of the user: asked again in the session, which is the BMC's dearest part.
                (Verdict::Busy | Verdict::Uncertain, _) => ErrorKind::Throttled,
                (Verdict::Unsupported, _) => ErrorKind::Unsupported,
                (Verdict::NotInThisState | Verdict::Refused, _) => ErrorKind::Refused,
            };
            let next = Instant::now() + pause;
            if kind != ErrorKind::Throttled || next >= until {
                self.unraised = None;
                let user = &self.settings.login.username;
                let (level, said) = (wanted.word(), quirks::describe(answer.code));
                let error = failed(kind, format!("user {user:?} does not get the privilege {level}: {said}"));
                // Said in a session, and by nobody else: what RAKP says of it may be a stranger's word.
                return Err(error.for_good(kind == ErrorKind::Forbidden));
            }
            sleep_until(next).await;
            pause *= 2;
        }
    }

    fn refused(&self, verdict: LoginVerdict, status: u8) -> DriverError {
        let user = &self.settings.login.username;
        let said = quirks::describe_status(status);
        match verdict {
            LoginVerdict::OtherSuite => {
                let allowed: Vec<u8> = self.settings.suites.iter().map(|suite| suite.id()).collect();
                let list: Vec<String> = allowed.iter().map(u8::to_string).collect();
                let list = list.join(", ");
                let offered = suites::words(self.offered.as_deref().unwrap_or_default(), &allowed);
                failed(
                    ErrorKind::Unsupported,
                    format!(
                        "the BMC takes none of the cipher suites that the settings allow, {list} ({said}); {offered}"
                    ),
                )
            }
            LoginVerdict::Forbidden => failed(
                ErrorKind::Forbidden,
                format!(
                    "user {user:?} may not have the privilege {} ({said})",
                    self.settings.login.privilege.word()
                ),
            ),
            LoginVerdict::Credentials => failed(
                ErrorKind::Authentication,
                format!("the BMC refuses user {user:?} or its password ({said})"),
            ),
            LoginVerdict::Full | LoginVerdict::Again | LoginVerdict::Protocol => {
                failed(ErrorKind::Protocol, format!("the login was refused with {said}"))
            }
        }
    }

    /// The call's time is over, and no session is open.
    fn in_vain(&self, trouble: Option<&str>, full: bool) -> DriverError {
        let authority = self.settings.authority();
        if full {
            return failed(
                ErrorKind::Throttled,
                format!("{authority}: all session slots of the BMC are taken"),
            );
        }
        match trouble {
            Some(why) => failed(ErrorKind::Unreachable, format!("{authority}: {why}")),
            None => {
                let why = self.too_slow().unwrap_or_default();
                failed(ErrorKind::TimedOut, format!("{authority} did not answer the login in time{why}"))
            }
        }
    }

    /// That the BMC's answers do not fit into the call, and what would give them the time: a login is four of them and a reading the fifth. A sixth
    /// is for the copy of the first question, where that is sent before its answer can be there.
    fn too_slow(&self) -> Option<String> {
        let takes = self.pace.soonest().filter(|takes| *takes * ANSWERS > self.has)?;
        let wanted = (takes * (ANSWERS + 1)).as_secs() + 2;
        Some(format!(
            ": its answers take {:.1} s, and the {ANSWERS} of a login and a reading do not fit into the {:.1} s that it had; a call as long as \
             call = \"{wanted}s\" has the time",
            takes.as_secs_f64(),
            self.has.as_secs_f64()
        ))
    }
}
