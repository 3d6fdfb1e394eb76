//! Rounds of levels: each level has its turn, and after the last one the first has it again, until the
//! fence's deadline (S16).
//!
//! # Invariants
//!
//! - A person is told after the first round, once. Shown by
//!   `one_that_never_answers_is_told_once_and_ends_at_the_deadline`.
//! - A device that took an off and did not fall has no second turn. Shown by
//!   `one_that_took_the_off_and_does_not_fall_is_given_no_second_turn`.
//! - A fence that reached no device and sent nothing lends its place in the budget. Shown by
//!   `a_node_of_which_nothing_answers_keeps_nobody_from_being_fenced`.

use std::time::Duration;

use picket_core::confirm::RESTART_DWELL;
use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::ids::{DeviceId, EffectId};
use picket_core::ledger::{EffectKind, OpenEffect};
use picket_core::outcome::Reason;
use picket_core::time::BootTime;

use picket_liveness::Sign;

use super::{Hand, Run, Stage};
use crate::node::drain::Drained;
use crate::node::{Failure, Fatal, NodeTask};

/// What is known of the round under way, and of those before it.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// A device of the node was reached in this round.
    pub(super) reached: bool,
    /// A level of this round did not answer, or took no off: its turn comes again.
    is_untried: bool,
    /// Why the last whole round proved nothing; `None` in the first one.
    pub(super) spent: Option<String>,
}

impl NodeTask {
    /// What is left of the fence's deadline, whichever process began it; enough for one level in any case.
    pub(super) fn time_left(&self) -> Duration {
        let Some(fence) = self.open_fence() else { return Duration::ZERO };
        let since = fence.confirming_since.unwrap_or(fence.opened_at);
        let now = self.office.now_as_of(since);
        let spent = Duration::from_millis(now.millis().saturating_sub(since.millis()));
        fence.deadline.saturating_sub(spent).max(self.least().min(fence.deadline))
    }

    /// What one level needs to be proven, however it has to be.
    pub(super) fn least(&self) -> Duration {
        let rules = &self.parts.rules;
        let Some(fence) = self.open_fence() else { return Duration::ZERO };
        let devices = || fence.topology.devices();
        let cycle = devices().map(|spec| spec.longest_cycle).max().unwrap_or_default();
        let trusted = devices().filter_map(|spec| spec.trust_after_restart).max().unwrap_or_default();
        let restarted = if fence.lost.is_empty() { trusted } else { trusted.max(RESTART_DWELL) };
        rules.silent_share + cycle.max(restarted) + rules.supply_hold_up
    }

    /// How long the level may answer nothing. Where a person was told, each level has its turn as often as it can: what comes back is reached
    /// soon (S16).
    pub(super) fn silent_share_of(&self, run: &Run) -> Duration {
        let level = self.open_fence().and_then(|fence| fence.topology.level(run.level));
        let Some(level) = level else { return self.parts.rules.silent_share };
        let share = self.parts.rules.silent_share_of(level);
        let slowest = level.devices.iter().map(|spec| spec.call).max().unwrap_or_default();
        // One that drops a question is asked something else after two calls.
        let least = slowest * 2 + self.plan.paces.device.longest;
        if run.round.spent.is_some() { share.min(least) } else { share }
    }

    /// Whether anything of the level answered in this turn of it. An error of one that let us in is an answer: it is there, and may take an off
    /// soon.
    pub(super) fn level_answers(&self, run: &Run) -> bool {
        let (said, since) = (run.judge.level_answers(), run.level_began);
        let answers = |hand: &Hand| hand.answered_since(since) || said && hand.was_reached_since(since);
        self.level_devices(run.level).iter().any(|device| run.hands.get(device).is_some_and(answers))
    }

    /// Host devices of the levels that were silent are asked on, while the level whose turn it is was sent no off: what is back has its turn at
    /// once, and waits for no other level's silence (S16).
    pub(super) fn ask_silent_levels(&self, run: &mut Run, now: BootTime) {
        if self.is_sent_an_off(run) {
            return;
        }
        for device in self.silent_hosts(run) {
            let hand = run.hand(&device);
            if !hand.busy && hand.not_before <= now {
                hand.asks();
                run.doing.push(self.hands.read(&device));
            }
        }
    }

