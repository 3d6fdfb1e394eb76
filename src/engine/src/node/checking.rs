//! A node that is not fenced: its devices are checked on a schedule, and callers are answered.
//!
//! # Invariants
//!
//! - A check changes nothing: its calls may only read.
//! - A check's session is closed shortly before it would end by idleness. A device that restarts under it
//!   is seen by the next fence, and a session that we closed before is no loss within that fence (S2).
//!   Shown by `a_restart_under_a_session_of_a_check_is_a_loss_and_one_after_its_end_is_none`.
//! - A request that moves the node, or asks its devices, ends a check at once. Shown by
//!   `a_fence_ends_the_check_of_the_start_that_hangs`,
//!   `callers_who_never_pause_keep_no_node_from_being_checked`.
//! - A device that refuses us is asked more and more rarely. Shown by
//!   `a_device_that_refuses_us_is_asked_more_and_more_rarely`.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::{Identity, IdentityMatch};
use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::power::Power;
use picket_core::record::NodeRecord;
use picket_core::time::BootTime;
use picket_driver::ErrorKind;

use super::children::Asks;
use super::command::{Command, Reply};
use super::hands::{Did, Doing};
use super::{Fatal, NodeTask, sleep_until};
use crate::parts::PlannedRelease;
use crate::readiness::{Readiness, problems, readiness};
use crate::units::Unit;
use crate::view::Checked;

/// A check under way.
struct Run {
    doing: FuturesUnordered<Doing>,
    began: BootTime,
    /// Devices that have not come to the end of their questions.
    asked: BTreeMap<DeviceId, Option<bool>>,
    waiting: Vec<Reply<NodeRecord>>,
    /// Releases have not answered; and the device at which is told what they say is at the end of its questions.
    releases: bool,
    late: Option<DeviceId>,
    /// What the far sides of releases say of the node's machine.
    machines: Vec<(Identity, String)>,
    /// What devices read.
    powers: BTreeMap<DeviceId, Power>,
}

impl NodeTask {
    // What is done now and then is in boxes: this is where ten thousand nodes wait.
    pub(super) async fn normal(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        let first = std::mem::take(&mut self.unchecked) && Box::pin(self.check_in_turn()).await?;
        if first || self.steps_aside() {
            return Ok(());
        }
        let mut check_at = self.next_check();
        let mut closing: FuturesUnordered<Doing> = FuturesUnordered::new();
        loop {
            Box::pin(self.close_expired(|_| true)).await?;
            if closing.is_empty() {
                closing.extend(self.idle_closes());
            }
            let now = self.now();
            let close_at = self.next_idle_close().filter(|_| closing.is_empty());
            let expiry = self.record().ledger.open().iter().filter_map(|open| self.expires_at(open)).min();
            let until = async |at: Option<BootTime>| match at {
                Some(at) => sleep_until(now, at).await,
                None => std::future::pending().await,
            };
            tokio::select! {
                biased;
                // Before callers, who are answered within it.
                () = until(check_at) => {
                    closing.clear();
                    if Box::pin(self.check_in_turn()).await? {
                        return Ok(());
                    }
                    check_at = self.next_check();
                }
                Some(command) = self.mailbox.recv() => {
                    // It may ask the same devices, which would wait for closes that nobody goes on with.
                    closing.clear();
                    match command {
                        Command::Check(reply) => {
                            let devices = self.devices();
                            if Box::pin(self.check(devices, Some(reply))).await? {
                                return Ok(());
                            }
                            if self.unchecked {
                                check_at = self.next_check();
                            }
                        }
                        command => Box::pin(self.command(command)).await?,
                    }
                }
                // One that was not answered is waited out by the far side.
                Some(_) = closing.next() => {}
                () = until(expiry) => {}
                () = until(close_at) => {}
            }
            if self.place() != here || self.steps_aside() {
                return Ok(());
            }
        }
    }

    /// When it is checked by itself again: soon, where another request ended the last check; nobody waits an interval for what is
    /// not known yet.
    fn next_check(&mut self) -> Option<BootTime> {
        let now = self.now();
        match std::mem::take(&mut self.unchecked) {
            true => Some(now + self.plan.paces.check_again),
            false => self.schedule.next(now),
        }
    }

    fn devices(&self) -> Vec<DeviceId> {
        self.plan.topology.devices().map(|spec| spec.id.clone()).collect()
    }

