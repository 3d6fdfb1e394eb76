//! How long an answer to a datagram takes, and so how long it is waited for before a copy of its question
//! is sent (RFC 6298).
//!
//! # Invariants
//!
//! - A wait is never shorter than [`FIRST_PAUSE`]. Shown by `a_wait_stays_between_its_bounds`.
//! - An answer to a question that had copies is no measure, as it does not say which copy it answers
//!   (Karn). Shown by `an_answer_to_a_question_that_had_copies_measures_nothing`.

use std::time::Duration;

/// The least wait before the first copy; it doubles with each further one.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The most: a device that takes longer for an answer gets copies before it.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// The wait where nothing was measured yet (RFC 6298, 2.1): a copy of Open Session opens another half of a session.
const UNMEASURED: Duration = Duration::from_secs(1);
/// An answer that comes so soon after a copy is that copy's, unless this BMC never answered so soon.
const SOON: Duration = Duration::from_millis(100);

/// The measured times of a device's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measured {
    /// The smoothed time of an answer, and its smoothed deviation.
    takes: Duration,
    varies: Duration,
}

impl Measured {
    /// The retransmission timeout without its bounds. Four deviations, and not less than the time itself: a BMC has buffers
    /// for two packets, and copies fill them.
    fn timeout(self) -> Duration {
        self.takes + (self.varies * 4).max(self.takes)
    }
}

/// How one question was answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// How often it was sent.
    pub copies: u32,
    /// The time since its first copy.
    pub since_first: Duration,
    /// The time since its last copy.
    pub since_last: Duration,
    /// The wait that had begun with that one.
    pub pause: Duration,
}

/// The pace of one device. What is said here of logins is said of IPMI's, whose packets spoil each other; a device without logins has
/// questions alone ([`Pace::of_commands`]).
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    measured: Option<Measured>,
    pause: Duration,
    /// Something was answered since the last silence.
    answers: bool,
    /// A login that was answered came to no end, and no answer was measured: what comes just after a copy may be late, and need not be the
    /// copy's.
    may_be_slow: bool,
    /// The soonest answer since a login was begun: no answer takes longer than it came after its first copy.
    soonest: Option<Duration>,
    /// Of the packets of logins, which are few: one late answer must not slow all that follow it.
    is_of_logins: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

impl Pace {
    /// Nothing was measured yet.
    pub fn new() -> Self {
        Self {
            measured: None,
            pause: UNMEASURED,
            answers: false,
            may_be_slow: false,
            soonest: None,
            is_of_logins: true,
        }
    }

    /// The pace of commands, as far as logins tell it. Some commands take longer than others.
    #[must_use]
    pub fn of_commands(self) -> Self {
        Self { is_of_logins: false, ..self }
    }

    /// Whether what is not answered in the first wait was lost, by and large: nothing is known yet, and that wait was a long one.
    pub fn expects_loss(self) -> bool {
        self.measured.is_none() && !self.may_be_slow
    }

    /// How long to wait before the first copy.
    pub fn pause(self) -> Duration {
        self.pause
    }

    /// How long an answer takes, as far as that is known.
    pub fn takes(self) -> Duration {
        self.measured.map_or(Duration::ZERO, |measured| measured.takes)
    }

    /// A login is begun.
    pub fn begin(&mut self) {
        self.soonest = None;
    }

    /// What one answer took at the most, since the last login was begun; `None`: none came.
    pub fn soonest(self) -> Option<Duration> {
        self.soonest
    }

    /// An answer came.
    pub fn answered(&mut self, answered: Answered) {
        self.answers = true;
        self.soonest = Some(self.soonest.unwrap_or(answered.since_first).min(answered.since_first));
        if answered.copies == 1 {
            self.measure(answered.since_first);
        } else if self.may_be_slow || !self.is_of_last_copy(answered.since_last) {
            // It may answer an earlier copy: the wait stays as long as it had become. A BMC that does one thing after another
            // has the later copies before it still, and a copy of RAKP 1 spoils a login.
            let left = if self.measured.is_none() { answered.copies.saturating_add(1) } else { 1 };
            let busy = answered.since_first * left;
            self.pause = answered.pause.max(busy).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        } else if self.measured.is_none() {
            // What is missing was lost, and the next copy is soon sent.
            self.pause = FIRST_PAUSE;
        }
    }

    /// No answer came at all: a longer wait that was not measured is given up. Where packets are lost it would leave room for one
    /// of them in each call. A BMC that needs a little longer than `UNMEASURED` answers just after the copy of its first packet, each time, and
    /// the copies of RAKP 1 that follow spoil each login: once that came to nothing it is taken for slow, until it is measured.
    pub fn silent(&mut self) {
        self.may_be_slow |= std::mem::take(&mut self.answers) && self.measured.is_none();
        self.pause = match self.measured {
            Some(measured) => measured.timeout().clamp(FIRST_PAUSE, LONGEST_PAUSE),
            // It has the copies of before to do still.
            None if self.may_be_slow => UNMEASURED * 2,
            None => self.pause.min(UNMEASURED),
        };
    }

    /// Whether an answer comes as soon after the last copy as answers come here: then the others were lost, and the BMC is no
    /// slower than before.
    fn is_of_last_copy(self, since_last: Duration) -> bool {
        match self.measured {
            // Commands differ: a fast BMC may answer one of them in no time.
            Some(measured) => {
                let sooner_than_ever = measured.takes > SOON && since_last < measured.takes / 2;
                !sooner_than_ever && since_last <= measured.timeout().max(SOON)
            }
            None => since_last <= SOON,
        }
    }

