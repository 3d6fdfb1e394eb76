//! Bringing a node back: drained, what the holds found is put back, on, seen on, drained again. As
//! `engine/node/unfencing`; an unseen on is sent again after three ticks instead of fifteen seconds.

use std::sync::Arc;

use super::actions::{Do, Luck};
use super::store::{boot, now};
use super::tasks::{Bringing, CALL, Call, Kinds, Task, Then};
use super::turn::{Eye, Turn};
use super::weaken::Weak;
use super::world::{DEVICES, Verb, device, number};
use crate::device::{DeviceClass, IdentityMatch};
use crate::event::Event;
use crate::gate::{self, GateFault};
use crate::ground::Look;
use crate::order::Opened;
use crate::outcome::Reason;
use crate::power::{Epoch, Power};
use crate::record;
use crate::store::StoreError;

/// An on that was taken and is not seen is sent again after this.
const REPEAT: u64 = 3;

/// After a stand-down On is waited for so long.
const UNSEEN: u64 = 2;

impl Eye<'_> {
    pub(super) fn plan_bringing(self, run: &Bringing) -> Option<Do> {
        let tick = self.tick();
        for d in 0..self.setup.hosts {
            let Some(call) = run.calls[d] else { continue };
            if call.answer.is_some() || tick >= call.since + CALL {
                return Some(Do::HearBack(d));
            }
        }
        if let Some(d) = (0..self.setup.hosts).find(|d| run.undo[*d].is_some() && run.calls[*d].is_none()) {
            return (!self.is_full()).then_some(Do::SendRestore(d));
        }
        if run.undo.iter().any(Option::is_some) {
            return None;
        }
        if self.gateway().record().fence.as_ref().is_some_and(|fence| !fence.holds.is_empty()) {
            return (tick >= run.send_at).then_some(Do::RestoreIntent);
        }
        let bringing = self.gateway().record().bringing;
        if bringing == record::Bringing::Abort {
            return Some(Do::SeenOn);
        }
        if bringing == record::Bringing::StandDown {
            return (tick >= run.read_at).then_some(Do::SeenAlive);
        }
        let Some(_) = &run.pending else { return Some(Do::OnIntent) };
        let unsent = (0..self.setup.hosts).find(|d| run.dark[*d] && !run.sent[*d]);
        if let Some(d) = unsent.filter(|_| tick >= run.send_at) {
            return (!self.is_full()).then_some(Do::SendOn(d));
        }
        if run.is_busy() {
            return None;
        }
        match (0..self.setup.hosts).find(|d| run.dark[*d]) {
            Some(d) => (tick >= run.read_at).then_some(Do::ReadOn(d)),
            None => Some(Do::SeenOn),
        }
    }
}

