//! Sessions that others opened, and in which something of theirs may still be on its way. The leader of now
//! ends them by the name in the ledger (S8), and does not wait for as long as their far side keeps them.
//!
//! # Invariants
//!
//! - Only the far side's clear word ends an effect. Without it, the effect's longest life is waited out.
//!   Shown by `the_off_of_a_dead_gateway_ends_with_its_session`,
//!   `a_device_that_says_nothing_of_it_is_waited_out`.
//! - Whose machine the far side controls is asked first (S13): another machine's BMC knows nothing of that
//!   session, and the session lives on. Shown by
//!   `the_session_of_a_dead_gateway_is_ended_by_no_other_machine_s_bmc`.
//! - What is about to be sent is stored with the session in which it goes. Where there is no session yet, a
//!   reading opens it first. Shown by `everything_that_is_sent_is_stored_with_its_session`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::MaxInFlight;
use picket_core::event::Event;
use picket_core::ids::{DeviceId, EffectId};
use picket_core::ledger::{EffectKind, OpenEffect};
use picket_core::time::BootTime;
use picket_driver::{DriverError, ErrorKind, Identified, PowerDriver};

use super::children::Asks;
use super::command::Command;
use super::hands::{Did, Doing};
use super::{Fatal, NodeTask};
use crate::paces::{Backoff, Paces};

/// A session, as it stands in the ledger.
type Named = (DeviceId, String);

/// How far the end of one session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is begun at its time.
    Waits,
    /// The device is asked whose machine it controls.
    Asks,
    /// It is being ended.
    Ends,
}

#[derive(Clone, Copy, Debug)]
struct Try {
    step: Step,
    failed: u32,
    not_before: BootTime,
}

impl Try {
    /// Begun again after a pause.
    fn fail(&mut self, now: BootTime, backoff: Backoff) {
        let pause = backoff.after_failures(self.failed);
        *self = Self { step: Step::Waits, failed: self.failed + 1, not_before: now + pause };
    }
}

/// The sessions that are being ended.
#[derive(Default)]
pub(super) struct Succession {
    tries: BTreeMap<Named, Try>,
    /// Devices that said they control the node's machine: what was let go for a caller goes on without that question.
    ours: BTreeSet<DeviceId>,
    doing: FuturesUnordered<Doing>,
}

impl Succession {
    /// The next one that was answered, or was not; pending for ever while none is under way.
    pub(super) async fn next(&mut self) -> (DeviceId, Did) {
        match self.doing.next().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }

    /// Whether one is being ended now.
    pub(super) fn is_under_way(&self) -> bool {
        !self.doing.is_empty()
    }

    /// Drops what is under way where a command asks devices, which would wait for it in vain. It is begun again. All other callers,
    /// however many and however often, do not keep it from its end; `asks`: what it asks of them as the node stands.
    pub(super) fn let_go_for(&mut self, command: &Command, asks: Asks, now: BootTime) {
        let looks = command.looks() && asks != Asks::Nothing;
        if !command.asks_devices_in_a_fence() && !looks {
            return;
        }
        self.doing.clear();
        for one in self.tries.values_mut().filter(|one| one.step != Step::Waits) {
            (one.step, one.not_before) = (Step::Waits, now);
        }
    }

    /// The sessions for whose end the device is asked whose machine it controls.
    fn asks<'a>(&'a self, device: &'a DeviceId) -> impl Iterator<Item = &'a String> {
        let asks = self.tries.iter().filter(move |((of, _), one)| of == device && one.step == Step::Asks);
        asks.map(|((_, session), _)| session)
    }

    /// When one is to be tried again.
    pub(super) fn wake(&self) -> Option<BootTime> {
        self.tries.values().filter(|one| one.step == Step::Waits).map(|one| one.not_before).min()
    }

    /// Whether the effect's session may yet be ended soon.
    pub(super) fn may_end(&self, open: &OpenEffect, paces: &Paces) -> bool {
        let tried = named(open).and_then(|named| self.tries.get(&named));
        tried.is_some_and(|one| one.failed < paces.session_end_tries)
    }
}

fn named(open: &OpenEffect) -> Option<Named> {
    Some((open.kind.device()?.clone(), open.session.clone()?))
}

impl NodeTask {
    /// Begins to end the sessions of others in which effects of the kinds that `barring` names were sent.
    pub(super) fn succeed(&self, succession: &mut Succession, barring: fn(&EffectKind) -> bool) {
        let now = self.now();
        let open = self.record().ledger.open().iter();
        let foreign = open.filter(|open| barring(&open.kind) && !self.own.contains(&open.id));
        let wanted: BTreeMap<Named, ()> = foreign.filter_map(named).map(|named| (named, ())).collect();
        succession.tries.retain(|named, _| wanted.contains_key(named));
        for (device, session) in wanted.into_keys() {
            let new = Try { step: Step::Waits, failed: 0, not_before: now };
            let is_asked = succession.asks(&device).next().is_some();
            let one = succession.tries.entry((device.clone(), session.clone())).or_insert(new);
            if one.step != Step::Waits || one.not_before > now {
                continue;
            }
            if succession.ours.contains(&device) {
                one.step = Step::Ends;
                succession.doing.push(self.hands.end_session(&device, session));
            } else {
                one.step = Step::Asks;
                if !is_asked {
                    // Most often it has to let us in first.
                    let time = self.hands.time(&device) * 3;
                    succession.doing.push(self.hands.identify_within(&device, time));
                }
            }
        }
    }

