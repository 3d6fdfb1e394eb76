//! The last look (S15): before the hold, and again just before the first off, a liveness source is asked
//! whether the node recovered.
//!
//! # Invariants
//!
//! - The look fails towards fencing: what is no explicit word is told and goes by. Shown by
//!   `a_source_that_hangs_or_fails_never_stops_a_fence_nor_keeps_it_longer_than_its_patience`.
//! - Once the intent of an off is stored, nothing that the source says counts. Shown by
//!   `recovered_a_second_before_the_off_aborts_and_after_it_completes`.
//! - A program's fence waits for a source that decides and cannot be reached ([`Look::Away`], K9). It keeps
//!   no turn and no time meanwhile. Shown by
//!   `a_source_that_is_away_is_waited_for_before_the_hold_and_before_the_off`,
//!   `a_fence_that_waits_for_a_word_lends_its_place`.
//! - A breach and a person's fence ask no source. Shown by
//!   `a_breach_is_fenced_again_whatever_a_source_says`,
//!   `a_person_s_fence_asks_nobody_whether_it_recovered`.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::ids::EffectId;
use picket_core::order::OffOrder;
use picket_core::record::{Cause, Fence};
use picket_core::time::BootTime;
use picket_liveness::{Liveness, Look, Sign};

use super::Run;
use crate::node::{Fatal, NodeTask};
use crate::paces::Paces;

/// What this run knows of the node's liveness.
pub(super) struct LastLook {
    /// `None`: nobody is asked, or it is too late to ask.
    source: Option<Arc<dyn Liveness>>,
    /// The look that is under way, if there is one.
    pub(super) asking: FuturesUnordered<BoxFuture<'static, Look>>,
    asked_at: BootTime,
    /// When the last answer came.
    answered: Option<BootTime>,
    /// It is away, and its word is waited for: why.
    away: Option<String>,
    /// The hold is over, and the second look was begun.
    second: bool,
    /// Since when only this keeps the off.
    due_since: Option<BootTime>,
    /// How long an answer serves for the first off.
    serves: Duration,
    /// How long after it did not answer what is away is asked again.
    again: Duration,
}

impl LastLook {
    /// Begins the first look, where this fence may still be aborted.
    pub(super) fn begin(
        source: Option<Arc<dyn Liveness>>,
        fence: Option<&Fence>,
        paces: &Paces,
        now: BootTime,
    ) -> Self {
        let undecided = fence.is_some_and(is_undecided);
        let mut look = Self {
            source: source.filter(|_| undecided),
            asking: FuturesUnordered::new(),
            asked_at: now,
            answered: None,
            away: None,
            second: false,
            due_since: None,
            serves: paces.liveness_serves,
            again: paces.liveness_away,
        };
        look.ask(now);
        look
    }

    fn ask(&mut self, now: BootTime) {
        self.ask_after(Duration::ZERO, now);
    }

    fn ask_after(&mut self, pause: Duration, now: BootTime) {
        let Some(source) = self.source.clone().filter(|_| self.asking.is_empty()) else { return };
        self.asked_at = now + pause;
        let look = async move {
            tokio::time::sleep(pause).await;
            // It keeps its own time; one that does not keeps nobody waiting either.
            let look = tokio::time::timeout(source.patience(), source.look()).await;
            look.unwrap_or_else(|_| source.late())
        };
        self.asking.push(look.boxed());
    }

    /// It gave its word, or none that is waited for.
    fn heard(&mut self, now: BootTime) {
        self.answered = Some(now);
        if self.away.take().is_some() {
            self.due_since = None;
        }
    }

    /// It cannot be reached, and is asked again until it can.
    fn is_away(&mut self, why: String, now: BootTime) {
        (self.answered, self.away) = (None, Some(why));
        self.ask_after(self.again, now);
    }

    /// Why nothing is done before its word is there, where it is waited for.
    pub(super) fn waits_for_its_word(&self) -> Option<&str> {
        self.source.as_ref()?;
        self.away.as_deref()
    }

    /// Whether the hold may be engaged.
    pub(super) fn lets_hold(&self) -> bool {
        self.source.is_none() || self.answered.is_some()
    }

    /// Begins the second look, once a device of the level has been held.
    pub(super) fn held(&mut self, now: BootTime) {
        if !self.second {
            (self.second, self.answered) = (true, None);
            self.ask(now);
        }
    }