impl Turn<'_> {
    fn bringing(&mut self) -> Option<&mut Bringing> {
        match &mut self.me().task {
            Task::Bring(run) => Some(run),
            _ => None,
        }
    }

    /// In which life of these devices each says that it controls the node. False: one controls another machine, and a person is told.
    fn vouched(&mut self, devices: impl Iterator<Item = usize>) -> bool {
        for d in devices {
            let (said, epoch) = self.asks_whose(d);
            if said == IdentityMatch::Mismatch {
                self.gives_up(Reason::IdentityMismatch);
                return false;
            }
            if let Some(run) = self.bringing() {
                run.ours[d] = epoch.map(|epoch| epoch.id);
            }
        }
        true
    }

    /// Whether the device is in the life in which it said whose machine it controls.
    fn is_ours(&mut self, d: usize, epoch: Epoch) -> bool {
        let weak = self.setup.weak == Weak::Lives;
        weak || self.bringing().is_some_and(|run| run.ours[d] == Some(epoch.id))
    }

    pub(super) fn restore_intent(&mut self) {
        let fence = self.record().fence.as_ref();
        let held: Vec<usize> = fence.iter().flat_map(|fence| fence.holds.keys()).map(number).collect();
        if !self.vouched(held.into_iter()) {
            return;
        }
        let opened = self.persist(Event::UnholdIntent).unwrap_or_default();
        let mut done = Vec::new();
        let holds = self.setup.holds;
        let Some(run) = self.bringing() else { return };
        for one in opened {
            let Opened::Unhold(order) = one else { continue };
            let d = number(order.device());
            if holds[d] {
                run.undo[d] = Some(Arc::new(order));
            } else {
                done.push(order.device().clone());
            }
        }
        for one in done {
            self.persist(Event::Unheld { devices: vec![one], detail: String::new() });
        }
    }

    pub(super) fn send_restore(&mut self, d: usize) {
        let (since, epoch) = (self.tick(), self.epoch(d));
        let ours = self.is_ours(d, epoch);
        let Some(run) = self.bringing() else { return };
        let Some(order) = run.undo[d].clone() else { return };
        if !ours {
            (run.undo[d], run.send_at) = (None, since + 1);
            return;
        }
        let epoch = Some(epoch);
        let sent = self.send(Verb::Restore(d), order.effect(), order.generation(), false);
        let effect = Some(order.effect());
        let Some(run) = self.bringing() else { return };
        run.undo[d] = Some(order).filter(|_| sent);
        run.calls[d] = sent.then_some(Call { effect, epoch, since, answer: None, late: None });
    }

    pub(super) fn on_intent(&mut self) {
        let switched_off =
            self.record().fence.iter().flat_map(|fence| fence.switched_off.clone()).collect::<Vec<_>>();
        let none = switched_off.is_empty();
        let devices = if none { (0..self.setup.hosts).map(device).collect() } else { switched_off };
        let mut dark = [false; DEVICES];
        devices.iter().for_each(|device| dark[number(device)] = true);
        let opened = self.persist(Event::OnIntent { devices });
        let (Some(opened), tick) = (opened, self.tick()) else { return };
        let Some(run) = self.bringing() else { return };
        let on = |one| if let Opened::On(on) = one { Some(Arc::new(on)) } else { None };
        run.pending = Some(opened.into_iter().filter_map(on).collect());
        (run.dark, run.send_at, run.read_at) = (dark, tick, tick);
    }

    /// Asks the store once more and sends at once.
    pub(super) fn send_on(&mut self, d: usize) {
        let tick = self.tick();
        let epoch = self.epoch(d);
        if !self.is_ours(d, epoch) {
            self.vouched([d].into_iter());
            return;
        }
        let Some(leadership) = self.leadership() else { return };
        let Some(run) = self.bringing() else { return };
        let pending = run.pending.iter().flatten().find(|on| number(on.device()) == d).cloned();
        run.sent[d] = true;
        let Some(pending) = pending else { return };
        let (store, stored) = (self.store(), self.gateway().stored.clone());
        let look = Look { device: device(d), asked_at: boot(tick), reading: Some(self.read(d)) };
        let order = match now(gate::on_order(
            &store,
            &leadership,
            &stored,
            &pending,
            &look,
            Some(DeviceClass::Host),
            None,
        )) {
            Ok(order) => order,
            Err(GateFault::Store(StoreError::Deposed(_) | StoreError::Conflict { .. })) => {
                return self.resign();
            }
            Err(_) => return self.again(1),
        };
        let epoch = Some(epoch);
        let sent = self.send(Verb::On(d), order.effect(), order.generation(), false);
        let effect = Some(order.effect());
        let Some(run) = self.bringing() else { return };
        run.calls[d] = sent.then_some(Call { effect, epoch, since: tick, answer: None, late: None });
        if !sent {
            self.again(1);
        }
    }

    /// The device's part of this round is over. Once all are, what is dark still is sent again, at the soonest of these.
    fn again(&mut self, after: u64) {
        let tick = self.tick();
        let Some(run) = self.bringing() else { return };
        run.again = Some(run.again.map_or(tick + after, |at| at.min(tick + after)));
        if run.calls.iter().all(Option::is_none) && (0..DEVICES).all(|d| run.sent[d] || !run.dark[d]) {
            run.sent = [false; DEVICES];
            run.send_at = run.again.take().unwrap_or(tick);
            run.read_at = tick;
        }
    }

    /// What a call came to: an answer, or none within its time.
    pub(super) fn hear_back(&mut self, d: usize) {
        let (tick, who) = (self.tick(), self.who);
        let Some(call) = self.bringing().and_then(|run| run.calls[d].take()) else { return };
        let ours = |message: &&mut super::world::Message| {
            Some(message.effect) == call.effect && message.sender == Some(who)
        };
        if call.answer.is_none() {
            self.state.world.messages.iter_mut().filter(ours).for_each(|message| message.stray = true);
        }
        let Some(run) = self.bringing() else { return };
        if let Some(order) = run.undo[d].take() {
            self.me().counted.insert(order.effect(), tick);
            match call.answer {
                Some(_) => {
                    drop(self.persist(Event::Unheld { devices: vec![device(d)], detail: String::new() }))
                }
                None => {
                    let Some(run) = self.bringing() else { return };
                    run.send_at = tick + 1;
                }
            }
            return;
        }
        self.again(if call.answer.is_some() { REPEAT } else { 2 });
    }

    pub(super) fn read_on(&mut self, d: usize, luck: Luck) {
        let tick = self.tick();
        let reading = if luck == Luck::Fine { Some(self.read(d)) } else { None };
        let weak = self.setup.weak == Weak::Watch;
        let Some(run) = self.bringing() else { return };
        let is = reading.as_ref().and_then(|reading| reading.epoch).map(|epoch| epoch.id);
        if is.is_some() && is != run.ours[d] && !weak {
            // It is asked whose machine it controls, and told once more, before anything that it says counts.
            (run.sent[d], run.send_at) = (false, tick);
            return;
        }
        run.dark[d] = reading.is_none_or(|reading| reading.power != Power::On);
        if run.dark[d] {
            run.read_at = tick + 1;
        }
    }

    /// The sessions that carried the on end before anybody can want an off again.
    pub(super) fn seen_on(&mut self) {
        self.me().task = Task::Drain { kinds: Kinds::Proof, asked: [false; DEVICES], then: Then::Back };
    }

    /// After a stand-down no on is sent: it ends when a device says On, and else a person is asked.
    pub(super) fn seen_alive(&mut self) {
        let tick = self.tick();
        let Some(looks) = self.watch() else { return };
        if looks.iter().any(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On)) {
            return self.seen_on();
        }
        let Some(run) = self.bringing() else { return };
        run.read_at = tick + 1;
        let until = *run.again.get_or_insert(tick + UNSEEN);
        if tick >= until {
            self.gives_up(Reason::StandDownUnseen);
        }
    }

    pub(super) fn back(&mut self) {
        self.me().ground = None;
        if self.state.world.owed && self.state.world.power.is_none() {
            self.state.wrong.get_or_insert(super::properties::OWED);
        }
        self.persist(Event::Back { detail: String::new() });
    }
}