    /// The sessions of a device that said whose machine it controls are ended. Of another machine's, of one that does not say it any more, and
    /// of one that does not answer none is.
    fn asked_whose(
        &mut self,
        succession: &mut Succession,
        device: &DeviceId,
        said: Result<Identified, DriverError>,
    ) {
        let knows_it_not = matches!(&said, Err(error) if error.kind == ErrorKind::Unsupported);
        let identity = said.as_ref().map(|said| said.identity.clone()).unwrap_or_default();
        let is_silent = identity.is_empty() && (knows_it_not || said.is_ok());
        let is_another = self.another_s(device, &identity).is_some();
        let is_ours = !is_another && (!identity.is_empty() || is_silent && !self.has_said_whose(device));
        if is_ours {
            succession.ours.insert(device.clone());
        } else {
            self.asked_whose_in.remove(device);
        }
        let sessions: Vec<String> = succession.asks(device).cloned().collect();
        for session in sessions {
            let now = self.now();
            let Some(one) = succession.tries.get_mut(&(device.clone(), session.clone())) else { continue };
            if is_ours {
                one.step = Step::Ends;
                succession.doing.push(self.hands.end_session(device, session));
            } else {
                one.fail(now, self.plan.paces.session_end);
                let said = said.as_ref().map_or_else(ToString::to_string, |_| identity.words());
                tracing::warn!(%device, session, said, "another's session may be open still: nobody knows that this is its device");
            }
        }
    }

    /// Takes what the end of a session came to: everything that was sent in it ends with it.
    pub(super) async fn succeeded(
        &mut self,
        succession: &mut Succession,
        device: DeviceId,
        did: Did,
    ) -> Result<(), Fatal> {
        self.show(&device, &did);
        let (session, result) = match did {
            Did::Ended { session, result } => (session, result),
            Did::Identified { result, .. } => {
                self.asked_whose(succession, &device, result);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let named = (device, session);
        if let Err(error) = result {
            let now = self.now();
            let device = &named.0;
            tracing::warn!(%device, session = named.1, %error, "another's session may be open still");
            succession.ours.remove(device);
            if let Some(one) = succession.tries.get_mut(&named) {
                one.fail(now, self.plan.paces.session_end);
            }
            return Ok(());
        }
        succession.tries.remove(&named);
        let of_it = |open: &&OpenEffect| {
            !self.own.contains(&open.id)
                && open.kind.device() == Some(&named.0)
                && open.session.as_ref() == Some(&named.1)
        };
        let ended: Vec<EffectId> =
            self.record().ledger.open().iter().filter(of_it).map(|open| open.id).collect();
        if !ended.is_empty() {
            tracing::info!(device = %named.0, session = named.1, "another's session was ended");
            self.persist(|| Event::Closed { effects: ended.clone(), why: "its session was ended by name" })
                .await?;
        }
        Ok(())
    }

    /// What is about to be sent, with the sessions in which it will go, and how long it may live as their far sides say now.
    pub(super) fn in_sessions<'a>(&self, event: Event<'a>) -> Event<'a> {
        let name = |device: &DeviceId| Some((device.clone(), self.hands.session(device)?));
        let sessions: BTreeMap<DeviceId, String> = self.plan.drivers.keys().filter_map(name).collect();
        let said = |(device, driver): (&DeviceId, &Arc<dyn PowerDriver>)| {
            let now = driver.longest_life();
            let set = self.plan.topology.device(device).map_or(now, |spec| spec.max_in_flight);
            // A fence goes on by the levels with which it began, and its drivers send by the settings of now.
            let stored = self.record().fence.as_ref().and_then(|fence| fence.topology.device(device));
            let is_stored = stored.is_none_or(|spec| spec.max_in_flight == set);
            let is_set = now == driver.traits().max_in_flight;
            if is_set && is_stored {
                return None;
            }
            // A token ends when its far side says; a session's limit may be longer than was seen of it.
            let longer = |set: Option<Duration>, now: Option<Duration>| Some(set?.max(now?));
            let both = MaxInFlight { off: longer(set.off, now.off), on: longer(set.on, now.on) };
            Some((device.clone(), if is_set || driver.epoch_is_a_session() { both } else { now }))
        };
        let lives: BTreeMap<DeviceId, MaxInFlight> = self.plan.drivers.iter().filter_map(said).collect();
        if sessions.is_empty() && lives.is_empty() {
            return event;
        }
        Event::InSessions { event: Box::new(event), sessions, lives }
    }

    /// Reads power of those devices that have no session yet, and whose sessions have names: what is sent next is stored with it.
    pub(super) async fn open_sessions(&mut self, devices: &[DeviceId]) {
        let wants = |device: &&DeviceId| {
            let driver = self.plan.drivers.get(*device);
            driver.is_some_and(|driver| driver.names_sessions() && driver.session().is_none())
        };
        let mut doing: FuturesUnordered<Doing> =
            devices.iter().filter(wants).map(|device| self.hands.read(device)).collect();
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
        }
    }
}
