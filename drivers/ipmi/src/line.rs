//! The conversation with one BMC: one request in flight, one session kept warm, and what became of those
//! before it.
//!
//! # Invariants
//!
//! - A session that fell silent is not given up before another one was opened *and* the old one was asked a
//!   last time. As long as it answers, the BMC did not restart, and the epoch is the same (S2). Shown by
//!   `a_session_is_not_given_up_before_it_had_a_last_word`.
//! - A session that is given up and had carried a command is kept until it is surely over on the far side
//!   (S8). Shown by `an_off_whose_session_was_lost_is_waited_for_or_its_end_is_seen_from_outside`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ipmi_rs_core::connection::Message;
use parking_lot::Mutex;
use picket_core::power::{Epoch, Loss};
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effort, ErrorKind};
use tokio::time::{Instant, sleep_until};

use crate::Random;
use crate::closing;
use crate::command::GetChassisStatus;
use crate::link::Counters;
use crate::live_session::{LiveSession, TimedAnswer};
use crate::quirks::{self, Verdict};
use crate::session_opener::SessionOpener;
use crate::settings::Settings;
use picket_driver::pace::FIRST_PAUSE;

/// How long a session that fell silent is asked before another one is opened, at most.
const DOUBTFUL: Duration = Duration::from_millis(1_750);
/// How long it is asked a last time, once the far side has answered a new handshake: by 15 copies. A network that loses
/// two of five datagrams in each direction swallows all of them once in a thousand times where the BMC takes a number
/// twice. Where it does not, and the session had used up its window, seven have a number that is new, and all of them are
/// swallowed once in twenty times.
const LAST_WORD: Duration = Duration::from_millis(1_500);

/// A session that stopped answering, and has no successor yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostSession {
    pub(crate) epoch: u64,
    /// When the first question was asked that it left unanswered.
    pub(crate) since: BootTime,
}

/// The state of the conversation.
#[derive(Debug)]
pub struct Line {
    pub(crate) settings: Arc<Settings>,
    opener: SessionOpener,
    pub(crate) session: Option<LiveSession>,
    /// Opened when the session fell silent, at the end of a call that left no time for that one's last word.
    pub(crate) stand_in: Option<Box<LiveSession>>,
    /// Sessions that were lost and had carried a command, or whose close was begun and its answer not seen.
    pub(crate) orphans: Vec<LiveSession>,
    /// The GUID that the BMC said in the handshake of the newest session. It is shared, as a call may have the line.
    far_side: Arc<Mutex<Option<String>>>,
    epochs: u64,
    /// The newest loss, which every epoch after it tells.
    loss: Option<Loss>,
    /// Power was not read since the newest loss.
    pub(crate) unseen: bool,
    /// The session before the next epoch was lost.
    pub(crate) lost: Option<LostSession>,
    /// Network function and command of questions that came to nothing, and how often in a row.
    pub(crate) unanswered: BTreeMap<(u8, u8), u32>,
}

impl Line {
    /// Nothing was said yet.
    pub fn new(settings: Arc<Settings>, random: Random, counters: Arc<Counters>) -> Self {
        Self {
            opener: SessionOpener::new(settings.clone(), random, counters),
            settings,
            session: None,
            stand_in: None,
            orphans: Vec::new(),
            far_side: Arc::default(),
            epochs: 0,
            loss: None,
            unseen: false,
            lost: None,
            unanswered: BTreeMap::new(),
        }
    }

    /// It counts only once its session takes the place of the one before.
    fn next_epoch(&mut self, lost_since: Option<BootTime>) -> Epoch {
        self.epochs += 1;
        let epoch = self.epochs;
        Epoch { id: epoch, loss: lost_since.map(|since| Loss { epoch, since }).or(self.loss) }
    }

    fn begin(&mut self, live: &LiveSession) {
        let epoch = live.epoch();
        self.unseen |= epoch.begins_after_loss();
        self.loss = epoch.loss;
        *self.far_side.lock() = Some(live.system());
    }

    /// The GUID that the BMC said in the handshake of the newest session, in words.
    pub fn far_side(&self) -> Arc<Mutex<Option<String>>> {
        self.far_side.clone()
    }

    /// Whether a session is there that surely lives.
    pub fn is_warm(&self) -> bool {
        self.session.as_ref().is_some_and(|live| !live.is_doubtful())
    }

    /// Lets go of what is surely over on the far side. A session that ended by idleness alone was not lost.
    pub(crate) fn retire(&mut self) {
        let longest = self.settings.longest_idle();
        let over = |live: &LiveSession| Instant::now() >= live.dead_at(longest);
        self.orphans.retain(|live| !over(live));
        if self.session.as_ref().is_some_and(|live| over(live) && !live.is_silent()) {
            self.session = None;
        }
    }

    /// Lets sessions go that were opened and never used: dropped, they are closed.
    pub(crate) fn forget_unused(&mut self) {
        self.stand_in = None;
        self.opener.forget();
    }

