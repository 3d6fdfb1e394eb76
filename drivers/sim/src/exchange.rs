//! The driver's way to its device: one exchange at a time, repeated while nothing answers, in a session.

use std::sync::Arc;
use std::time::Duration;

use picket_core::power::Epoch;
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::link::{Link, Packet};
use crate::session::{CurrentSession, Line};
use crate::wire::{Answer, Request, Response, SessionId, Trouble, Verb};
use crate::world::SharedWorld;

/// A call ends so long before its deadline that its error still arrives in time.
const MARGIN: Duration = Duration::from_millis(5);
/// The first wait before a request is repeated; doubles.
const REPEAT: Duration = Duration::from_millis(250);

/// The wire between one driver and its device.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) world: SharedWorld,
    pub(crate) device: String,
    pub(crate) sessionless: bool,
    pub(crate) idle: Duration,
    /// There and back.
    pub(crate) latency: Duration,
    /// What lies between; `None`: nothing.
    pub(crate) link: Option<Arc<dyn Link>>,
    pub(crate) line: Mutex<Line>,
    /// Which session is there.
    pub(crate) shown: CurrentSession,
}

/// What came of one request, and when.
#[derive(Debug)]
pub(crate) struct ExchangeResult {
    pub(crate) what: Result<Response, Trouble>,
    /// When the first copy was sent.
    pub(crate) asked_at: BootTime,
    pub(crate) answered_at: BootTime,
    pub(crate) epoch: Option<Epoch>,
}

fn changes_something(request: &Request) -> bool {
    matches!(request, Request::Command(_) | Request::SetHold(_) | Request::Detach { .. })
}

impl Wire {
    /// When a call must come back.
    pub(crate) fn end(call: &Call) -> Instant {
        call.deadline().checked_sub(MARGIN).unwrap_or_else(Instant::now)
    }

    /// One request in a session, which is made anew once if the device does not know it any more.
    pub(crate) async fn exchange(
        &self,
        call: &Call,
        request: &Request,
    ) -> Result<ExchangeResult, DriverError> {
        self.exchange_in(None, call, request).await
    }