    /// A check that nobody asked for, some nodes at a time. True if the node was moved meanwhile.
    async fn check_in_turn(&mut self) -> Result<bool, Fatal> {
        let here = self.place();
        let mut units: Vec<Arc<Unit>> = self.plan.units.values().cloned().collect();
        units.sort_by(|one, other| one.name().cmp(other.name()));
        units.dedup_by(|one, other| one.name() == other.name());
        let turns = self.turns.clone();
        // Turns at what it shares first, in the order of their names: a dead unit's nodes wait without keeping other nodes waiting.
        let turn = async {
            let mut held = Vec::with_capacity(units.len());
            for unit in &units {
                held.push(unit.check().await);
            }
            (held, turns.checks.acquire().await)
        };
        tokio::pin!(turn);
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => {
                    let _turn = turn;
                    let now = self.now();
                    let mut devices = self.devices();
                    devices.retain(|device| self.schedule.asks(device, now));
                    return Box::pin(self.check(devices, None)).await;
                }
                Some(command) = self.mailbox.recv() => match command {
                    // Whoever asks does not wait for a turn, and what they are told serves as this one.
                    Command::Check(reply) => {
                        let devices = self.devices();
                        return Box::pin(self.check(devices, Some(reply))).await;
                    }
                    command => Box::pin(self.command(command)).await?,
                },
            }
            if self.place() != here || self.steps_aside() {
                return Ok(true);
            }
        }
    }

    /// Asks these devices for power, identity, and what a hold would change. A fence ends it at once: a check never delays an
    /// off. True if the node was moved meanwhile.
    async fn check(
        &mut self,
        devices: Vec<DeviceId>,
        reply: Option<Reply<NodeRecord>>,
    ) -> Result<bool, Fatal> {
        let here = self.place();
        let mut run = Run {
            // Power first: one that does not let us in is not asked to three times.
            doing: devices.iter().map(|device| self.hands.unheard(reply.is_some()).read(device)).collect(),
            began: self.now(),
            asked: devices.into_iter().map(|device| (device, None)).collect(),
            waiting: reply.into_iter().collect(),
            releases: true,
            late: None,
            machines: Vec::new(),
            powers: BTreeMap::new(),
        };
        let around = self.look_around();
        tokio::pin!(around);
        while run.releases || !run.doing.is_empty() {
            tokio::select! {
                biased;
                // Answers before callers: a mailbox that never empties would keep them unread.
                Some((device, did)) = run.doing.next() => self.checked(&mut run, device, did).await?,
                mut around = &mut around, if run.releases => {
                    run.releases = false;
                    run.machines = std::mem::take(&mut around.machines);
                    self.around = around;
                    if let Some(device) = run.late.take() {
                        self.conclude(&mut run, &device);
                    }
                }
                Some(command) = self.mailbox.recv() => match command {
                    // Whoever asks while it is under way waits for the same answers.
                    Command::Check(reply) => run.waiting.push(reply),
                    command => {
                        let is_beside = self.asks(&command) == Asks::Nothing && !command.is_drill();
                        if !is_beside {
                            // It may ask the same devices, which would wait for calls that nobody goes on with.
                            run.doing.clear();
                        }
                        self.command(command).await?;
                        // Callers that ask no device and move nothing, however many, keep no node from being checked.
                        if !is_beside || self.place() != here || self.steps_aside() {
                            self.unchecked = self.schedule.next(self.now()).is_some();
                            // Those who wait are told so by their replies' closing.
                            return Ok(self.place() != here);
                        }
                    }
                },
            }
        }
        self.tell_power(&run.powers);
        // Once all is heard: what was learned just now is compared, too.
        for device in self.compare_with(&run.machines).await? {
            self.conclude(&mut run, &device);
        }
        for reply in run.waiting {
            let _ = reply.send(Ok(self.record().clone()));
        }
        Ok(false)
    }

    /// What one question came to, and the next one.
    async fn checked(&mut self, run: &mut Run, device: DeviceId, did: Did) -> Result<(), Fatal> {
        if let Did::Read { result: Ok(reading), .. } = &did {
            run.powers.insert(device.clone(), reading.power);
        }
        let hands = self.hands.unheard(!run.waiting.is_empty());
        let next = match did {
            Did::Identified { result: Err(error), .. } if error.kind == ErrorKind::Unsupported => {
                self.device_live(&device).identity_match = Some(IdentityMatch::Unknown);
                Some(hands.inspect(&device, None))
            }
            Did::Inspected { result: Err(error), .. } if error.kind == ErrorKind::Unsupported => {
                run.asked.insert(device.clone(), Some(false));
                None
            }
            did => {
                self.show(&device, &did);
                match did {
                    Did::Read { result: Ok(_), .. } => Some(hands.identify(&device)),
                    Did::Identified { result: Ok(said), .. } => {
                        self.learn(device.clone(), said.identity).await?;
                        Some(hands.inspect(&device, None))
                    }
                    Did::Inspected { result: Ok(found), .. } => {
                        run.asked.insert(device.clone(), Some(!found.is_empty()));
                        None
                    }
                    _ => None,
                }
            }
        };
        match next {
            Some(next) => run.doing.push(next),
            None if run.releases && self.tells_of_around(&device) => run.late = Some(device),
            None => self.conclude(run, &device),
        }
        Ok(())
    }

    /// A device came to the end of its questions: what changed is told.
    fn conclude(&mut self, run: &mut Run, device: &DeviceId) {
        let (now, at) = (self.now(), self.wall());
        let before = || self.live.devices.get(device)?.checked.as_ref()?.holds;
        let holds = run.asked.remove(device).unwrap_or_else(before);
        let took = now.since(run.began);
        let mut remarks = self.plan.drivers.get(device).map(|driver| driver.remarks()).unwrap_or_default();
        let obstacles = self.obstacles(device);
        if self.tells_of_around(device) {
            remarks.extend(self.around.said.iter().cloned());
        }
        remarks.extend(self.twin(device));
        let live = self.device_live(device);
        live.checked = Some(Checked { at, took, holds, remarks, obstacles });
        let fault = live.fault_kind;
        self.schedule.note(device, fault, now);
        let topology = self.plan.levels_now(self.record());
        let (Some(spec), Some(live)) = (topology.device(device), self.live.devices.get(device)) else {
            return;
        };
        let is = readiness(spec, live, &self.record().phase);
        let words: Vec<String> = problems(spec, live).into_iter().map(|problem| problem.text).collect();
        let was = match self.told.iter_mut().find(|(told, _)| told == device) {
            Some((_, was)) => std::mem::replace(was, is),
            None => {
                self.told.push((device.clone(), is));
                Readiness::default()
            }
        };
        self.publish();
        if was == is {
            return;
        }
        self.teller.readiness(device, was, is, &words);
        // The node's revision is what it was: what is watched besides the store has a feed of its own.
        let _ = self.shown.send(self.record().node.clone());
    }

    /// What lingers is told what the node's host devices read, all of them.
    fn tell_power(&self, powers: &BTreeMap<DeviceId, Power>) {
        let hosts = self.plan.topology.hosts().map(|spec| powers.get(&spec.id).copied());
        let hosts: Vec<Power> = hosts.map(|power| power.unwrap_or(Power::Unknown)).collect();
        let power = match hosts.contains(&Power::On) {
            true => Power::On,
            false if !hosts.is_empty() && hosts.iter().all(|power| *power == Power::Off) => Power::Off,
            false => Power::Unknown,
        };
        let clusters = self.plan.releases.iter().filter_map(PlannedRelease::quarantine);
        clusters.for_each(|cluster| cluster.reads(power));
    }

    /// Another node's device that claims the same of itself, or an orphan whose machine it controls.
    fn twin(&self, device: &DeviceId) -> Option<String> {
        let said = self.live.devices.get(device)?.identity.as_ref()?;
        if let Some(machine) = self.parts.twins.kept_off_by(said) {
            return Some(format!("it controls {machine}"));
        }
        if let Some((node, other)) = self.parts.twins.twin_of(&self.plan.id, device, said) {
            return Some(format!(
                "{node}/{other} claims the same of itself ({}): neither tells whose machine it is",
                said.words()
            ));
        }
        let other = self.claimed_by_another(device, said)?;
        Some(format!("it says that it controls {}, {other}", said.words()))
    }

    /// An identity is learned where nothing is expected yet; never in a fence.
    async fn learn(&mut self, device: DeviceId, identity: Identity) -> Result<(), Fatal> {
        if let Some(machine) = self.parts.twins.kept_off_by(&identity) {
            tracing::error!(%device, machine, "the device controls an orphan's machine: its identity is not learned");
            self.device_live(&device).identity_match = Some(IdentityMatch::Mismatch);
            self.publish();
            return Ok(());
        }
        let expected = self.expected_identity(&device).identity;
        let compared = match self.told_apart(&device, &identity) {
            (compared, Some(twin)) => {
                tracing::error!(
                    %device, said = ?identity, twin,
                    "what the device says is another's, or claimed by another: it is not learned"
                );
                // As a fence takes it: who never knew better sends nothing there.
                match self.expected_identity(&device).compare(&identity) {
                    IdentityMatch::Match => compared,
                    _ => IdentityMatch::Mismatch,
                }
            }
            (IdentityMatch::Mismatch, None) => {
                tracing::error!(%device, said = ?identity, ?expected, "the device controls another machine");
                return Ok(());
            }
            (IdentityMatch::Unknown, None) if expected.is_empty() && !identity.is_empty() => {
                self.persist(|| Event::Learned { device: device.clone(), identity: identity.clone() })
                    .await?;
                self.said_whose.insert(device.clone());
                self.expects(&device);
                self.expected_identity(&device).compare(&identity)
            }
            _ => return Ok(()),
        };
        self.device_live(&device).identity_match = Some(compared);
        self.publish();
        Ok(())
    }
}
