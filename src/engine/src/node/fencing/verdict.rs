//! What the judge says of the readings, and when a level has had its share.

use std::sync::Arc;
use std::time::Duration;

use picket_core::confirm::Verdict;
use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::ground::{LOOK_LIFE, ReleaseGround};
use picket_core::outcome::Reason;
use picket_core::time::{BootTime, written};

use super::Run;
use crate::node::{Failure, Fatal, Ground, NodeTask};

impl NodeTask {
    /// Asks the judge, and does what follows.
    pub(super) async fn judge(&mut self, run: &mut Run) -> Result<(), Fatal> {
        let now = self.now();
        // What its releases know of the node may be known better by now.
        let by_name = self.open_fence().and_then(|fence| self.by_name(fence)).cloned();
        run.judge.knows_by_name(by_name);
        match run.judge.verdict(&self.record().ledger, now, self.wall()) {
            Verdict::Confirmed(proof) => {
                let back = self.wall().millis().saturating_sub(proof.evidence().off_since.millis());
                let dark_since =
                    BootTime::from_boot(now.since_boot().saturating_sub(Duration::from_millis(back)));
                let grade = proof.evidence().grade;
                let fresh_until = run.judge.fresh_until().min(now + LOOK_LIFE);
                // While the store hangs the same devices are asked, and would wait for calls that nobody goes on with.
                run.let_go();
                let applied = self.apply_by_readings(Event::Confirmed(&proof), fresh_until).await;
                self.lingering.clear();
                let heard = std::mem::take(&mut self.readings.heard);
                match applied {
                    Ok(_) => {
                        tracing::info!(?grade, "the node is confirmed off");
                        if self.was_found_on(heard) {
                            return Ok(());
                        }
                        self.ground =
                            Some(Arc::new(Ground { ground: ReleaseGround::Confirmed(proof), dark_since }));
                        self.live_mut().proven = self.is_proven_now();
                        self.note_fall(dark_since);
                        self.publish();
                    }
                    Err(Failure::Fatal(error)) => return Err(Fatal(error)),
                    Err(Failure::Refused(refused)) => {
                        tracing::error!(%refused, "a confirmation was refused");
                        let again = now + run.backoff.longest;
                        run.hands.values_mut().for_each(|hand| hand.not_before = again);
                        self.hear_again(run, heard).await?;
                    }
                    // The store is away: the readings go on, and so the proof can be made again.
                    Err(Failure::Unavailable(_)) => {
                        let again = now + run.backoff.first;
                        run.hands.values_mut().for_each(|hand| hand.not_before = again);
                        self.hear_again(run, heard).await?;
                    }
                }
                Ok(())
            }
            Verdict::Contradiction(words) => self.give_up(Reason::Contradiction, words).await,
            Verdict::Restarted(devices) => {
                run.restarted = true;
                let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
                self.level_spent(
                    run,
                    Reason::BmcRestarted,
                    format!(
                        "{} restarted within the fence, or did not answer for as long as that takes",
                        names.join(", ")
                    ),
                )
                .await
            }
            Verdict::GradeTooLow { grade, lowered_by, may_rise } => {
                // A cloud may have done what it was told, and not have noted that yet.
                if may_rise && now < run.deadline && now.since(run.level_began) < self.share_of(run.level) {
                    return Ok(());
                }
                let why = if lowered_by.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", lowered_by.join("; "))
                };
                let detail = format!("the evidence would be {grade:?}{why}, less than was asked for");
                self.level_spent(run, Reason::GradeTooLow, detail).await
            }
            Verdict::Open => self.shares(run, now).await,
        }
    }

    async fn shares(&mut self, run: &mut Run, now: BootTime) -> Result<(), Fatal> {
        if run.last_look.waits_for_its_word().is_some() {
            return Ok(());
        }
        if let Some(why) = &run.barred {
            if now < run.deadline {
                return Ok(());
            }
            let detail = format!("no off before its deadline: {why}");
            return self.give_up(Reason::Deadline, detail).await;
        }
        let spent = now.since(run.level_began);
        if now >= run.deadline && !run.turns.are_here() {
            let detail = "its turn at what its devices share with others did not come before its deadline";
            return self.give_up(Reason::Deadline, detail.to_owned()).await;
        }
        if !run.turns.are_here() {
            if self.gives_way(run, now) {
                let why = format!("its turn at what its devices share did not come within {spent:?}");
                return self.level_spent(run, Reason::LevelsSpent, why).await;
            }
            return Ok(());
        }
        if now >= run.deadline && run.hands.values().all(|hand| hand.reached_at.is_none()) {
            let detail = format!("no answer before its deadline: {}", self.words_of_all(run));
            return self.give_up(Reason::LevelsSpent, detail).await;
        }
        if now >= run.deadline {
            let deadline = self.open_fence().map(|fence| written(fence.deadline)).unwrap_or_default();
            let detail = format!("not confirmed off within {deadline}: {}", self.words_of_all(run));
            let reason = if run.round.spent.is_some() { Reason::LevelsSpent } else { Reason::Deadline };
            self.take_back_what_did_not_happen(run).await?;
            return self.give_up(reason, detail).await;
        }
        if self.parent_is_at_work(run.level) {
            let reserved = self.reserved(run.level);
            if reserved.is_zero() || now + reserved < run.deadline {
                // Its own levels have their shares there.
                run.level_began = now;
                return Ok(());
            }
            let why =
                "its parent is still being fenced, and the levels that come after it would have no time left";
            return self.level_spent(run, Reason::LevelsSpent, why.to_owned()).await;
        }
        let reason = if run.restarted { Reason::BmcRestarted } else { Reason::LevelsSpent };
        if let Some(why) = self.who_is_back(run) {
            return self.level_spent(run, Reason::LevelsSpent, why).await;
        }
        let silent_share = self.silent_share_of(run);
        if spent >= silent_share && !self.level_answers(run) {
            let since = match run.round.spent {
                None => format!(" for {}", written(silent_share)),
                Some(_) => String::new(),
            };
            let why = format!("no answer{since}: {}", self.level_words(run));
            return self.level_spent(run, reason, why).await;
        }
        let share = self.share_of(run.level);
        if spent >= share && !self.asks_hosts_once_more(run, now) {
            let why = format!("not off within {}: {}", written(share), self.level_words(run));
            return self.level_spent(run, reason, why).await;
        }
        Ok(())
    }

    /// Whether all of the level is off to the end of its long window, and silent host devices elsewhere are still being asked about that: one call
    /// of each is under way, and one more follows.
    fn asks_hosts_once_more(&self, run: &Run, now: BootTime) -> bool {
        let slowest = self.open_fence().and_then(|fence| fence.topology.hosts().map(|spec| spec.call).max());
        run.judge.sealed_at().zip(slowest).is_some_and(|(at, slowest)| now < at + slowest * 3)
    }

    /// What the levels that come after that one want of the time that is left.
    pub(super) fn reserved(&self, level: usize) -> Duration {
        let Some(fence) = self.open_fence() else { return Duration::ZERO };
        let left = fence.levels_after(level).map(|level| self.share_of(level));
        left.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// How much of the fence's time that level has.
    pub(super) fn share_of(&self, level: usize) -> Duration {
        let rules = &self.parts.rules;
        let Some(fence) = self.open_fence() else { return rules.level_share };
        let Some(level) = fence.topology.level(level) else { return rules.level_share };
        let share = rules.share_of(level);
        // A device that restarted is believed after longer than any other proof takes, where it is believed at all.
        let is_lost = level.devices.iter().any(|spec| fence.lost.contains(&spec.id));
        if is_lost { share.max(self.least()) } else { share }
    }

    /// Whether a level whose turn has not come gives way to the next: what it shares answers nobody, and others wait there one after
    /// the other for that to be told; or the next ones would have no time left.
    fn gives_way(&self, run: &Run, now: BootTime) -> bool {
        let reserved = self.reserved(run.level);
        let rules = &self.parts.rules;
        let is_dead = || run.turns.waits_for_silence(rules.silent_share);
        let dead = now.since(run.level_began) >= self.share_of(run.level) && is_dead();
        !reserved.is_zero() && (dead || now + reserved >= run.deadline)
    }

    /// Whether the level waits for its parent, and that one is being fenced.
    fn parent_is_at_work(&self, level: usize) -> bool {
        let level = self.open_fence().and_then(|fence| fence.topology.level(level));
        let waits =
            level.is_some_and(|level| level.devices.iter().any(|spec| spec.class == DeviceClass::Parent));
        let is_fencing = |node| self.office.standing(node).is_some_and(|standing| standing.is_fencing);
        waits && self.office.kept_by(&self.plan.id).iter().any(is_fencing)
    }
}
