//! What each call to a device came to.

use std::collections::BTreeMap;

use picket_core::event::Event;
use picket_core::ground::Look;
use picket_core::ids::DeviceId;
use picket_core::order::Opened;
use picket_core::outcome::Reason;
use picket_core::power::{Power, Reading};
use picket_core::time::BootTime;
use picket_driver::{DriverError, Effect, ErrorKind, HoldReport, Identified, Refusal};

use super::Run;
use super::hand::{Question, Stage};
use crate::node::hands::Did;
use crate::node::whose::is_another_s;
use crate::node::{Fatal, NodeTask};

impl NodeTask {
    /// Takes what a call came to.
    pub(super) async fn take(&mut self, run: &mut Run, device: DeviceId, did: Did) -> Result<(), Fatal> {
        let now = self.now();
        self.show(&device, &did);
        if self.sessions.takes_restart(&device) {
            let lost = run.judge.restarted(&device);
            self.note_loss(run, device.clone(), lost).await?;
        }
        if did.reached() {
            self.reaches(run);
            run.hand(&device).reached_at = Some(now);
            let driver = self.plan.drivers.get(&device);
            let in_session = driver.is_some_and(|driver| {
                let is_there = !driver.names_sessions() || driver.session().is_some();
                driver.epoch_is_a_session() && !driver.is_cold() && is_there
            });
            if did.error().is_none() || in_session {
                run.hand(&device).answered_at = Some(now);
            }
        }
        match (&did, did.error()) {
            // A hold that is refused keeps no off from it.
            (Did::Held { .. } | Did::Inspected { .. }, _) | (Did::Read { .. }, None) => {}
            (_, error) => {
                run.hand(&device).refuses_for_good = error.is_some_and(DriverError::waits_for_a_person);
            }
        }
        match self.asks_again_whose(&device, did) {
            Did::Identified { result: Err(error), .. }
                if error.kind != ErrorKind::Unsupported || self.is_to_say_whose(&device) =>
            {
                tracing::warn!(%device, %error, "the device did not tell its identity");
                run.failed_by(&device, now, &error);
                if run.leaves_unanswered(&device, Question::Identity, &error) {
                    self.identified(run, device, Identified::default()).await?;
                }
            }
            Did::Identified { asked_at, result: said } => {
                let said = said.unwrap_or_default();
                if !said.identity.is_empty() {
                    self.heard(run, &device, asked_at).await?;
                }
                self.identified(run, device, said).await?;
            }
            Did::Inspected { asked_at, result } if run.hand(&device).stage == Stage::Live => {
                let answered = result.as_ref().is_ok_and(|found| !found.is_empty());
                // One that was not answered, or late, is not asked between readings again: each time the proof would begin anew.
                run.hand(&device).hold_took = answered.then(|| now.since(asked_at));
                if answered {
                    self.heard(run, &device, asked_at).await?;
                }
                self.hold_was_read(run, device, result).await?;
            }
            Did::Inspected { result: Err(error), .. } if error.kind != ErrorKind::Unsupported => {
                tracing::warn!(%device, %error, "the device did not tell what a hold would change");
                run.failed_by(&device, now, &error);
                if error.kind == ErrorKind::Unreachable {
                    // Perhaps as its session is a new one.
                    run.enter(&device, Stage::Identify);
                }
                if run.leaves_unanswered(&device, Question::Hold, &error) {
                    // A BMC that drops a question which it does not know must not keep the off from it.
                    let report = HoldReport { detail: "not answered".to_owned(), ..HoldReport::default() };
                    self.held(run, device, None, report).await?;
                }
            }
            Did::Inspected { asked_at, result: found } => {
                run.judge.contact(&device, None, self.now());
                let found = found.unwrap_or_default();
                if !found.is_empty() {
                    run.hand(&device).hold_took = Some(now.since(asked_at));
                    self.heard(run, &device, asked_at).await?;
                    let driver = self.plan.drivers.get(&device);
                    let engaged = driver.map(|driver| driver.engaged(&found)).unwrap_or_default();
                    run.judge.hold_was_found(&device, &engaged);
                }
                if found.is_empty() {
                    let report = HoldReport { detail: "not supported".to_owned(), ..HoldReport::default() };
                    self.held(run, device, None, report).await?;
                } else {
                    let found = BTreeMap::from([(device, found)]);
                    let intent = || Event::HoldIntent { found: found.clone() };
                    for one in self.persist_in_sessions(intent).await? {
                        if let Opened::Hold(order) = one {
                            run.hand(&order.device().clone()).commands(now);
                            let life = run.judge.life(order.device());
                            run.doing.push(self.hands.hold(order, life));
                        }
                    }
                }
            }
            Did::Held { asked_at, result: Ok(report), .. } => {
                run.judge.contact(&device, None, now);
                self.heard(run, &device, asked_at).await?;
                // An answer is no end, as it is none of an off: a copy that was sent again while the answer was late may
                // land until the session is closed, and would hold a node that is back.
                self.held(run, device, None, report).await?;
            }
            Did::Held { effect, asked_at, result: Err(error) } => {
                if error.effect == Effect::Unknown {
                    run.judge.may_have_taken(&device, asked_at);
                }
                tracing::warn!(%device, %error, "the hold was not seen to be engaged");
                let known = (error.effect == Effect::DidNotHappen).then_some(effect);
                let report = HoldReport { engaged: Vec::new(), detail: error.to_string() };
                let is_unsent = known.is_some() && error.kind == ErrorKind::Unreachable;
                self.held(run, device.clone(), known, report).await?;
                if is_unsent && run.hand(&device).unsent_holds < self.plan.paces.unsent_holds {
                    // Perhaps as its session is a new one: it is held once it has said there whose machine it controls. A hold that never
                    // goes must not keep the off from it.
                    run.hand(&device).unsent_holds += 1;
                    run.hand(&device).held = false;
                    run.enter(&device, Stage::Identify);
                    run.failed(&device, now);
                }
            }
            Did::Off { effect, asked_at, result } => {
                self.counted_from.insert(effect, now);
                match result {
                    Ok(taken) => {
                        tracing::info!(%device, already = taken.already, "the off was taken");
                        run.off_taken(&device, now);
                        if self.live.unreached {
                            self.live_mut().unreached = false;
                        }
                        run.hand(&device).may_have_taken = true;
                        let lost = run.judge.off_taken(
                            &device,
                            taken.asked_at,
                            taken.answered_at,
                            taken.epoch,
                            taken.already,
                        );
                        run.asks_whose_again(&device);
                        self.note_loss(run, device, lost).await?;
                    }
                    Err(error) if is_another_s(&error) => return self.exchanged(&device, error).await,
                    Err(error) => {
                        tracing::warn!(%device, %error, "the off was not seen to be taken");
                        run.hand(&device).refused = Some(self.fault_words(&device, &error));
                        if error.effect == Effect::Unknown {
                            run.judge.may_have_taken(&device, asked_at);
                            run.hand(&device).may_have_taken = true;
                        }
                        run.failed_by(&device, now, &error);
                        let lost = match error.refusal {
                            Some(Refusal { asked_at, answered_at, epoch }) => {
                                run.judge.off_refused(&device, asked_at, answered_at, epoch)
                            }
                            None => {
                                run.judge.off_failed(&device);
                                false
                            }
                        };
                        self.note_loss(run, device.clone(), lost).await?;
                        if self.is_refused_for_good(run, &device, &error) {
                            return self
                                .level_spent(run, Reason::LevelsSpent, format!("{device}: {error}"))
                                .await;
                        }
                    }
                }
            }
            Did::Read { result: Ok(reading), .. } => {
                let hand = run.hand(&device);
                hand.calm();
                if reading.power == Power::Off {
                    hand.off_pause = hand.backoff.first;
                }
                run.probed(&device, true);
                let lost = run.judge.reading(&device, &reading, &self.record().ledger);
                run.asks_whose_again(&device);
                if self.is_to_be_told_again(run, &device, &reading) {
                    tracing::warn!(%device, said = reading.said, "the off that it took came to nothing: it is told again");
                    run.hand(&device).taken_at = None;
                    run.judge.off_failed(&device);
                }
                self.note_loss(run, device.clone(), lost).await?;
                // A device that did not say yet whose machine it controls may speak of another one (S13).
                if run.judge.is_identified(&device) {
                    self.found_on_while_proven_anew(device, reading).await?;
                }
            }
            Did::Read { result: Err(error), .. } if is_another_s(&error) => {
                return self.exchanged(&device, error).await;
            }
            Did::Read { asked_at, result: Err(error) } => {
                tracing::debug!(%device, %error, "the device gave no reading");
                run.probed(&device, false);
                match error.kind {
                    ErrorKind::NoTurn | ErrorKind::NotLeader => run.judge.not_asked(&device, asked_at),
                    _ => run.judge.silence(&device, asked_at, now),
                }
                run.failed_by(&device, now, &error);
            }
            Did::Unheld(..) | Did::On(..) | Did::Quiesced(..) | Did::Ended { .. } => {}
        }
        Ok(())
    }

