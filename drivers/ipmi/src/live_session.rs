//! An open session on its link: requests with their copies, and what the session has been through.

use std::time::Duration;

use ipmi_rs_core::connection::Message;
use picket_core::power::Epoch;
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effort};
use tokio::time::Instant;

use crate::Random;
use crate::command::CloseSession;
use crate::crypto::BLOCK;
use crate::link::Link;
use crate::oddities::Oddity;
use crate::session::{Answer, Request, Session};
use crate::wire::LARGEST;
use picket_driver::pace::{Answered, Pace};

/// Between two copies of a last question, to a BMC that answers fast.
const INSIST_PAUSE: Duration = Duration::from_millis(100);

/// How much of what came late is taken in before the next question: more than one question can have had copies.
const MOST_LEFTOVERS: usize = 32;

/// The longest that a single question may stay unanswered, however slow the BMC is.
const LONGEST_PATIENCE: Duration = Duration::from_secs(5);

/// A session that answered within this time surely lives: the shortest idle limit seen is 30 s (ipmi_sim).
const FRESH: Duration = Duration::from_secs(20);

/// An answer, and when it was asked for.
#[derive(Clone, Debug)]
pub struct TimedAnswer {
    /// What was said.
    pub answer: Answer,
    /// When the first copy of this request was sent.
    pub asked_at: BootTime,
    /// The same of the first request for the command in this session, where the BMC was busy for it.
    pub first_asked_at: BootTime,
    /// When the answer arrived.
    pub answered_at: BootTime,
    /// The session in which it was given.
    pub epoch: Epoch,
}

impl TimedAnswer {
    /// The same as one of several tries of a command. `first` is the session of the tries before, and when the first of them
    /// was asked there: in another session nothing was asked yet.
    #[must_use]
    pub fn since(self, first: &mut Option<(Epoch, BootTime)>) -> Self {
        let first_asked_at = match *first {
            Some((epoch, at)) if epoch == self.epoch => at,
            _ => self.first_asked_at,
        };
        *first = Some((self.epoch, first_asked_at));
        Self { first_asked_at, ..self }
    }
}

/// A session. Dropped without [`LiveSession::closed`], it sends one Close Session as a courtesy: BMCs have few slots.
pub struct LiveSession {
    session: Session,
    link: Link,
    random: Random,
    epoch: Epoch,
    last_sent: Instant,
    last_answer: Instant,
    pace: Pace,
    /// When the first question was asked since its last answer; none: nothing was.
    unanswered_since: Option<BootTime>,
    carried: bool,
    /// The question whether it closes itself, as long as it may be answered.
    close_asked: Option<Request>,
    /// It said so, too late for who asked.
    said_closed: bool,
    closed: bool,
    out: Vec<u8>,
}

impl std::fmt::Debug for LiveSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("epoch", &self.epoch)
            .field("unanswered_since", &self.unanswered_since)
            .field("carried", &self.carried)
            .finish_non_exhaustive()
    }
}

impl LiveSession {
    /// A session that was opened just now, by a handshake at that pace.
    pub fn new(session: Session, link: Link, random: Random, epoch: Epoch, pace: Pace) -> Self {
        let now = Instant::now();
        Self {
            session,
            link,
            random,
            epoch,
            last_sent: now,
            last_answer: now,
            pace,
            unanswered_since: None,
            carried: false,
            close_asked: None,
            said_closed: false,
            closed: false,
            out: Vec::with_capacity(128),
        }
    }

