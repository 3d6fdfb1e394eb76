//! One attempt to open a session, on a link: the handshake's packets with their copies.

use std::time::Duration;

use tokio::time::Instant;

use crate::Random;
use crate::command::{CloseSession, SetPrivilege};
use crate::crypto::{BLOCK, Suite};
use crate::handshake::{Handshake, Login, Progress, Refusal, Stage};
use crate::link::Link;
use crate::oddities::Oddity;
use crate::session::{Answer, Session};
use crate::wire::LARGEST;
use picket_driver::pace::{Answered, FIRST_PAUSE, LONGEST_PAUSE, Pace};

/// How an attempt ended.
#[derive(Debug)]
pub enum AttemptEnd {
    /// The session is open. Where RAKP 4 was lost: what it answered to Set Session Privilege Level.
    Open(Box<Session>, Option<Answer>),
    /// It was refused.
    Refused(Refusal),
    /// The BMC does not answer (any more).
    Silent,
}

/// How long the copies of a packet may be on their way, and the answers to them, on a network that makes copies.
const CALM: Duration = Duration::from_millis(200);
/// Copies of RAKP 1 before the attempt is given up.
const RAKP1_COPIES: u32 = 8;
/// Waits for RAKP 4, the first without, the others with a question in the session that it would open.
const RAKP4_WAITS: u32 = 5;

/// An attempt. Dropped half-way, also by a caller who leaves, it tells the BMC to forget the half-open session.
pub struct Attempt<'a> {
    login: &'a Login,
    handshake: Handshake<'a>,
    link: &'a mut Link,
    random: &'a Random,
    /// The session that the BMC opens with RAKP 3.
    session: Option<Session>,
    raised: Option<Answer>,
    opens: u32,
    over: bool,
    out: Vec<u8>,
}

impl<'a> Attempt<'a> {
    /// An attempt with exactly one suite.
    pub fn new(login: &'a Login, suite: Suite, link: &'a mut Link, random: &'a Random) -> Self {
        let mut bytes = [0; 21];
        random(&mut bytes);
        let handshake = Handshake::new(login, suite, &bytes);
        Self {
            login,
            handshake,
            link,
            random,
            session: None,
            raised: None,
            opens: 0,
            over: false,
            out: Vec::with_capacity(128),
        }
    }

    /// Runs it, at most until `until`.
    ///
    /// `pace` is learned at each packet: a copy of RAKP 1 makes some BMCs forget what they answered to the first. `refused` is how often RAKP 4 was refused in this call, the sign of
    /// that; `slower` how much longer than `pace` it is waited for an answer. With `calm` the copies that the network makes
    /// of a packet are let arrive before the next one is sent.
    pub async fn run(
        &mut self,
        pace: &mut Pace,
        slower: u32,
        refused: u32,
        calm: bool,
        until: Instant,
    ) -> AttemptEnd {
        loop {
            let pause = (pace.pause() * 2_u32.pow(slower.min(3))).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            let progress = match self.handshake.stage() {
                Stage::Open => self.open(pause, pace, until).await,
                Stage::Rakp1 => {
                    if calm {
                        self.linger(CALM).await;
                    }
                    self.rakp1(pause, pace, until).await
                }
                Stage::Rakp3 => {
                    if calm || refused > 0 {
                        let longer = Duration::from_millis(20) * refused.min(10);
                        self.linger(if calm { CALM + longer } else { longer }).await;
                    }
                    self.rakp3(pause, pace, until).await
                }
            };
            match progress {
                Some(Progress::Next | Progress::Ignored) => {}
                Some(Progress::Done) => match self.session.take() {
                    Some(session) => {
                        self.over = true;
                        if self.handshake.has_open_privilege() {
                            self.link.see(Oddity::Privilege);
                        }
                        return AttemptEnd::Open(Box::new(session), self.raised.take());
                    }
                    None => return AttemptEnd::Silent,
                },
                Some(Progress::Refused(refusal)) => {
                    // What the BMC refuses it has forgotten; what we refuse it has not.
                    self.over = matches!(refusal, Refusal::Status(_) | Refusal::Rakp4(_));
                    return AttemptEnd::Refused(refusal);
                }
                None => {
                    pace.silent();
                    return AttemptEnd::Silent;
                }
            }
        }
    }

    /// Whether the BMC may have begun again with a copy of Open Session, and we do not know of it.
    pub fn is_ambiguous(&self) -> bool {
        self.opens > 1 || self.handshake.was_doubled()
    }

    /// Whether answers came more than once.
    pub fn was_doubled(&self) -> bool {
        self.handshake.was_doubled()
    }