    /// What was read while the confirmation was not stored is the judge's, as any other reading.
    pub(super) async fn hear_again(&mut self, run: &mut Run, heard: Vec<Look>) -> Result<(), Fatal> {
        let here = self.place();
        for Look { device, asked_at, reading } in heard {
            if let Some(reading) = reading.filter(|_| self.place() == here) {
                self.take(run, device, Did::Read { asked_at, result: Ok(reading) }).await?;
            }
        }
        Ok(())
    }

    /// A host device that said On to a caller since then: that speaks against the Off before it, whoever asked (S3).
    pub(super) async fn hear_of_an_on(&mut self, run: &mut Run, since: BootTime) -> Result<(), Fatal> {
        let here = self.place();
        for device in self.hosts() {
            if self.place() != here {
                break;
            }
            let reading = self.live.devices.get(&device).and_then(|live| live.reading.clone());
            let is_on = |reading: &Reading| reading.power == Power::On && reading.asked_at >= since;
            if let Some(reading) = reading.filter(is_on) {
                let lost = run.judge.reading(&device, &reading, &self.record().ledger);
                self.note_loss(run, device.clone(), lost).await?;
                if run.judge.is_identified(&device) {
                    self.found_on_while_proven_anew(device, reading).await?;
                }
            }
        }
        Ok(())
    }