    /// The same, in the session of that name and in no other.
    pub(crate) async fn exchange_in(
        &self,
        session: Option<&str>,
        call: &Call,
        request: &Request,
    ) -> Result<ExchangeResult, DriverError> {
        let end = Self::end(call);
        let mut line = timeout_at(end, self.line.lock()).await.map_err(|_| {
            let detail = format!("an earlier call to {} is still under way", self.device);
            DriverError::new(ErrorKind::TimedOut, Effect::DidNotHappen, detail)
        })?;
        let on = *request == Request::Command(Verb::On);
        if on && !self.sessionless {
            // None is opened for an on: the store was asked after the one that is there began (S6, S8).
            call.may_send()?;
            self.let_idle_end(call, &mut line);
            if line.session.is_none_or(|session| session.closing || session.doubtful.is_some()) {
                let detail =
                    format!("{}: no session that answered just now: power is read first", self.device);
                return Err(DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, detail));
            }
        }
        let mut again = !on && session.is_none();
        loop {
            if !self.sessionless && !on {
                self.ensure_session(call, end, &mut line).await?;
            }
            let epoch = line.session.map(|session| session.epoch);
            if *request == Request::Command(Verb::Off) && line.session.is_some() && line.unseen {
                // The caller must see, and store, the loss before an off is sent in a new epoch (S2, S5).
                let detail = format!("{}: its session was lost; power is read first", self.device);
                return Err(DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, detail));
            }
            if let Some(epoch) = epoch {
                call.may_go_in(epoch)?;
            }
            let now = line.session.map(|session| self.name(session.id));
            if session.is_some_and(|stored| now.as_deref() != Some(stored)) {
                let why = "its session is not the one that is stored with it; power is read first";
                let detail = format!("{}: {why}", self.device);
                return Err(DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, detail));
            }
            let exchanged = self.send(call, end, &mut line, request).await?;
            if let (Request::Read, Ok(_)) = (request, &exchanged.what) {
                line.unseen = false;
            }
            match exchanged.what {
                Err(Trouble::NoSession) if again => {
                    line.refused(exchanged.asked_at);
                    again = false;
                }
                Err(Trouble::NoSession) if on || session.is_some() => {
                    line.refused(exchanged.asked_at);
                    return Ok(ExchangeResult { epoch, ..exchanged });
                }
                Err(Trouble::Silence) => {
                    if let Some(session) = &mut line.session {
                        session.doubtful = session.unanswered;
                    }
                    return Ok(ExchangeResult { epoch, ..exchanged });
                }
                _ => return Ok(ExchangeResult { epoch, ..exchanged }),
            }
        }
    }

    /// A session's name, for whoever leads later.
    pub(crate) fn name(&self, id: SessionId) -> String {
        format!("{}#{}", self.device, id.0)
    }

    /// The session of that name; `None`: it is none of this device's.
    pub(crate) fn named(&self, name: &str) -> Option<SessionId> {
        let number = name.strip_prefix(&self.device)?.strip_prefix('#')?;
        number.parse().ok().map(SessionId)
    }

    /// A session in which we said nothing for long enough has ended by itself.
    pub(crate) fn let_idle_end(&self, call: &Call, line: &mut Line) {
        if line.session.is_some_and(|session| call.now().since(session.last_sent) >= self.longest_idle()) {
            line.idled_out();
        }
    }

    /// From our last packet to the end of its session, at the longest: the packet was on its way, too.
    pub(crate) fn longest_idle(&self) -> Duration {
        self.idle + self.latency
    }

    /// Opens a session unless there is one that the device still knows.
    async fn ensure_session(&self, call: &Call, end: Instant, line: &mut Line) -> Result<(), DriverError> {
        self.let_idle_end(call, line);
        if line.session.is_some_and(|session| session.closing) {
            line.left(self.longest_idle());
        }
        if line.session.is_some_and(|session| session.doubtful.is_some()) {
            // If the old session answers, the device did not restart (S2). Half of the time goes to finding out.
            let half = Instant::now() + end.saturating_duration_since(Instant::now()) / 2;
            let tried = self.send(call, half, line, &Request::Read).await?;
            match tried.what {
                Err(Trouble::Silence) => line.given_up(self.longest_idle(), tried.asked_at),
                Err(Trouble::NoSession) => line.refused(tried.asked_at),
                _ => {
                    if let Some(session) = &mut line.session {
                        session.doubtful = None;
                    }
                }
            }
        }
        if line.session.is_none()
            && let Some(id) = line.untaken
        {
            // Its number arrived after its caller had left. A device has few sessions.
            line.opened(id, call.now());
        }
        if line.session.is_some() {
            return Ok(());
        }
        match self.send(call, end, line, &Request::Open).await?.what {
            Ok(Response::Opened(id)) => {
                line.opened(id, call.now());
                Ok(())
            }
            // Only the session was asked for: whatever was wanted did surely not happen.
            other => {
                Err(DriverError { effect: Effect::DidNotHappen, ..self.failure(&other, &Request::Open) })
            }
        }
    }

    /// Sends a request in the present session, and again until an answer comes or `end`; an on is never repeated.
    pub(crate) async fn send(
        &self,
        call: &Call,
        end: Instant,
        line: &mut Line,
        request: &Request,
    ) -> Result<ExchangeResult, DriverError> {
        let once = matches!(request, Request::Command(Verb::On) | Request::Close);
        let (mut gap, mut first) = (REPEAT, None);
        loop {
            if changes_something(request) {
                call.may_send().map_err(|error| match first {
                    None => error,
                    Some(_) => DriverError { effect: Effect::Unknown, ..error },
                })?;
                line.unanswered = true;
            }
            let asked_at = *first.get_or_insert_with(|| call.now());
            let session = line.session.as_mut().map(|session| {
                session.last_sent = call.now();
                session.unanswered.get_or_insert(asked_at);
                session.id
            });
            let silence = |answered_at| ExchangeResult {
                what: Err(Trouble::Silence),
                asked_at,
                answered_at,
                epoch: None,
            };
            let Ok(answer) = timeout_at(end, self.carry(call, session, request, gap)).await else {
                return Ok(silence(call.now()));
            };
            if let Ok(Response::Opened(id)) = answer.what {
                line.untaken = Some(id);
            }
            let heard_nothing = answer.what == Err(Trouble::Silence);
            let wait = if heard_nothing { gap } else { answer.late_by + self.latency / 2 };
            if (heard_nothing && once) || timeout_at(end, sleep(wait)).await.is_err() {
                sleep_until(end).await;
                return Ok(silence(call.now()));
            }
            if !heard_nothing {
                if let Some(session) =
                    line.session.as_mut().filter(|_| answer.what != Err(Trouble::NoSession))
                {
                    session.unanswered = None;
                }
                if changes_something(request) {
                    line.unanswered = false;
                }
                return Ok(ExchangeResult {
                    what: answer.what,
                    asked_at,
                    answered_at: call.now(),
                    epoch: None,
                });
            }
            gap *= 2;
        }
    }

    /// One copy of what belongs to no session.
    pub(crate) async fn alone(&self, call: &Call, request: &Request) -> Result<Response, DriverError> {
        let end = Self::end(call);
        if changes_something(request) {
            call.may_send()?;
        }
        let patience = end.saturating_duration_since(Instant::now());
        let asked = timeout_at(end, self.carry(call, None, request, patience)).await;
        let answer = asked.unwrap_or(Answer { late_by: Duration::ZERO, what: Err(Trouble::Silence) });
        let is_silence = answer.what == Err(Trouble::Silence);
        if is_silence || timeout_at(end, sleep(answer.late_by + self.latency / 2)).await.is_err() {
            sleep_until(end).await;
            return Err(self.failure(&Err(Trouble::Silence), request));
        }
        answer.what.map_err(|trouble| self.failure(&Err(trouble), request))
    }

    /// One copy to the device, and its answer back.
    async fn carry(
        &self,
        call: &Call,
        session: Option<SessionId>,
        request: &Request,
        patience: Duration,
    ) -> Answer {
        if let Some(link) = &self.link {
            let (device, request) = (self.device.clone(), request.clone());
            return link.carry(Packet { device, session, request }, patience).await;
        }
        sleep(self.latency / 2).await;
        self.world.lock().ask(call.now(), &self.device, session, request)
    }

    /// What an answer that is not the one that was asked for means.
    pub(crate) fn failure(&self, what: &Result<Response, Trouble>, request: &Request) -> DriverError {
        let (kind, detail) = match what {
            Ok(other) => (ErrorKind::Protocol, format!("answered something else: {other:?}")),
            Err(trouble) => match trouble {
                Trouble::Silence => (ErrorKind::TimedOut, "did not answer".to_owned()),
                Trouble::NoSession => (ErrorKind::Protocol, "does not know the session".to_owned()),
                Trouble::SessionsFull => (ErrorKind::Throttled, "has no session left".to_owned()),
                Trouble::Password => (ErrorKind::Authentication, "refused the credentials".to_owned()),
                Trouble::Busy => (ErrorKind::Throttled, "is busy".to_owned()),
                Trouble::AlreadySo => (ErrorKind::Refused, "says: not supported in present state".to_owned()),
                Trouble::Refused => (ErrorKind::Refused, "refused".to_owned()),
                Trouble::Forbidden => {
                    (ErrorKind::Forbidden, "does not permit this to the account".to_owned())
                }
                Trouble::Unsupported => (ErrorKind::Unsupported, "does not support this".to_owned()),
            },
        };
        let unclear = matches!(what, Ok(_) | Err(Trouble::Silence)) && changes_something(request);
        let effect = if unclear { Effect::Unknown } else { Effect::DidNotHappen };
        DriverError::new(kind, effect, format!("{} {detail}", self.device))
            .for_good(matches!(what, Err(Trouble::Forbidden)))
    }
}