    /// Opens a session if none is there.
    pub async fn warm_up(&mut self, call: &Call, until: Instant) -> Result<&mut LiveSession, DriverError> {
        if self.session.is_none() {
            let epoch = self.next_epoch(self.lost.map(|lost| lost.since));
            let live = self.opener.open(epoch, call, until).await?;
            self.lost = None;
            let endpoint = self.settings.authority();
            tracing::debug!(%endpoint, epoch = epoch.id, loss = ?epoch.loss, "session opened");
            self.begin(&live);
            self.session = Some(live);
        }
        self.session
            .as_mut()
            .ok_or_else(|| Effort::reading().error(ErrorKind::Protocol, "the session is gone"))
    }

    /// Opens a session that is not the next epoch: it ends where it began, and the next one tells the loss that is to be told. `None`: there
    /// is none to be had, or none is needed any more, as each that was asked to close has said meanwhile that it did.
    pub(crate) async fn open_outside(&mut self, call: &Call, until: Instant) -> Option<LiveSession> {
        let epoch = self.next_epoch(self.lost.map(|lost| lost.since));
        let opened = tokio::select! {
            biased;
            () = closing::all_closed_late(&mut self.orphans) => return None,
            opened = self.opener.open(epoch, call, until) => opened.ok()?,
        };
        *self.far_side.lock() = Some(opened.system());
        Some(opened)
    }

    /// The session fell silent: opens another one, and asks the old one a last time. Where the call ends before that, the
    /// other one waits for the next call; only once, so that a call that is always too short gets on.
    async fn replace(&mut self, call: &Call, until: Instant) -> Result<(), DriverError> {
        let waited = self.stand_in.take().filter(|live| !live.is_doubtful());
        let again = waited.is_some();
        let fresh = match waited {
            Some(live) => *live,
            None => {
                let since = self.session.as_ref().and_then(LiveSession::unanswered_since);
                let epoch = self.next_epoch(Some(since.unwrap_or(call.now())));
                self.opener.open(epoch, call, until).await?
            }
        };
        let epoch = fresh.epoch();
        if let Some(old) = self.session.as_mut() {
            let over = Instant::now() + old.patience(LAST_WORD);
            if old.insist(GetChassisStatus.into(), call, over.min(until)).await?.is_some() {
                return Ok(());
            }
            if over > until && !again {
                self.stand_in = Some(Box::new(fresh));
                return Err(self.silence(&Effort::reading()));
            }
        }
        self.begin(&fresh);
        if let Some(old) = self.session.replace(fresh) {
            let endpoint = self.settings.authority();
            tracing::warn!(%endpoint, lost = old.epoch().id, epoch = epoch.id, "session lost");
            if old.has_carried() {
                self.orphans.push(old);
            }
        }
        Ok(())
    }

    /// One request and its answer, in whichever session lives.
    ///
    /// # Errors
    /// No answer in time, or no session; `effect` speaks of everything in `effort`.
    pub async fn ask(
        &mut self,
        message: &Message,
        call: &Call,
        until: Instant,
        effort: &mut Effort,
    ) -> Result<TimedAnswer, DriverError> {
        self.retire();
        loop {
            if effort.is_bound() && self.session.is_none() {
                return Err(self.silence(effort));
            }
            self.warm_up(call, until).await.map_err(|error| effort.judge(error))?;
            if self.unseen && effort.wants_sight() {
                let detail =
                    format!("{}: its session was lost; power is read first", self.settings.authority());
                return Err(effort.error(ErrorKind::Unreachable, detail));
            }
            let live = self.warm_up(call, until).await.map_err(|error| effort.judge(error))?;
            call.may_go_in(live.epoch()).map_err(|error| effort.judge(error))?;
            let patience = if live.is_doubtful() {
                let left = until.saturating_duration_since(Instant::now());
                Instant::now() + live.patience(DOUBTFUL).min(left * 2 / 5)
            } else {
                until
            };
            if let Some(heard) = live.ask(message.clone(), call, patience, effort).await? {
                // A session that was opened to take its place, raised or not, has no use.
                self.forget_unused();
                return Ok(heard);
            }
            if effort.is_bound() || Instant::now() >= until {
                return Err(self.silence(effort));
            }
            self.replace(call, until).await.map_err(|error| effort.judge(error))?;
        }
    }

    fn silence(&self, effort: &Effort) -> DriverError {
        let authority = self.settings.authority();
        match self.session.as_ref().and_then(LiveSession::trouble) {
            Some(why) => effort.error(ErrorKind::Unreachable, format!("{authority}: {why}")),
            None => effort.error(ErrorKind::TimedOut, format!("{authority} did not answer in its session")),
        }
    }

    /// Like [`Line::ask`], again and again while the BMC says that it is busy.
    /// At the deadline the last answer is given, whatever it says.
    pub async fn command(
        &mut self,
        message: impl Into<Message>,
        call: &Call,
        effort: &mut Effort,
    ) -> Result<TimedAnswer, DriverError> {
        let message = message.into();
        let until = call.end();
        let mut pause = FIRST_PAUSE;
        let mut first = None;
        loop {
            let heard = self.ask(&message, call, until, effort).await?.since(&mut first);
            let verdict = quirks::verdict(heard.answer.code);
            if !matches!(verdict, Verdict::Done | Verdict::Uncertain) {
                effort.refused();
            }
            let next = Instant::now() + pause;
            if verdict != Verdict::Busy || next >= until {
                return Ok(heard);
            }
            sleep_until(next).await;
            pause *= 2;
        }
    }
}
