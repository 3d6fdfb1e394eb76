//! From the stored intent to the confirmation: identity, hold, look, own off, evidence.

mod hand;
mod hold_again;
mod last_look;
mod prelude;
mod rounds;
mod run;
mod survey;
mod taking;
mod verdict;
mod waits;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::budget::LimitKind;
use picket_core::confirm::Judge;
use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::ledger::EffectKind;
use picket_core::order::{OffOrder, Opened};
use picket_core::outcome::Reason;
use picket_core::record::Fence;
use picket_core::time::BootTime;

use self::hand::{Hand, Stage};
use self::rounds::Round;
use self::run::Run;
use super::drain::Drained;
use super::{Failure, Fatal, NodeTask, sleep_until};

impl NodeTask {
    fn open_fence(&self) -> Option<&Fence> {
        self.record().fence.as_ref()
    }

    pub(super) async fn fencing(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        self.exchanged.clear();
        self.locate_own_host().await;
        if self.is_own_host() {
            return self.leave_own_host().await;
        }
        if self.back_off_a_breach().await? != Drained::Yes
            || self.keep_in_sight().await? != Drained::Yes
            || self.drain(EffectKind::bars_proof).await? != Drained::Yes
        {
            return Ok(());
        }
        if self.place() != here {
            return Ok(());
        }
        // A loss that was seen while the store was away binds the judge.
        Box::pin(self.store_sessions()).await?;
        let term = self.hands.leadership().term();
        let Some(judge) = Judge::new(self.record(), term, &self.parts.rules, self.resumed) else {
            return Ok(());
        };
        let by_name = self.open_fence().and_then(|fence| self.by_name(fence)).cloned();
        let judge = judge.begun(self.sessions.began).by_name(by_name).known_to_say(&self.have_said_whose());
        let mut judge = judge.seen_off_at(self.sessions.seen_off_at);
        for device in self.sessions.take_restarts() {
            // What is stored already binds the judge, or was covered by a person's look since.
            if self.open_fence().is_some_and(|fence| !fence.lost.contains(&device))
                && judge.restarted(&device)
            {
                self.persist(|| Event::Lost { device: device.clone() }).await?;
            }
        }
        if self.live.unreached {
            self.live_mut().unreached = false;
        }
        let now = self.now();
        let level = self.open_fence().map_or(0, |fence| fence.level);
        let mut run = Run {
            judge,
            hands: BTreeMap::new(),
            backoff: self.plan.paces.device,
            retries: self.plan.retries.clone(),
            doing: FuturesUnordered::new(),
            last_look: self.first_look(now),
            surveys: self.surveys(now),
            turns: self.turns_of(level),
            level,
            level_began: now,
            deadline: now + self.time_left(),
            restarted: false,
            round: Round::default(),
            lent: false,
            silent: BTreeSet::new(),
            sent_the_first: false,
            is_over: false,
            away: None,
            barred: None,
        };
        loop {
            run.barred = None;
            let mut bar = self.barred();
            if bar.as_ref().is_some_and(|bar| bar.kind == LimitKind::Quorum) {
                // By the members that answer now: it is waited for, and nobody else asks them.
                self.count_members().await;
                bar = self.barred();
            }
            let bar = bar.map(|bar| (bar.reason(), bar.detail()));
            if let Some((reason, why)) =
                bar.or_else(|| Some((Reason::Withdrawn, self.nobody_may_any_more()?)))
            {
                // What a person wants, or was told, is not ended: it waits.
                if self.is_undecided() {
                    self.persist(|| Event::Bar { reason, why: why.clone() }).await?;
                    return Ok(());
                }
                run.barred = Some(why);
            }
            if self.stands_aside(&mut run) {
                self.stay_in_touch(&mut run);
            } else {
                self.take_turns(&mut run);
                self.begin_surveys(&mut run);
                if run.turns.are_here() {
                    self.send_due(&mut run).await?;
                }
            }
            if self.place() != here {
                return Ok(());
            }
            let now = self.now();
            let wake = self.next_wake(&run, now);
            self.tell_wait(&run, now);
            tokio::select! {
                biased;
                Some((device, did)) = run.doing.next() => {
                    run.hand(&device).ended();
                    self.take(&mut run, device, did).await?;
                    self.store_sessions().await?;
                }
                answer = run.surveys.next() => run.surveys.heard(answer),
                Some(look) = run.last_look.asking.next() => self.heard_of(&mut run, look).await?,
                () = run.turns.next() => self.turn_came(&mut run),
                // After all answers: a mailbox that never empties would keep them unread, and no off would be sent.
                Some(command) = self.mailbox.recv() => {
                    let asks_devices = command.asks_devices_in_a_fence();
                    if asks_devices {
                        run.let_go();
                    }
                    let deadline = self.open_fence().map(|fence| fence.deadline);
                    self.command(command).await?;
                    if asks_devices && self.place() == here {
                        self.hear_of_an_on(&mut run, now).await?;
                    }
                    if self.open_fence().map(|fence| fence.deadline) > deadline {
                        // Somebody who joined has longer.
                        run.deadline = run.deadline.max(self.now() + self.time_left());
                    }
                    if self.is_a_person_s() {
                        run.last_look.over();
                    }
                }
                () = sleep_until(now, wake) => {}
            }
            if self.place() != here {
                return Ok(());
            }
            self.judge(&mut run).await?;
            if self.place() != here || run.is_over {
                return Ok(());
            }
        }
    }