    /// The same in a later epoch: nothing counted yet that was said in it.
    #[must_use]
    pub fn in_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = epoch;
        self
    }

    /// Its epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The GUID that its handshake said.
    pub fn system(&self) -> String {
        self.session.system()
    }

    /// Whether that GUID tells its machine from others.
    pub fn says_its_system(&self) -> bool {
        self.session.says_its_system()
    }

    /// The BMC's id for it.
    pub fn remote_id(&self) -> u32 {
        self.session.remote_id()
    }

    /// Whether it may be gone on the far side: a question is unanswered, or it was idle for long.
    pub fn is_doubtful(&self) -> bool {
        self.is_silent() || self.is_stale()
    }

    /// Whether it did not answer for so long that it may have ended by its idleness.
    pub fn is_stale(&self) -> bool {
        self.last_answer.elapsed() > FRESH
    }

    /// `least`, or as long as four answers of this BMC take, where that is longer.
    pub fn patience(&self, least: Duration) -> Duration {
        least.max((self.pace.takes() * 4).min(LONGEST_PATIENCE))
    }

    /// Whether something was asked and not answered since its last answer, also where the caller did not wait for it.
    pub fn is_silent(&self) -> bool {
        self.unanswered_since.is_some()
    }

    /// Since when it does not answer, if it does not.
    pub fn unanswered_since(&self) -> Option<BootTime> {
        self.unanswered_since
    }

    /// Whether it carried a packet that changes something.
    pub fn has_carried(&self) -> bool {
        self.carried
    }

    /// When the far side has surely ended it, if nothing more is sent.
    pub fn dead_at(&self, longest_idle: Duration) -> Instant {
        self.last_sent + longest_idle
    }

    /// Why nothing arrives, if the network says so.
    pub fn trouble(&self) -> Option<&str> {
        self.link.trouble()
    }

    /// The far side ended it: nothing more is sent in it.
    pub fn closed(mut self) {
        self.closed = true;
    }

    async fn send_copy(&mut self, request: &mut Request, effort: &mut Effort) {
        let mut iv = [0; BLOCK];
        (self.random)(&mut iv);
        self.session.write_copy(request, &iv, &mut self.out);
        self.carried |= effort.is_control();
        self.last_sent = Instant::now();
        if self.link.send(&self.out).await {
            effort.sent();
        }
    }

    /// Asks, with copies at growing distance, until an answer comes or `until` has passed (`None`).
    ///
    /// # Errors
    /// The permit has ended. Copies that were sent before are accounted for in `effort`.
    pub async fn ask(
        &mut self,
        message: Message,
        call: &Call,
        until: Instant,
        effort: &mut Effort,
    ) -> Result<Option<TimedAnswer>, DriverError> {
        self.overhear();
        let mut request = self.session.request(message);
        self.exchange(&mut request, call, until, effort, self.pace.pause(), 2).await
    }

    /// Asks it to end itself; whether it says that it did.
    pub async fn close(&mut self, call: &Call, until: Instant) -> bool {
        self.overhear();
        let mut request = self.session.request(CloseSession(self.remote_id()).into());
        let mut effort = Effort::reading();
        let asked = self.exchange(&mut request, call, until, &mut effort, self.pace.pause(), 2).await;
        self.close_asked = Some(request);
        asked.is_ok_and(|heard| heard.is_some_and(|heard| heard.answer.code == 0))
    }

    /// Whether it said so since, too late for [`LiveSession::close`]. Nothing is sent.
    pub fn was_closed(&mut self) -> bool {
        let Some(request) = &self.close_asked else { return false };
        let mut buffer = [0; LARGEST];
        self.said_closed |= (0..MOST_LEFTOVERS)
            .map_while(|_| {
                let datagram = self.link.leftover(&mut buffer)?;
                Some(self.session.answer(request, datagram).is_some_and(|answer| answer.code == 0))
            })
            .any(|closed| closed);
        self.said_closed
    }

    /// The last question before the session is given up: with copies at a short, constant distance, many of them, so that
    /// it is not the network that swallows all. Only for readings.
    pub async fn insist(
        &mut self,
        message: Message,
        call: &Call,
        until: Instant,
    ) -> Result<Option<TimedAnswer>, DriverError> {
        // A copy sooner than an answer can come tells nothing, and is one more for a BMC that is slow.
        let pause = INSIST_PAUSE.max(self.pace.takes());
        self.overhear();
        let mut request = self.session.last_request(message);
        self.exchange(&mut request, call, until, &mut Effort::reading(), pause, 1).await
    }

    /// Takes in what came since the last question was given up.
    fn overhear(&mut self) {
        let mut buffer = [0; LARGEST];
        // Bounded, as nobody may keep us here with datagrams that are not the BMC's.
        for _ in 0..MOST_LEFTOVERS {
            match self.link.leftover(&mut buffer) {
                Some(datagram) => self.session.overhear(datagram),
                None => break,
            }
        }
    }

    async fn exchange(
        &mut self,
        request: &mut Request,
        call: &Call,
        until: Instant,
        effort: &mut Effort,
        mut pause: Duration,
        growth: u32,
    ) -> Result<Option<TimedAnswer>, DriverError> {
        let mut buffer = [0; LARGEST];
        let asked_at = call.now();
        let began = Instant::now();
        let mut copies = 0;
        // Nothing is sent whose time is over: this process may have been stopped since it decided to.
        while Instant::now() < until {
            effort.may_send(call).map_err(|ended| effort.judge(ended))?;
            // Before it is sent: who leaves does not wait for the answer.
            self.unanswered_since.get_or_insert(asked_at);
            self.send_copy(request, effort).await;
            copies += 1;
            let wake = until.min(Instant::now() + pause);
            while let Some(datagram) = self.link.receive(&mut buffer, wake).await {
                if let Some(answer) = self.session.answer(request, datagram) {
                    self.last_answer = Instant::now();
                    if self.session.sums_wrongly() {
                        self.link.see(Oddity::Sums);
                    }
                    let (since_first, since_last) = (began.elapsed(), self.last_sent.elapsed());
                    // Copies at a constant distance are many, and their answer says nothing of the pace.
                    if copies == 1 || growth > 1 {
                        self.pace.answered(Answered { copies, since_first, since_last, pause });
                    }
                    self.unanswered_since = None;
                    let (answered_at, epoch) = (call.now(), self.epoch);
                    let heard =
                        TimedAnswer { answer, asked_at, first_asked_at: asked_at, answered_at, epoch };
                    return Ok(Some(heard));
                }
                // Foreign datagrams, however many, must not keep a copy from being sent.
                if Instant::now() >= wake {
                    break;
                }
            }
            pause *= growth;
        }
        self.pace.silent();
        Ok(None)
    }
}

impl Drop for LiveSession {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let mut request = self.session.request(CloseSession(self.session.remote_id()).into());
        let mut iv = [0; BLOCK];
        (self.random)(&mut iv);
        self.session.write_copy(&mut request, &iv, &mut self.out);
        self.link.send_now(&self.out);
    }
}