    /// Whether it is expected to say whose machine it controls. An agent never does, whatever its settings say.
    fn is_to_say_whose(&self, device: &DeviceId) -> bool {
        let is_agent = self.plan.drivers.get(device).is_some_and(|driver| driver.runs_programs());
        !is_agent && !self.expected_identity(device).is_empty()
    }

    /// Where something is expected of the device, an answer that says nothing is none yet: what only starts may say so (S13).
    fn asks_again_whose(&self, device: &DeviceId, did: Did) -> Did {
        match did {
            Did::Identified { asked_at, result: Ok(said) }
                if said.identity.is_empty()
                    && self.is_to_say_whose(device)
                    && !self.has_said_whose(device) =>
            {
                let why = "it says nothing of whose machine it controls";
                Did::Identified { asked_at, result: Err(DriverError::unsupported(why)) }
            }
            did => did,
        }
    }

    /// S13: what it controls was found to be another machine by now, before the off or after it. Nothing more is sent, and a person is told.
    async fn exchanged(&mut self, device: &DeviceId, error: DriverError) -> Result<(), Fatal> {
        self.give_up(Reason::IdentityMismatch, format!("{device}: {}", error.detail)).await
    }

    /// S11: of a node that was proven off before, a host device's On is a breach, and no mere reading: its releases go anew, and its children's
    /// proofs are void.
    async fn found_on_while_proven_anew(&mut self, device: DeviceId, reading: Reading) -> Result<(), Fatal> {
        if self.open_fence().is_some_and(|fence| fence.was_proven) {
            let asked_at = reading.asked_at;
            self.found_on(&[Look { device, asked_at, reading: Some(reading) }]).await?;
        }
        Ok(())
    }

    /// Whether the next level has its turn at once: a refusal that no wait changes, or one of a parent that is tried ahead, whose
    /// turn comes again after the node's own levels. A device that may have taken an off of this run is left its time.
    fn is_refused_for_good(&self, run: &mut Run, device: &DeviceId, error: &DriverError) -> bool {
        if error.effect != Effect::DidNotHappen || run.hand(device).may_have_taken {
            return false;
        }
        let is_refused = error.kind == ErrorKind::Refused;
        self.open_fence().is_some_and(|fence| {
            let has_next = fence.level_after(run.level).is_some();
            is_refused && fence.is_ahead(run.level) || error.is_final && has_next
        })
    }

    /// Whether the off that the device took is to be sent again, by what was asked for after that.
    fn is_to_be_told_again(&self, run: &mut Run, device: &DeviceId, reading: &Reading) -> bool {
        let Some(driver) = self.plan.drivers.get(device).filter(|_| reading.power != Power::Off) else {
            return false;
        };
        let Some(taken_at) = run.hand(device).taken_at else { return false };
        let after = driver.off_again(reading.power);
        after.is_some_and(|after| reading.asked_at >= taken_at + after)
    }

    /// The device answered what it was asked at that moment.
    async fn heard(&mut self, run: &mut Run, device: &DeviceId, asked_at: BootTime) -> Result<(), Fatal> {
        let lost = run.judge.heard(device, asked_at, self.now());
        self.note_loss(run, device.clone(), lost).await
    }

    /// A loss is stored before anything else: it binds whoever leads next. The next off waits for the store.
    pub(super) async fn note_loss(
        &mut self,
        run: &mut Run,
        device: DeviceId,
        lost: bool,
    ) -> Result<(), Fatal> {
        if lost {
            tracing::warn!(%device, "its session was lost within the fence");
            run.hand(&device).off = None;
            if run.judge.wants_its_hold_read(&device) {
                let hand = run.hand(&device);
                hand.held = false;
                if hand.stage == Stage::Live {
                    run.enter(&device, Stage::Inspect);
                }
            }
            self.persist(|| Event::Lost { device: device.clone() }).await?;
        }
        Ok(())
    }
}
