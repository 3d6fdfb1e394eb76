//! From the stored intent to the confirmation: identity, hold, look, own off, evidence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::confirm::{Judge, Verdict};
use picket_core::device::{Identity, IdentityMatch};
use picket_core::event::Event;
use picket_core::ground::ReleaseGround;
use picket_core::ids::{DeviceId, EffectId};
use picket_core::ledger::EffectKind;
use picket_core::order::{OffOrder, Opened};
use picket_core::outcome::Reason;
use picket_core::power::Power;
use picket_core::record::{Cause, Fence, HoldState};
use picket_core::time::BootTime;
use picket_driver::{Effect, ErrorKind, HoldReport};

use super::drain::Drained;
use super::hands::{Did, Doing};
use super::{Failure, Fatal, Ground, NodeTask, sleep_until};

/// How far a device of the level is on its way to the off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Identify,
    Inspect,
    Live,
}

/// What this run knows of one device.
#[derive(Debug)]
struct Hand {
    stage: Stage,
    busy: bool,
    not_before: BootTime,
    pause: Duration,
    off: Option<Arc<OffOrder>>,
    /// Why the last off was not taken; `None` once one was.
    refused: Option<String>,
}

/// One run: from the phase's beginning until it is left.
struct Run {
    judge: Judge,
    hands: BTreeMap<DeviceId, Hand>,
    doing: FuturesUnordered<Doing>,
    level: usize,
    level_began: BootTime,
    deadline: BootTime,
    restarted: bool,
}

const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Run {
    fn hand(&mut self, device: &DeviceId) -> &mut Hand {
        self.hands.entry(device.clone()).or_insert(Hand {
            stage: Stage::Identify,
            busy: false,
            not_before: BootTime::default(),
            pause: PAUSE,
            off: None,
            refused: None,
        })
    }

    /// Drops the calls under way: nothing goes on with them while a command asks the same devices, which would wait for them
    /// in vain. What was sent may have been taken or not.
    fn let_go(&mut self) {
        self.doing.clear();
        for (device, hand) in self.hands.iter_mut().filter(|(_, hand)| hand.busy) {
            hand.busy = false;
            self.judge.off_failed(device);
        }
    }

    fn failed(&mut self, device: &DeviceId, now: BootTime) {
        let hand = self.hand(device);
        hand.not_before = now + hand.pause;
        hand.pause = (hand.pause * 2).min(LONGEST_PAUSE);
    }
}

impl NodeTask {
    fn open_fence(&self) -> Option<&Fence> {
        self.record().fence.as_ref()
    }

