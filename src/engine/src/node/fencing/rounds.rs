//! Rounds of levels: each level has its turn, and after the last one the first has it again, until the fence's deadline (S16).

use std::time::Duration;

use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::outcome::Reason;

use super::{LONGEST_PAUSE, Run, Stage};
use crate::node::{Fatal, NodeTask};

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
    /// How long the level may answer nothing. Where a person was told, each level has its turn as often as it can: what comes back is reached
    /// soon (S16).
    pub(super) fn silent_share_of(&self, run: &Run) -> Duration {
        let level = self.open_fence().and_then(|fence| fence.topology.level(run.level));
        let slowest = level.into_iter().flat_map(|level| &level.devices).map(|spec| spec.call).max();
        let (slowest, share) = (slowest.unwrap_or_default(), self.parts.rules.silent_share);
        if run.round.spent.is_some() { share.min(slowest + LONGEST_PAUSE) } else { share.max(slowest) }
    }

    /// Whether anything of the level answered in this turn of it.
    pub(super) fn level_answers(&self, run: &Run) -> bool {
        let answers =
            |device: &DeviceId| run.hands.get(device).is_some_and(|hand| hand.answers_since(run.level_began));
        run.judge.level_answers() && self.level_devices(run.level).iter().any(answers)
    }

    /// Whether each device of the level answers, and took an off or refuses each, or is gone from the settings: another turn of it would come to
    /// no more.
    fn is_tried(&self, run: &Run) -> bool {
        let is_tried = |device: &DeviceId| {
            let hand = run.hands.get(device).filter(|hand| hand.answers_since(run.level_began));
            let is_gone = !self.plan.drivers.contains_key(device);
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
        let (first, after) = (fence.first_level, fence.level_after(run.level));
        run.round.is_untried |= !self.is_tried(run);
        if after.is_none() {
            if !run.round.reached {
                self.let_another_try(&why).await?;
            }
            // Of devices that were never reached nothing is known to be wrong but the way to them, and one that takes no off yet may later.
            if !run.round.is_untried || reason != Reason::LevelsSpent {
                return self.give_up(reason, why).await;
            }
        }
        let (spent, next) = (run.level, after.unwrap_or(first));
        if next != spent || run.round.spent.is_none() {
            tracing::warn!(level = spent + 1, why, "the level is spent");
            // What the first round came to is told.
            let told = if run.round.spent.is_some() { String::new() } else { why.clone() };
            self.persist(|| Event::NextLevel { why: told.clone() }).await?;
        }
        run.level = next;
        run.level_began = self.now();
        if after.is_none() {
            self.goes_round(run, why);
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
    fn goes_round(&mut self, run: &mut Run, why: String) {
        let reached = std::mem::take(&mut run.round).reached;
        if !self.live.unreached {
            tracing::error!(why, "its levels are spent: they are tried anew until its deadline");
            self.live_mut().unreached = true;
        }
        run.round.spent = Some(why);
        if self.is_unsent() {
            if !reached {
                self.office.reaches_nothing(&self.plan.id);
            }
            run.last_look = self.first_look(run.level_began);
        }
    }

    /// A device was reached: what was told of it is over once it takes an off.
    pub(super) fn reaches(&mut self, run: &mut Run) {
        if !run.round.reached && run.round.spent.is_some() {
            self.office.reaches(&self.plan.id);
        }
        run.round.reached = true;
    }
}
