//! One attempt to open a session, on a link: the handshake's packets with their copies.

use std::time::Duration;

use tokio::time::Instant;

use crate::Random;
use crate::command::CloseSession;
use crate::crypto::{BLOCK, Suite};
use crate::handshake::{Handshake, Login, Progress, Refusal};
use crate::link::Link;
use crate::live::FIRST_PAUSE;
use crate::session::Session;
use crate::wire::LARGEST;

/// How an attempt ended.
#[derive(Debug)]
pub enum Ended {
    /// The session is open.
    Open(Session),
    /// It was refused.
    Refused(Refusal),
    /// The BMC does not answer (any more).
    Silent,
}

/// The longest wait for one answer of a slow BMC before the packet is sent again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An attempt. Dropped half-way, also by a caller who leaves, it tells the BMC to forget the half-open session.
pub struct Attempt<'a> {
    handshake: Handshake<'a>,
    link: &'a mut Link,
    random: &'a Random,
    sent_last: bool,
    over: bool,
}

impl<'a> Attempt<'a> {
    /// An attempt with exactly one suite.
    pub fn new(login: &'a Login, suite: Suite, link: &'a mut Link, random: &'a Random) -> Self {
        let mut bytes = [0; 21];
        random(&mut bytes);
        let handshake = Handshake::new(login, suite, &bytes);
        Self { handshake, link, random, sent_last: false, over: false }
    }

    /// Runs it, at most until `until`. `pace` is how long this BMC may take for an answer: learned at the first
    /// packet, because a copy of RAKP 1 makes some BMCs forget what they answered to the first. `earlier` is how many
    /// attempts of the same call came to nothing.
    pub async fn run(&mut self, pace: &mut Duration, earlier: u32, until: Instant) -> Ended {
        let mut out = Vec::with_capacity(128);
        let mut buffer = [0; LARGEST];
        loop {
            let first = self.handshake.at_first_packet();
            let last = self.handshake.at_last_packet();
            let mut pause = (*pace * 2_u32.pow(earlier.min(3))).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            let stage_until = match (first, last) {
                (true, _) => until,
                // Lost, RAKP 4 is not cured by another RAKP 3: the BMC has the session open already.
                (_, true) => until.min(Instant::now() + 2 * pause),
                _ => until.min(Instant::now() + 7 * pause),
            };
            if last && earlier > 0 {
                self.linger(earlier, &mut buffer).await;
            }
            self.handshake.write(&mut out);
            self.sent_last |= last;
            let began = Instant::now();
            let answered = 'stage: loop {
                self.link.send(&out).await;
                let wake = if last { stage_until } else { stage_until.min(Instant::now() + pause) };
                while let Some(datagram) = self.link.receive(&mut buffer, wake).await {
                    match self.handshake.handle(datagram) {
                        Progress::Ignored if Instant::now() < wake => {}
                        Progress::Ignored => break,
                        Progress::Next => break 'stage true,
                        Progress::Done(session) => {
                            self.over = true;
                            return Ended::Open(session);
                        }
                        Progress::Refused(refusal) => {
                            // What the BMC refuses it has forgotten; what we refuse it has not.
                            self.over = matches!(refusal, Refusal::Status(_) | Refusal::Rakp4(_));
                            return Ended::Refused(refusal);
                        }
                    }
                }
                pause *= 2;
                if Instant::now() >= stage_until {
                    break false;
                }
            };
            if !answered {
                return Ended::Silent;
            }
            if first {
                *pace = (2 * began.elapsed()).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            }
        }
    }

    /// Waits a moment for a second RAKP 2: on a network that doubles packets the BMC made a new random for each
    /// RAKP 1, and takes only the last.
    async fn linger(&mut self, earlier: u32, buffer: &mut [u8; LARGEST]) {
        let until = Instant::now() + Duration::from_millis(20) * earlier.min(10);
        while let Some(datagram) = self.link.receive(buffer, until).await {
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
        let mut out = Vec::with_capacity(128);
        match self.handshake.presumed().filter(|_| self.sent_last) {
            Some(mut session) => {
                let mut request = session.request(CloseSession(session.remote_id()).into());
                let mut iv = [0; BLOCK];
                (self.random)(&mut iv);
                session.write_copy(&mut request, &iv, &mut out);
                self.link.send_now(&out);
            }
            None if self.handshake.write_abort(&mut out) => self.link.send_now(&out),
            None => {}
        }
    }
}