    /// Why the level's turn ends early: a level that was silent answers, and this one was sent no off.
    pub(super) fn who_is_back(&self, run: &Run) -> Option<String> {
        let is_back = |device: &DeviceId| {
            run.hands.get(device).is_some_and(|hand| hand.answered_since(run.level_began))
        };
        let back = self.silent_hosts(run).into_iter().find(is_back).filter(|_| !self.is_sent_an_off(run))?;
        Some(format!("{back} answers again"))
    }

    fn silent_hosts(&self, run: &Run) -> Vec<DeviceId> {
        let Some(fence) = self.open_fence() else { return Vec::new() };
        let levels = run.silent.iter().filter(|level| **level != run.level);
        let devices =
            levels.filter_map(|level| fence.topology.level(*level)).flat_map(|level| &level.devices);
        devices.filter(|spec| spec.class == DeviceClass::Host).map(|spec| spec.id.clone()).collect()
    }

    fn is_sent_an_off(&self, run: &Run) -> bool {
        let is_sent = |device: &DeviceId| run.hands.get(device).is_some_and(Hand::is_sent_an_off);
        self.level_devices(run.level).iter().any(is_sent)
    }

    /// Whether each device of the level still answers, and took an off or waits for a person, or is gone from the settings: another turn of it
    /// would come to no more.
    fn is_tried(&self, run: &Run) -> bool {
        let now = self.now().since_boot();
        let lately = BootTime::from_boot(now.saturating_sub(self.silent_share_of(run))).max(run.level_began);
        let is_tried = |device: &DeviceId| {
            let is_gone = !self.plan.drivers.contains_key(device);
            let hand = run.hands.get(device).filter(|hand| hand.was_reached_since(lately));
            is_gone || hand.is_some_and(|hand| hand.may_have_taken || hand.refuses_for_good)
        };
        self.level_devices(run.level).iter().all(is_tried)
    }

    /// The level had its turn: the next one has it, or a person is asked, or a new round begins.
    pub(super) async fn level_spent(
        &mut self,
        run: &mut Run,
        reason: Reason,
        why: String,
    ) -> Result<(), Fatal> {
        let Some(fence) = self.open_fence() else { return Ok(()) };
        let (first, after, gave_way) = (fence.first_level, fence.level_after(run.level), fence.gave_way);
        run.round.is_untried |= !self.is_tried(run);
        // One whose turn ended for another's sake had no time to answer.
        if !self.level_answers(run) && self.now().since(run.level_began) >= self.silent_share_of(run) {
            run.silent.insert(run.level);
        }
        if after.is_none() {
            if !run.round.reached {
                self.let_another_try(&why).await?;
            }
            // Of devices that were never reached nothing is known to be wrong but the way to them, and one that takes no off yet may later.
            if !run.round.is_untried || reason != Reason::LevelsSpent {
                Box::pin(self.take_back_what_did_not_happen(run)).await?;
                let left = self.left_words(run);
                return self.give_up(reason, why + &left).await;
            }
        }
        let (spent, next) = (run.level, after.unwrap_or(first));
        let gives_way = after.is_none() && !run.round.reached;
        if next != spent || run.round.spent.is_none() || gives_way && !gave_way {
            tracing::warn!(level = spent + 1, why, "the level is spent");
            // What the first round came to is told.
            let told = if run.round.spent.is_some() { String::new() } else { why.clone() };
            self.persist(|| Event::NextLevel { why: told.clone(), gives_way }).await?;
        }
        run.level = next;
        run.silent.remove(&next);
        run.level_began = self.now();
        if after.is_none() {
            self.goes_round(run, why).await?;
        } else if run.round.spent.is_none() {
            run.deadline = run.deadline.max(run.level_began + self.least());
        }
        run.judge.try_level(run.level);
        // What the level before shared is free for others from here on.
        run.turns = self.turns_of(run.level);
        for device in self.level_devices(run.level) {
            run.enter(&device, Stage::Identify);
        }
        Ok(())
    }