    pub(super) async fn fencing(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        if self.back_off_a_breach().await? != Drained::Yes
            || self.drain(EffectKind::bars_proof).await? != Drained::Yes
        {
            return Ok(());
        }
        if self.place() != here {
            return Ok(());
        }
        let term = self.hands.leadership().term();
        let Some(judge) = Judge::new(self.record(), term, &self.parts.rules, self.resumed) else {
            return Ok(());
        };
        let now = self.now();
        let (level, deadline) =
            self.open_fence().map_or((0, Duration::ZERO), |fence| (fence.level, fence.deadline));
        let mut run = Run {
            judge,
            hands: BTreeMap::new(),
            doing: FuturesUnordered::new(),
            level,
            level_began: now,
            deadline: now + deadline,
            restarted: false,
        };
        loop {
            if let Some(why) = self.objection().await {
                self.persist(|| Event::Abort { why: why.clone() }).await?;
                return Ok(());
            }
            self.send_due(&mut run).await?;
            if self.place() != here {
                return Ok(());
            }
            let now = self.now();
            let wake = self.next_wake(&run, now);
            self.tell_wait(&run, now);
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => {
                    if command.asks_devices() {
                        run.let_go();
                    }
                    self.command(command).await?;
                }
                Some((device, did)) = run.doing.next() => {
                    run.hand(&device).busy = false;
                    self.take(&mut run, device, did).await?;
                }
                () = sleep_until(now, wake) => {}
            }
            if self.place() != here {
                return Ok(());
            }
            self.judge(&mut run).await?;
            if self.place() != here {
                return Ok(());
            }
        }
    }

    /// In a breach the first off is sent at once; the following ones back off, and never stop.
    async fn back_off_a_breach(&mut self) -> Result<Drained, Fatal> {
        let record = self.record();
        let again = record.breaches.saturating_sub(1);
        if self.open_fence().is_none_or(|fence| fence.cause != Cause::Breach) || again == 0 || self.resumed {
            return Ok(Drained::Yes);
        }
        let here = self.place();
        let pause = Duration::from_secs(1 << again.min(6));
        let until = self.now() + pause;
        self.wait_for(format!("breach {}: the next off", again + 1), "picket", Some(pause));
        loop {
            let now = self.now();
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => self.command(command).await?,
                () = sleep_until(now, until) => return Ok(Drained::Yes),
            }
            if self.place() != here {
                return Ok(Drained::Moved);
            }
        }
    }

    /// The last look (S15): asked before the hold and before the first off, never once an off was sent.
    async fn objection(&self) -> Option<String> {
        let undecided = self.open_fence().is_some_and(|fence| !fence.off_sent && fence.cause == Cause::Asked);
        if undecided { self.parts.last_look.objection(&self.record().node).await } else { None }
    }

    fn level_devices(&self, level: usize) -> Vec<DeviceId> {
        let level = self.open_fence().and_then(|fence| fence.topology.level(level));
        level.map(|level| level.devices.iter().map(|spec| spec.id.clone()).collect()).unwrap_or_default()
    }

    /// Begins every call that is due.
    async fn send_due(&mut self, run: &mut Run) -> Result<(), Fatal> {
        let now = self.now();
        for device in self.level_devices(run.level) {
            let hand = run.hand(&device);
            if hand.busy || hand.not_before > now {
                continue;
            }
            let doing = match hand.stage {
                Stage::Identify => self.hands.identify(&device),
                Stage::Inspect => self.hands.inspect(&device),
                Stage::Live => continue,
            };
            hand.busy = true;
            run.doing.push(doing);
        }
        self.send_offs(run, now).await?;
        for (device, at) in run.judge.readings_due() {
            let in_level = self.level_devices(run.level).contains(&device);
            let hand = run.hand(&device);
            let live = hand.stage == Stage::Live || !in_level;
            if live && !hand.busy && hand.not_before <= now && at <= now {
                hand.busy = true;
                run.doing.push(self.hands.read(&device));
            }
        }
        Ok(())
    }

    async fn send_offs(&mut self, run: &mut Run, now: BootTime) -> Result<(), Fatal> {
        let ready = |run: &mut Run, device: &DeviceId| {
            let hand = run.hand(device);
            hand.stage == Stage::Live && !hand.busy && hand.not_before <= now
        };
        let due: Vec<DeviceId> =
            run.judge.wants_off().into_iter().filter(|device| ready(run, device)).collect();
        let new: Vec<DeviceId> =
            due.iter().filter(|device| run.hand(device).off.is_none()).cloned().collect();
        if !new.is_empty() {
            let opened = self.persist(|| Event::OffIntent { devices: new.clone() }).await?;
            for one in opened {
                if let Opened::Off(order) = one {
                    let device = order.device().clone();
                    run.hand(&device).off = Some(Arc::new(order));
                }
            }
        }
        for device in due {
            let hand = run.hand(&device);
            if let Some(order) = hand.off.clone() {
                hand.busy = true;
                run.doing.push(self.hands.off(order));
            }
        }
        Ok(())
    }

    fn next_wake(&self, run: &Run, now: BootTime) -> BootTime {
        let rules = &self.parts.rules;
        let idle = |device: &DeviceId| run.hands.get(device).is_none_or(|hand| !hand.busy);
        let readings =
            run.judge.readings_due().into_iter().filter(|(device, _)| idle(device)).map(|(_, at)| at);
        let retries = run.hands.values().filter(|hand| !hand.busy).map(|hand| hand.not_before);
        let shares =
            [run.level_began + rules.level_share, run.level_began + rules.silent_share, run.deadline];
        let soonest = readings.chain(retries).chain(shares).filter(|at| *at > now).min();
        soonest.unwrap_or(now + Duration::from_secs(1))
    }

    fn tell_wait(&mut self, run: &Run, now: BootTime) {
        let devices: Vec<String> = self.level_devices(run.level).iter().map(ToString::to_string).collect();
        let share = run.level_began + self.parts.rules.level_share;
        let until = share.min(run.deadline);
        let word = if self.open_fence().is_some_and(|fence| fence.off_sent) { "Off" } else { "an answer" };
        self.wait_for(
            format!("{word} of level {}", run.level + 1),
            devices.join(", "),
            Some(until.since(now)),
        );
    }

    /// Takes what a call came to.
    async fn take(&mut self, run: &mut Run, device: DeviceId, did: Did) -> Result<(), Fatal> {
        let now = self.now();
        self.show(&device, &did);
        match did {
            Did::Identified(Err(error)) if error.kind != ErrorKind::Unsupported => {
                tracing::warn!(%device, %error, "identity");
                run.failed(&device, now);
            }
            Did::Identified(said) => self.identified(run, device, said.unwrap_or_default()).await?,
            Did::Inspected(Err(error)) if error.kind != ErrorKind::Unsupported => {
                tracing::warn!(%device, %error, "hold");
                run.failed(&device, now);
            }
            Did::Inspected(found) => {
                run.judge.contact(&device, None);
                let found = found.unwrap_or_default();
                if found.is_empty() {
                    let report = HoldReport { detail: "not supported".to_owned(), ..HoldReport::default() };
                    self.held(run, device, None, report).await?;
                } else {
                    let found = BTreeMap::from([(device, found)]);
                    for one in self.persist(|| Event::HoldIntent { found: found.clone() }).await? {
                        if let Opened::Hold(order) = one {
                            run.hand(&order.device().clone()).busy = true;
                            run.doing.push(self.hands.hold(order));
                        }
                    }
                }
            }
            Did::Held(effect, Ok(report)) => self.held(run, device, Some(effect), report).await?,
            Did::Held(effect, Err(error)) => {
                tracing::warn!(%device, %error, "hold");
                let known = (error.effect == Effect::DidNotHappen).then_some(effect);
                let report = HoldReport { engaged: Vec::new(), detail: error.to_string() };
                self.held(run, device, known, report).await?;
            }
            Did::Off(effect, result) => {
                self.counted_from.insert(effect, now);
                match result {
                    Ok(taken) => {
                        tracing::info!(%device, already = taken.already, "the off was taken");
                        run.hand(&device).refused = None;
                        let lost =
                            run.judge.off_taken(&device, taken.answered_at, taken.epoch, taken.already);
                        self.note_loss(run, device, lost).await?;
                    }
                    Err(error) => {
                        tracing::warn!(%device, %error, "off");
                        run.hand(&device).refused = Some(error.to_string());
                        run.judge.off_failed(&device);
                        run.failed(&device, now);
                    }
                }
            }
            Did::Read { result: Ok(reading), .. } => {
                run.hand(&device).pause = PAUSE;
                let lost = run.judge.reading(&device, &reading, &self.record().ledger);
                self.note_loss(run, device, lost).await?;
            }
            Did::Read { asked_at, result: Err(error) } => {
                tracing::debug!(%device, %error, "no reading");
                run.judge.silence(&device, asked_at, now);
                run.failed(&device, now);
            }
            Did::Unheld(..) | Did::On(..) | Did::Quiesced(..) => {}
        }
        Ok(())
    }

    async fn identified(&mut self, run: &mut Run, device: DeviceId, said: Identity) -> Result<(), Fatal> {
        run.judge.contact(&device, None);
        let expected = self.expected_identity(&device);
        let compared = match expected.compare(&said) {
            // What another node's device says of itself too identifies neither.
            IdentityMatch::Match if self.parts.twins.is_twin(&self.plan.id, &said) => IdentityMatch::Unknown,
            compared => compared,
        };
        if compared == IdentityMatch::Mismatch {
            let (says, wanted) = (said.words(), expected.words());
            let detail =
                format!("{device} says it controls {says}, expected {wanted}: nothing was sent to it");
            return self.give_up(Reason::IdentityMismatch, detail).await;
        }
        run.judge.identified(&device, compared);
        let hand = run.hand(&device);
        hand.stage = Stage::Inspect;
        hand.pause = PAUSE;
        Ok(())
    }

    /// What the device must say it is: from the settings as they stood, else learned at an earlier check (S13).
    pub(super) fn expected_identity(&self, device: &DeviceId) -> Identity {
        let topology = self.open_fence().map_or(&self.plan.topology, |fence| &fence.topology);
        let set = topology.device(device).map(|spec| spec.identity.clone()).unwrap_or_default();
        if set.is_empty() { self.record().learned.get(device).cloned().unwrap_or_default() } else { set }
    }

    async fn held(
        &mut self,
        run: &mut Run,
        device: DeviceId,
        known: Option<EffectId>,
        report: HoldReport,
    ) -> Result<(), Fatal> {
        run.judge.held(&device, &report.engaged);
        run.hand(&device).stage = Stage::Live;
        run.hand(&device).pause = PAUSE;
        let result = HoldState { engaged: report.engaged, detail: report.detail, ..HoldState::default() };
        let results = vec![(device, result)];
        let known: Vec<EffectId> = known.into_iter().collect();
        self.persist(|| Event::HoldEnded { results: results.clone(), known: known.clone() }).await?;
        Ok(())
    }

    /// A loss is stored before anything else: it binds whoever leads next. The next off waits for the store.
    async fn note_loss(&mut self, run: &mut Run, device: DeviceId, lost: bool) -> Result<(), Fatal> {
        if lost {
            tracing::warn!(%device, "its session was lost within the fence");
            run.hand(&device).off = None;
            self.persist(|| Event::Lost { device: device.clone() }).await?;
        }
        Ok(())
    }

    /// Asks the judge, and does what follows.
    async fn judge(&mut self, run: &mut Run) -> Result<(), Fatal> {
        let now = self.now();
        match run.judge.verdict(&self.record().ledger, now, self.wall()) {
            Verdict::Confirmed(proof) => {
                let back = self.wall().millis().saturating_sub(proof.evidence().off_since.millis());
                let dark_since =
                    BootTime::from_boot(now.since_boot().saturating_sub(Duration::from_millis(back)));
                let grade = proof.evidence().grade;
                match self.apply(Event::Confirmed(&proof)).await {
                    Ok(_) => {
                        tracing::info!(?grade, "confirmed off");
                        self.ground =
                            Some(Arc::new(Ground { ground: ReleaseGround::Confirmed(proof), dark_since }));
                        self.live.proven = true;
                        self.publish();
                    }
                    Err(Failure::Fatal(error)) => return Err(Fatal(error)),
                    Err(Failure::Refused(refused)) => {
                        tracing::error!(%refused, "a confirmation was refused");
                        run.hands.values_mut().for_each(|hand| hand.not_before = now + LONGEST_PAUSE);
                    }
                    // The store is away: the readings go on, and so the proof can be made again.
                    Err(Failure::Unavailable(_)) => {
                        run.hands.values_mut().for_each(|hand| hand.not_before = now + PAUSE);
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
                    format!("{} restarted within the fence", names.join(", ")),
                )
                .await
            }
            Verdict::GradeTooLow(grade) => {
                let detail = format!("the evidence would be {grade:?}, less than was asked for");
                self.level_spent(run, Reason::GradeTooLow, detail).await
            }
            Verdict::Open => self.shares(run, now).await,
        }
    }

    async fn shares(&mut self, run: &mut Run, now: BootTime) -> Result<(), Fatal> {
        let rules = self.parts.rules.clone();
        let spent = now.since(run.level_began);
        let level = self.open_fence().and_then(|fence| fence.topology.level(run.level));
        let slowest = level.into_iter().flat_map(|level| &level.devices).map(|spec| spec.call).max();
        let silent_share = rules.silent_share.max(slowest.unwrap_or_default());
        if now >= run.deadline {
            let detail = format!(
                "not confirmed off within {:?}",
                self.open_fence().map(|f| f.deadline).unwrap_or_default()
            );
            return self.give_up(Reason::Deadline, detail).await;
        }
        let reason = if run.restarted { Reason::BmcRestarted } else { Reason::LevelsSpent };
        if spent >= silent_share && !run.judge.level_answers() {
            let seen = self.level_words(run);
            return self.level_spent(run, reason, format!("no answer for {silent_share:?}: {seen}")).await;
        }
        if spent >= rules.level_share {
            let seen = self.level_words(run);
            return self
                .level_spent(run, reason, format!("not off within {:?}: {seen}", rules.level_share))
                .await;
        }
        Ok(())
    }

    fn level_words(&self, run: &Run) -> String {
        let word = |id: &DeviceId| {
            let live = self.live.devices.get(id);
            let said = match live.and_then(|live| live.power) {
                Some((Power::On, _)) => "on",
                Some((Power::Off, _)) => "off",
                Some((Power::Unknown, _)) | None => "unknown",
            };
            let fault = live.and_then(|live| live.fault.as_ref()).map(|(fault, _)| fault);
            let refused = run.hands.get(id).and_then(|hand| hand.refused.as_ref());
            match (refused, fault) {
                (Some(refused), _) => format!("{id} {said} (the off: {refused})"),
                (None, Some(fault)) => format!("{id} {said} ({fault})"),
                (None, None) => format!("{id} {said}"),
            }
        };
        self.level_devices(run.level).iter().map(word).collect::<Vec<_>>().join(", ")
    }

    async fn level_spent(&mut self, run: &mut Run, reason: Reason, why: String) -> Result<(), Fatal> {
        let levels = self.open_fence().map_or(0, |fence| fence.topology.levels().len());
        if run.level + 1 >= levels {
            return self.give_up(reason, why).await;
        }
        tracing::warn!(level = run.level + 1, why, "the level is spent");
        self.persist(|| Event::NextLevel { why: why.clone() }).await?;
        run.level += 1;
        run.level_began = self.now();
        run.judge.try_level(run.level);
        for device in self.level_devices(run.level) {
            run.hand(&device).stage = Stage::Identify;
        }
        Ok(())
    }
}