    /// Whether the first off may go; if not, it is asked once more, and waited for from now on.
    pub(super) fn lets_off(&mut self, now: BootTime) -> bool {
        let Some(source) = &self.source else { return true };
        let due = *self.due_since.get_or_insert(now);
        let serves = self.second && self.answered.is_some_and(|at| now < at + self.serves);
        // The time of one that decides is no word of it: its look ends, and then it is away.
        let decides = self.away.is_some() || matches!(source.late(), Look::Away(_));
        if serves || !decides && now >= due + source.patience() {
            return true;
        }
        self.second = true;
        self.ask(now);
        false
    }

    /// The boot of which the last look spoke.
    pub(super) fn boot(&self) -> Option<String> {
        Some(self.source.as_ref()?.sign()?.boot)
    }

    /// The first off could not be stored: whoever tries again has an answer as young as this one.
    pub(super) fn put_off(&mut self) {
        self.due_since = None;
    }

    /// An off was sent, or the fence cannot be aborted: nothing that is said now counts.
    pub(super) fn over(&mut self) {
        self.source = None;
        self.asking.clear();
    }

    /// Until when something waits for it.
    pub(super) fn waited_for(&self) -> Option<BootTime> {
        let source = self.source.as_ref().filter(|_| self.away.is_none())?;
        let since = if self.lets_hold() { self.due_since? } else { self.asked_at };
        Some(since + source.patience())
    }
}

impl NodeTask {
    /// Begins the first look. Of a node that is fenced for a child nobody is asked whether it recovered: it may be well, as a rule; nor of
    /// one that a person wants off, who knows why (K9).
    pub(super) fn first_look(&self, now: BootTime) -> LastLook {
        let source = self.who_says_whether_it_recovered();
        LastLook::begin(source, self.open_fence(), &self.plan.paces, now)
    }

    fn who_says_whether_it_recovered(&self) -> Option<Arc<dyn Liveness>> {
        self.plan.liveness.clone().filter(|_| !self.is_held_for_a_child() && !self.is_a_person_s())
    }

    /// Looks once, for a gateway that sends nothing itself, or while a person is waited for: whether the fence ended by that (S15). What gives no word is left to the next leader.
    pub(in crate::node) async fn ends_recovered(&mut self) -> Result<bool, Fatal> {
        if !self.open_fence().is_some_and(is_undecided) {
            return Ok(false);
        }
        let here = self.place();
        let Some((why, _)) = self.has_recovered().await else { return Ok(false) };
        self.persist(|| Event::Abort { why: why.clone() }).await?;
        Ok(self.place() != here)
    }

    /// Looks once, whatever was sent: what says that the node recovered, and what was seen of its life.
    pub(super) async fn has_recovered(&mut self) -> Option<(String, Option<Sign>)> {
        let source = self.who_says_whether_it_recovered()?;
        let asked_at = self.now();
        let look = tokio::time::timeout(source.patience(), source.look()).await;
        let look = look.unwrap_or_else(|_| source.late());
        let Look::Recovered(words) = &look else { return None };
        // What says no is asked again and again, and is no news.
        self.teller.looked(asked_at, &look);
        Some((format!("the node recovered: {words}"), source.sign()))
    }

    /// A person opened the fence, joined it, or asked for it to be tried again, or somebody holds the node by a call of their own.
    pub(super) fn is_a_person_s(&self) -> bool {
        self.open_fence().is_some_and(|fence| fence.by_person) || !self.record().held_alone().is_empty()
    }

    /// The store took its time over the first off: what that was decided by is asked for once more. False: it does not go, and what becomes of
    /// the fence is decided anew.
    pub(super) async fn is_decided_still(&mut self, run: &mut Run, offs: &[OffOrder]) -> Result<bool, Fatal> {
        let (why, heard) = match (self.bar(), run.last_look.source.clone()) {
            (Some(bar), _) => (bar.detail(), None),
            (None, None) => return Ok(true),
            (None, Some(source)) => {
                run.last_look.asked_at = self.now();
                let look = tokio::time::timeout(source.patience(), source.look()).await;
                let look = look.unwrap_or_else(|_| source.late());
                match &look {
                    Look::NotRecovered(_) | Look::Unanswered(_) => return Ok(true),
                    Look::Recovered(why) | Look::Away(why) => (why.clone(), Some(look)),
                }
            }
        };
        let effects: Vec<EffectId> = offs.iter().map(|off| off.effect()).collect();
        self.persist(|| Event::NotSent { effects: effects.clone(), why: why.clone() }).await?;
        run.last_look.put_off();
        if let Some(look) = heard {
            self.heard_of(run, look).await?;
        }
        Ok(false)
    }