    /// A round came to its end without a proof: a person is told, and the levels have their turns anew (S16). Where no device was reached and
    /// nothing was sent, the place among the fences is for others meanwhile, and the node may recover.
    async fn goes_round(&mut self, run: &mut Run, why: String) -> Result<(), Fatal> {
        let reached = std::mem::take(&mut run.round).reached;
        if !self.live.unreached {
            tracing::error!(why, "its levels are spent: they are tried anew until its deadline");
            self.live_mut().unreached = true;
        }
        self.take_back_what_did_not_happen(run).await?;
        run.round.spent = Some(why);
        if self.is_unsent() {
            if !reached {
                self.office.reaches_nothing(&self.plan.id);
            }
            run.last_look = self.first_look(run.level_began);
        } else if !reached {
            run.let_go();
            let left = run.deadline.since(self.now());
            run.is_over = self.outlives_its_offs(left).await?;
        }
        Ok(())
    }

    /// Where this run sent the first off, and each one is known not to have happened, the fence has sent nothing, and the node may recover (S15).
    pub(super) async fn take_back_what_did_not_happen(&mut self, run: &mut Run) -> Result<(), Fatal> {
        let Some(fence) = self.open_fence().filter(|fence| fence.off_sent && run.sent_the_first) else {
            return Ok(());
        };
        let is_known =
            |device: &DeviceId| run.hands.get(device).is_some_and(|hand| !hand.busy && !hand.may_have_taken);
        if !fence.switched_off.iter().all(is_known) {
            return Ok(());
        }
        let effects: Vec<EffectId> = self.open_offs().map(|open| open.id).collect();
        let why = "each one was refused, or did not leave this gateway".to_owned();
        match self.apply(Event::NotSent { effects, why }).await {
            Ok(_) => {
                run.hands.values_mut().for_each(|hand| hand.off = None);
                run.sent_the_first = false;
            }
            Err(Failure::Fatal(error)) => return Err(Fatal(error)),
            // Where the store is away the next round tries it again.
            Err(Failure::Refused(_) | Failure::Unavailable(_)) => {}
        }
        Ok(())
    }

    /// The offs of this fence whose end is not known.
    fn open_offs(&self) -> impl Iterator<Item = &OpenEffect> {
        let generation = self.record().generation;
        let open = self.record().ledger.open().iter();
        open.filter(move |open| open.generation == generation && matches!(open.kind, EffectKind::Off(_)))
    }

    /// Whether the node is well in the boot in which it was before the first off: then the offs, none of which was seen to end, are waited out,
    /// and it ends as recovered once it gave a sign of life after that (S15). True: the run is over, whatever that came to.
    async fn outlives_its_offs(&mut self, left: Duration) -> Result<bool, Fatal> {
        let here = self.place();
        if self.well_as_before().await.is_none() {
            return Ok(false);
        }
        let lives: Option<Vec<Duration>> = self.open_offs().map(|open| self.life_of(open)).collect();
        let sign = self.plan.paces.life_sign;
        let longest = lives.map(|lives| lives.into_iter().max().unwrap_or_default());
        if longest.is_none_or(|longest| longest + sign >= left) {
            return Ok(false);
        }
        let is_open = self.open_offs().next().is_some();
        tracing::info!("the node is well again: what was sent to its devices is waited out");
        if self.drain(|kind| matches!(kind, EffectKind::Off(_))).await? == Drained::Moved {
            return Ok(true);
        }
        // What it said before may be as old as its conditions, which stay for a while after its end.
        let before = self.well_as_before().await;
        let until = self.now() + sign;
        while before.is_some() && self.now() < until {
            if self.pause(here, sign / 20).await? {
                return Ok(true);
            }
            match (self.well_as_before().await, &before) {
                (Some((why, now)), Some((_, before))) if now.beat != before.beat => {
                    let boot = now.boot;
                    self.persist(|| Event::Recovered { boot: boot.clone(), why: why.clone() }).await?;
                    break;
                }
                (None, _) => break,
                _ => {}
            }
        }
        Ok(is_open || self.place() != here)
    }

    /// What says that the node is well in the boot in which it was before the first off, and its newest sign of life.
    async fn well_as_before(&mut self) -> Option<(String, Sign)> {
        let (why, sign) = self.has_recovered().await?;
        let sign = sign.filter(|sign| sign.beat.is_some())?;
        self.open_fence().is_some_and(|fence| fence.may_recover_in(&sign.boot)).then_some((why, sign))
    }

    /// A device was reached: what was told of it is over once it takes an off.
    pub(super) fn reaches(&mut self, run: &mut Run) {
        if !run.round.reached && run.round.spent.is_some() && !run.lent {
            self.office.reaches(&self.plan.id);
        }
        run.round.reached = true;
    }
}