    async fn open(&mut self, first_pause: Duration, pace: &mut Pace, until: Instant) -> Option<Progress> {
        let mut pause = first_pause;
        let began = Instant::now();
        loop {
            let sent = Instant::now();
            self.send().await;
            self.opens += 1;
            if let Some(progress) = self.answer(until.min(sent + pause)).await {
                let (since_first, since_last) = (began.elapsed(), sent.elapsed());
                pace.answered(Answered { copies: self.opens, since_first, since_last, pause });
                return Some(progress);
            }
            if Instant::now() >= until {
                return None;
            }
            // The first wait for one that never answered is longer than the next ones.
            pause = if self.opens == 1 && pace.expects_loss() { FIRST_PAUSE * 2 } else { pause * 2 };
        }
    }

    /// The BMC is there: from here on what is missing was lost, and is soon sent again.
    async fn rakp1(&mut self, pause: Duration, pace: &mut Pace, until: Instant) -> Option<Progress> {
        let began = Instant::now();
        for copies in 1..=RAKP1_COPIES {
            let sent = Instant::now();
            self.send().await;
            let wake = until.min(sent + pause);
            if let Some(progress) = self.answer(wake).await {
                let (since_first, since_last) = (began.elapsed(), sent.elapsed());
                pace.answered(Answered { copies, since_first, since_last, pause });
                return Some(self.reconsider(progress, wake).await);
            }
            if Instant::now() >= until {
                break;
            }
        }
        None
    }

    /// A RAKP 2 with a wrong code is not believed at once: on a network that doubles packets it may have overtaken the
    /// answer to a copy of Open Session, whose id it was made with.
    async fn reconsider(&mut self, first: Progress, wake: Instant) -> Progress {
        while first == Progress::Refused(Refusal::WrongPassword) {
            match self.answer(wake).await {
                Some(Progress::Refused(Refusal::WrongPassword)) if Instant::now() < wake => {}
                Some(Progress::Refused(Refusal::WrongPassword)) | None => break,
                Some(progress) => return progress,
            }
        }
        first
    }

    /// RAKP 3 is sent once: to a BMC that opened the session with it, and whose RAKP 4 was lost, another one is an error.
    /// Such a BMC answers in the session, under the key that RAKP 4 would have proven.
    async fn rakp3(&mut self, pause: Duration, pace: &mut Pace, until: Instant) -> Option<Progress> {
        let mut buffer = [0; LARGEST];
        let began = Instant::now();
        self.send().await;
        let session = self.session.insert(self.handshake.presumed()?);
        let mut question = session.request(SetPrivilege(self.login.privilege).into());
        for wait in 0..RAKP4_WAITS {
            if wait > 0 {
                let mut iv = [0; BLOCK];
                (self.random)(&mut iv);
                session.write_copy(&mut question, &iv, &mut self.out);
                self.link.send(&self.out).await;
            }
            let wake = until.min(Instant::now() + pause);
            while let Some(datagram) = self.link.receive(&mut buffer, wake).await {
                match self.handshake.handle(datagram) {
                    Progress::Ignored => {
                        self.raised = session.answer(&question, datagram);
                        if self.raised.is_some() {
                            return Some(Progress::Done);
                        }
                        if Instant::now() >= wake {
                            break;
                        }
                    }
                    progress => {
                        if wait == 0 {
                            let took = began.elapsed();
                            let once = Answered { copies: 1, since_first: took, since_last: took, pause };
                            pace.answered(once);
                        }
                        return Some(progress);
                    }
                }
            }
            if Instant::now() >= until {
                break;
            }
        }
        None
    }

    async fn send(&mut self) {
        self.handshake.write(&mut self.out);
        self.link.send(&self.out).await;
    }

    async fn answer(&mut self, wake: Instant) -> Option<Progress> {
        let mut buffer = [0; LARGEST];
        while let Some(datagram) = self.link.receive(&mut buffer, wake).await {
            match self.handshake.handle(datagram) {
                Progress::Ignored if Instant::now() < wake => {}
                Progress::Ignored => break,
                progress => return Some(progress),
            }
        }
        None
    }

    /// Waits a moment for further answers. Of RAKP 2: on a network that doubles packets the BMC made a new random for each
    /// RAKP 1, and takes only the last.
    async fn linger(&mut self, time: Duration) {
        let mut buffer = [0; LARGEST];
        let until = Instant::now() + time;
        while let Some(datagram) = self.link.receive(&mut buffer, until).await {
            self.handshake.renew(datagram);
            if Instant::now() >= until {
                break;
            }
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        match &mut self.session {
            Some(session) => {
                let mut request = session.request(CloseSession(session.remote_id()).into());
                let mut iv = [0; BLOCK];
                (self.random)(&mut iv);
                session.write_copy(&mut request, &iv, &mut self.out);
                self.link.send_now(&self.out);
            }
            None if self.handshake.write_abort(&mut self.out) => self.link.send_now(&self.out),
            None => {}
        }
    }
}