    /// Takes what a look came to: one that says so aborts the fence, which undoes the hold.
    pub(super) async fn heard_of(&mut self, run: &mut Run, look: Look) -> Result<(), Fatal> {
        let now = self.now();
        let still_away = matches!(look, Look::Away(_)) && run.last_look.waits_for_its_word().is_some();
        if !still_away {
            self.teller.looked(run.last_look.asked_at, &look);
            run.last_look.heard(now);
        }
        match look {
            // A child joined meanwhile.
            Look::Recovered(_) | Look::Away(_) if self.is_held_for_a_child() => run.last_look.over(),
            Look::Away(why) => {
                if !still_away {
                    tracing::warn!(
                        why,
                        "the liveness source is away: the fence waits for its word, or a person's"
                    );
                }
                run.last_look.is_away(why, now);
            }
            Look::Recovered(words) => {
                tracing::info!(words, "the node recovered: the fence is aborted, and nothing was sent");
                let why = format!("the node recovered: {words}");
                self.persist(|| Event::Abort { why: why.clone() }).await?;
                // Where the rules forbid an abort the node stays where it is, and is not asked again.
                run.last_look.over();
            }
            Look::NotRecovered(words) => tracing::debug!(words, "the node did not recover"),
            Look::Unanswered(why) => {
                tracing::warn!(why, "the liveness source gave no answer: the fence goes on");
            }
        }
        Ok(())
    }
}

/// A recovery may still end it. What a breach or a drill fences is alive, and known to be.
fn is_undecided(fence: &Fence) -> bool {
    !fence.off_sent && fence.cause == Cause::Asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Says(Duration);

    #[async_trait::async_trait]
    impl Liveness for Says {
        fn patience(&self) -> Duration {
            self.0
        }

        async fn look(&self) -> Look {
            std::future::pending().await
        }
    }

    /// One that hangs, and decides.
    #[derive(Debug)]
    struct Decides;

    #[async_trait::async_trait]
    impl Liveness for Decides {
        fn patience(&self) -> Duration {
            Duration::from_secs(2)
        }

        fn late(&self) -> Look {
            Look::Away("it hangs".to_owned())
        }

        async fn look(&self) -> Look {
            std::future::pending().await
        }
    }

    fn at(millis: u64) -> BootTime {
        BootTime::from_boot(Duration::from_millis(millis))
    }

    #[test]
    fn the_off_waits_for_its_own_look_and_never_longer_than_the_patience() {
        let mut look = LastLook::begin(None, None, &Paces::default(), at(0));
        assert!(look.lets_hold() && look.lets_off(at(0)), "without a source nothing waits");
        look.source = Some(Arc::new(Says(Duration::from_secs(2))));
        look.ask(at(0));
        assert!(!look.lets_hold());
        (look.answered, look.asking) = (Some(at(100)), FuturesUnordered::new());
        assert!(look.lets_hold());
        assert!(!look.lets_off(at(110)), "what was asked before the hold does not serve");
        look.answered = Some(at(300));
        assert!(look.lets_off(at(799)), "what was answered just now does");
        assert!(!look.lets_off(at(800)), "for half a second");
        assert_eq!(look.waited_for(), Some(at(2_110)));
        assert!(look.lets_off(at(2_110)), "and the off waits no longer than that");
    }

    /// Its patience and the look's own end come at the same moment, in whatever order.
    #[test]
    fn the_time_of_one_whose_silence_is_no_word_lets_no_off_go() {
        let mut look = LastLook::begin(None, None, &Paces::default(), at(0));
        look.source = Some(Arc::new(Decides));
        look.held(at(0));
        assert!(!look.lets_off(at(10)));
        assert!(!look.lets_off(at(60_000)), "nobody said that it did not recover");
        look.heard(at(60_100));
        assert!(look.lets_off(at(60_100)));
    }
}