    fn level_devices(&self, level: usize) -> Vec<DeviceId> {
        let level = self.open_fence().and_then(|fence| fence.topology.level(level));
        level.map(|level| level.devices.iter().map(|spec| spec.id.clone()).collect()).unwrap_or_default()
    }

    /// Begins every call that is due.
    async fn send_due(&mut self, run: &mut Run) -> Result<(), Fatal> {
        let now = self.now();
        for device in self.level_devices(run.level) {
            let (lets_hold, life) = (run.last_look.lets_hold(), run.judge.life(&device));
            let hand = run.hand(&device);
            if hand.busy || hand.not_before > now {
                continue;
            }
            let doing = match hand.stage {
                Stage::Identify => self.hands.identify(&device),
                Stage::Probe(_) => self.hands.read(&device),
                Stage::Inspect if !lets_hold => continue,
                Stage::Inspect => self.hands.inspect(&device, life),
                Stage::Live => continue,
            };
            hand.asks();
            run.doing.push(doing);
        }
        self.send_offs(run, now).await?;
        for (device, at) in run.judge.readings_due() {
            let in_level = self.level_devices(run.level).contains(&device);
            let hand = run.hand(&device);
            let live = hand.stage == Stage::Live || !in_level;
            if live && !hand.busy && hand.not_before <= now && at <= now {
                hand.asks();
                let doing = match self.hold_comes_first(run, &device) {
                    true => self.hands.inspect(&device, run.judge.life(&device)),
                    false => self.hands.read(&device),
                };
                run.doing.push(doing);
            }
        }
        self.read_holds(run, now);
        self.ask_silent_levels(run, now);
        self.stay_in_touch(run);
        Ok(())
    }

    async fn send_offs(&mut self, run: &mut Run, now: BootTime) -> Result<(), Fatal> {
        let ready = |run: &mut Run, device: &DeviceId| {
            let hand = run.hand(device);
            hand.stage == Stage::Live && !hand.busy && hand.not_before.max(hand.off_not_before) <= now
        };
        let due: Vec<DeviceId> =
            run.judge.wants_off().into_iter().filter(|device| ready(run, device)).collect();
        let may_go = due.is_empty() || run.surveys.let_off(now) && run.last_look.lets_off(now);
        if !may_go {
            return Ok(());
        }
        // An off goes in the session that is stored with it; where another one took its place, or one began since, it is stored anew.
        let is_stored = |off: &Arc<OffOrder>| self.hands.session(off.device()).as_deref() == off.session();
        let new: Vec<DeviceId> = due
            .iter()
            .filter(|device| !run.hand(device).off.as_ref().is_some_and(is_stored))
            .cloned()
            .collect();
        if !new.is_empty() {
            // What a restore holds is an admin's, and a first off of it that is stored goes (S21).
            let is_first = self.is_unsent() && self.record().restored.is_none();
            if is_first {
                // Members fall silent while a level waits for its turn (K11).
                self.count_members().await;
                if self.barred().is_some() || self.nobody_may_any_more().is_some() {
                    return Ok(());
                }
            }
            // Where the store is away it is decided anew once it is back: the last look is no older than the off (S15).
            let off = self
                .in_sessions(Event::OffIntent { devices: new.clone(), identified: run.judge.identities() });
            let off = self.after_surveys(run, off);
            let off = match run.last_look.boot().filter(|_| is_first) {
                Some(boot) => Event::After { found: vec![Event::Boot(boot)], event: Box::new(off) },
                None => off,
            };
            let opened = match self.apply(off).await {
                Ok(opened) => opened,
                Err(Failure::Fatal(error)) => return Err(Fatal(error)),
                Err(Failure::Refused(refused)) => {
                    if run.surveys.refused(&refused.to_string()) {
                        tracing::warn!(%refused, "what is attached before the off is not stored");
                    } else {
                        tracing::error!(%refused, "an off of our own was refused");
                    }
                    new.iter().for_each(|device| run.failed(device, now));
                    return Ok(());
                }
                Err(Failure::Unavailable(why)) => {
                    run.away = Some(why);
                    run.last_look.put_off();
                    let again = now + run.backoff.first;
                    new.iter().for_each(|device| run.hand(device).not_before = again);
                    return Ok(());
                }
            };
            run.away = None;
            run.sent_the_first |= is_first;
            run.surveys.stored();
            let offs = opened
                .into_iter()
                .filter_map(|one| if let Opened::Off(off) = one { Some(off) } else { None });
            let offs: Vec<OffOrder> = offs.collect();
            let is_late = is_first && self.now() >= now + self.plan.paces.liveness_serves;
            if is_late && !self.is_decided_still(run, &offs).await? {
                return Ok(());
            }
            run.last_look.over();
            for off in offs {
                let device = off.device().clone();
                run.hand(&device).off = Some(Arc::new(off));
            }
        }
        for device in due {
            let (look_serves_until, life) = (run.judge.look_serves_until(&device), run.judge.life(&device));
            let hand = run.hand(&device);
            if let Some(order) = hand.off.clone() {
                hand.commands(now);
                run.doing.push(self.hands.off(order, life, look_serves_until));
            }
        }
        Ok(())
    }
}