    fn measure(&mut self, took: Duration) {
        let measured = match self.measured {
            None => Measured { takes: took, varies: took / 2 },
            Some(Measured { takes, .. }) if self.is_of_logins && took < takes / 2 => {
                Measured { takes: takes / 2, varies: takes / 4 }
            }
            Some(Measured { takes, varies }) => {
                Measured { takes: (takes * 7 + took) / 8, varies: (varies * 3 + takes.abs_diff(took)) / 4 }
            }
        };
        self.pause = measured.timeout().clamp(FIRST_PAUSE, LONGEST_PAUSE);
        (self.measured, self.may_be_slow) = (Some(measured), false);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn once(took: u64) -> Answered {
        Answered { copies: 1, since_first: ms(took), since_last: ms(took), pause: FIRST_PAUSE }
    }

    fn paced(times: &[u64]) -> Pace {
        let mut pace = Pace::new();
        for took in times {
            pace.answered(once(*took));
        }
        pace
    }

    #[test]
    fn a_wait_is_longer_than_answers_take() {
        assert_eq!(Pace::new().pause(), ms(1_000), "nothing is known");
        assert_eq!(paced(&[1]).pause(), FIRST_PAUSE);
        for took in [200, 800, 1_200] {
            for times in 1..20 {
                let pause = paced(&vec![took; times]).pause();
                assert!(
                    pause >= ms(2 * took) && pause <= ms(3 * took),
                    "{took} ms, {times} times: {pause:?}"
                );
            }
        }
    }

    #[test]
    fn an_answer_to_a_question_that_had_copies_measures_nothing() {
        let mut pace = paced(&[1]);
        // The BMC takes 1.2 s by now: copies at 0.25 and 0.75 s, and what comes at 1.2 s answers the first.
        let late = Answered { copies: 3, since_first: ms(1_200), since_last: ms(450), pause: ms(1_000) };
        pace.answered(late);
        assert_eq!(pace.takes(), ms(1), "nothing was measured");
        assert_eq!(pace.pause(), ms(1_200), "and the wait is no shorter than it had become");
        let mut cold = Pace::new();
        cold.answered(Answered { copies: 2, since_first: ms(1_200), since_last: ms(200), pause: ms(2_000) });
        assert_eq!(cold.pause(), ms(3 * 1_200), "the copy is answered before the next packet");
        let mut silent = pace;
        silent.silent();
        assert_eq!(silent.pause(), FIRST_PAUSE, "what was not measured is given up where no answer comes");
        cold.silent();
        assert_eq!(cold.pause(), UNMEASURED * 2, "it answers, and a login came to nothing: it may be slow");
        let mut dead = Pace::new();
        dead.silent();
        assert_eq!(dead.pause(), UNMEASURED);
        pace.answered(once(1_200));
        pace.answered(once(1_200));
        assert!(pace.pause() >= ms(1_200), "{pace:?}");
        silent = pace;
        silent.silent();
        assert_eq!(silent.pause(), pace.pause(), "and what was, is not");
        let after = (0..20).fold(pace, |mut pace, _| {
            pace.answered(once(1));
            pace
        });
        assert_eq!(after.pause(), FIRST_PAUSE, "it is fast again");
    }

    #[test]
    fn an_answer_just_after_a_copy_is_not_taken_for_the_copy_s_again_and_again() {
        let mut pace = Pace::new();
        let just_after = Answered { copies: 2, since_first: ms(1_020), since_last: ms(20), pause: ms(500) };
        pace.answered(just_after);
        assert_eq!(pace.pause(), FIRST_PAUSE, "the first one may have been lost");
        pace.silent();
        pace.answered(just_after);
        assert_eq!(pace.pause(), ms(3 * 1_020), "nothing came of that");
        pace.answered(once(1));
        assert_eq!(pace.pause(), FIRST_PAUSE, "it is fast");
    }

    #[test]
    fn one_late_answer_does_not_slow_logins_for_long() {
        let late = paced(&[800, 1, 1, 1]);
        assert!(late.pause() <= ms(300), "{late:?}");
        // Between two readings of the chassis a BMC may be asked what it answers at once.
        let commands = [800, 800, 1, 1, 1].into_iter().fold(Pace::new().of_commands(), |mut pace, took| {
            pace.answered(once(took));
            pace
        });
        assert!(commands.pause() > ms(800), "{commands:?}");
    }

    #[test]
    fn a_lost_packet_makes_no_bmc_slow() {
        for (mut pace, took) in [(paced(&[1, 1]), 1), (paced(&[80, 80]), 80), (Pace::new(), 1)] {
            pace.answered(Answered {
                copies: 3,
                since_first: ms(750 + took),
                since_last: ms(took),
                pause: ms(1_000),
            });
            assert_eq!(pace.pause(), FIRST_PAUSE, "{took}");
        }
        // Sooner after the copy than this BMC ever answered: it is the first copy's, late.
        let mut slow = paced(&[800; 8]);
        let before = slow.pause();
        let first = before + ms(10);
        slow.answered(Answered { copies: 2, since_first: first, since_last: ms(10), pause: before * 2 });
        assert!(slow.pause() > before);
    }

    proptest! {
        #[test]
        fn a_wait_stays_between_its_bounds(
            answers in prop::collection::vec((1_u32..20, 0_u64..60_000, 0_u64..60_000, 0_u64..60_000), 0..40),
        ) {
            let mut pace = Pace::new();
            for (copies, first, last, pause) in answers {
                let (first, last) = (first.max(last), first.min(last));
                pace.answered(Answered { copies, since_first: ms(first), since_last: ms(last), pause: ms(pause) });
                prop_assert!((FIRST_PAUSE..=LONGEST_PAUSE).contains(&pace.pause()));
            }
        }
    }
}
