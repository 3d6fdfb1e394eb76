//! From the stored intent to the confirmation: as `engine/node/fencing`. A device that knows no hold answers so at
//! once.

use std::sync::Arc;

use super::actions::{Do, Luck};
use super::store::{Now, boot};
use super::tasks::{CALL, Call, Fencing, Hand, Order, Task};
use super::turn::{Eye, Turn};
use super::weaken::Weak;
use super::world::{Verb, device, number};
use crate::confirm::{Judge, Verdict};
use crate::device::IdentityMatch;
use crate::event::Event;
use crate::gate;
use crate::ground::{Look, ReleaseGround};
use crate::order::Opened;
use crate::outcome::Reason;
use crate::power::{Began, Power, Reading};
use crate::record::HoldState;
use crate::time::Clock;

impl Eye<'_> {
    /// What a fence's run does next.
    pub(super) fn plan_fencing(self, run: &Fencing) -> Option<Do> {
        let (tick, hosts) = (self.tick(), 0..self.setup.hosts);
        for d in hosts.clone() {
            let Some(call) = run.hands[d].call else { continue };
            if call.answer.is_some() {
                return Some(Do::Hear(d));
            }
            if tick >= call.since + CALL {
                return Some(Do::GiveUpWaiting(d));
            }
        }
        let gateway = self.gateway();
        let verdict = run.judge.verdict(&gateway.record().ledger, boot(tick), Now(tick).wall());
        if !matches!(verdict, Verdict::Open) {
            return Some(Do::Judge);
        }
        let ready = |d: &usize| run.hands[*d].call.is_none() && run.hands[*d].not_before <= tick;
        let level = gateway.record().fence.as_ref().map_or(0, |fence| fence.level);
        let of_level = |d: &usize| !self.setup.apart || *d == level;
        for d in hosts.filter(of_level).filter(ready).filter(|d| !run.hands[*d].live) {
            match run.hands[d].order {
                None => return Some(Do::HoldIntent(d)),
                Some(_) if !self.is_full() => return Some(Do::SendHold(d)),
                Some(_) => {}
            }
        }
        // The host devices of other levels are only asked, for what they object.
        let live = |d: &usize| ready(d) && (run.hands[*d].live || !of_level(d));
        let due: Vec<usize> = run.judge.wants_off().iter().map(number).filter(live).collect();
        if due.iter().any(|d| run.hands[*d].order.is_none()) {
            return Some(Do::OffIntent);
        }
        if let Some(d) = due.first().filter(|_| !self.is_full()) {
            return Some(Do::SendOff(*d));
        }
        let readings = run.judge.readings_due();
        let read =
            readings.iter().filter(|(_, at)| *at <= boot(tick)).map(|(device, _)| number(device)).find(live);
        read.map(Do::Read)
    }
}

impl Turn<'_> {
    /// A judge for the fence.
    pub(super) fn begin_fencing(&mut self) -> Option<Task> {
        let (term, gateway) = (self.gateway().lead?.term, self.gateway());
        let resumed = gateway.resumed && self.setup.weak != Weak::LongWindow;
        let judge = Judge::new(gateway.record(), term, &self.setup.rules, resumed)?;
        let judge = judge.begun(Began::Here(gateway.began.map(boot).unwrap_or_default()));
        Some(Task::Fence(Box::new(Fencing { judge, hands: Default::default() })))
    }

    fn run(&mut self) -> Option<&mut Fencing> {
        match &mut self.me().task {
            Task::Fence(run) => Some(run),
            _ => None,
        }
    }

    fn hand(&mut self, d: usize) -> Option<&mut Hand> {
        Some(&mut self.run()?.hands[d])
    }

    /// The device tells its identity, and what a hold would change.
    pub(super) fn hold_intent(&mut self, d: usize) {
        let at = boot(self.tick());
        let (said, epoch) = self.asks_whose(d);
        if said == IdentityMatch::Mismatch {
            return self.gives_up(Reason::IdentityMismatch);
        }
        let Some(run) = self.run() else { return };
        let lost = run.judge.identified(&device(d), said, epoch, at);
        self.note_loss(d, lost);
        if !self.setup.holds[d] {
            return self.held(d, Vec::new(), Vec::new());
        }
        let found = [(device(d), [("policy".to_owned(), "always-on".to_owned())].into())].into();
        for one in self.persist(Event::HoldIntent { found }).unwrap_or_default() {
            if let (Opened::Hold(order), Some(hand)) = (one, self.hand(d)) {
                hand.order = Some(Order::Hold(Arc::new(order)));
            }
        }
    }

    /// What a hold came to: from now on the device is looked at, and switched off.
    fn held(&mut self, d: usize, engaged: Vec<String>, known: Vec<crate::ids::EffectId>) {
        let Some(run) = self.run() else { return };
        run.judge.held(&device(d), &engaged);
        run.hands[d] = Hand { live: true, ..Hand::default() };
        let result = HoldState { outlives: engaged.clone(), engaged, ..HoldState::default() };
        self.persist(Event::HoldEnded { results: vec![(device(d), result)], known });
    }

    pub(super) fn send_hold(&mut self, d: usize) {
        let Some(Order::Hold(order)) = self.hand(d).and_then(|hand| hand.order.clone()) else { return };
        self.calls(d, Verb::Hold(d), order.effect(), order.generation());
    }

    fn calls(
        &mut self,
        d: usize,
        verb: Verb,
        effect: crate::ids::EffectId,
        generation: crate::ids::Generation,
    ) {
        let (since, epoch) = (self.tick(), self.epoch(d));
        let goes = self.run().is_some_and(|run| run.judge.life(&device(d)) == Some(epoch.id));
        if !goes && self.setup.weak != Weak::Lives {
            // In a life in which it was not asked whose machine it controls, nothing is sent.
            return match verb {
                Verb::Hold(_) => self.held(d, Vec::new(), vec![effect]),
                _ => self.off_failed(d),
            };
        }
        let epoch = Some(epoch);
        let sent = self.send(verb, effect, generation, false);
        let Some(hand) = self.hand(d).filter(|_| sent) else { return };
        hand.call = Some(Call { effect: Some(effect), epoch, since, answer: None, late: None });
    }

    pub(super) fn off_intent(&mut self) {
        let tick = self.tick();
        self.survey_before_off();
        let Some(run) = self.run() else { return };
        let new = |d: &usize| {
            let hand = &run.hands[*d];
            hand.live && hand.order.is_none() && hand.call.is_none() && hand.not_before <= tick
        };
        let devices: Vec<_> = run.judge.wants_off().iter().map(number).filter(new).map(device).collect();
        for one in self.persist(Event::OffIntent { devices, identified: Vec::new() }).unwrap_or_default() {
            if let Opened::Off(order) = one
                && let Some(hand) = self.hand(number(order.device()))
            {
                hand.order = Some(Order::Off(Arc::new(order)));
            }
        }
    }

    pub(super) fn send_off(&mut self, d: usize) {
        let at = boot(self.tick());
        let Some(run) = self.run() else { return };
        let Some(Order::Off(order)) = run.hands[d].order.clone() else { return };
        if gate::off_serves(&order, run.judge.look_serves_until(&device(d)), at).is_err() {
            return self.off_failed(d);
        }
        self.calls(d, Verb::Off(d), order.effect(), order.generation());
    }

    fn off_failed(&mut self, d: usize) {
        let tick = self.tick();
        let Some(run) = self.run() else { return };
        run.judge.off_failed(&device(d));
        run.hands[d].call = None;
        run.hands[d].not_before = tick + 1;
    }

    /// An answer is there.
    pub(super) fn hear(&mut self, d: usize) {
        let tick = self.tick();
        let Some(hand) = self.hand(d) else { return };
        let Some(Call { effect: Some(effect), since, answer: Some(answer), .. }) = hand.call.take() else {
            return;
        };
        if let Some(Order::Hold(_)) = hand.order {
            if let Some(run) = self.run() {
                run.judge.contact(&device(d), None, boot(tick));
            }
            let known = if self.setup.weak == Weak::LedgerOfHolds { vec![effect] } else { Vec::new() };
            return self.held(d, vec!["policy".to_owned()], known);
        }
        self.me().counted.insert(effect, tick);
        let already = answer.already && self.setup.weak != Weak::LongWindow;
        let knows_no_already = self.setup.refuses;
        let Some(run) = self.run() else { return };
        let lost = if already && knows_no_already && run.judge.was_taken_plainly(&device(d)) {
            run.hands[d].not_before = tick + 1;
            run.judge.off_refused(&device(d), boot(since), boot(tick), answer.epoch)
        } else {
            let already = already && !knows_no_already;
            run.judge.off_taken(&device(d), boot(since), boot(tick), answer.epoch, already)
        };
        self.note_loss(d, lost);
    }

    fn note_loss(&mut self, d: usize, lost: bool) {
        if lost {
            if let Some(hand) = self.hand(d) {
                hand.order = None;
            }
            self.persist(Event::Lost { device: device(d) });
        }
    }

    /// No answer within the call's time, or a late one to a question.
    pub(super) fn give_up_waiting(&mut self, d: usize) {
        let tick = self.tick();
        let Some(call) = self.hand(d).and_then(|hand| hand.call.take()) else { return };
        match (call.effect, call.late) {
            (Some(effect), _) => {
                let who = self.who;
                let ours = |message: &&mut super::world::Message| {
                    message.effect == effect && message.sender == Some(who)
                };
                self.state.world.messages.iter_mut().filter(ours).for_each(|message| message.stray = true);
                self.me().counted.insert(effect, tick);
                match self.hand(d).and_then(|hand| hand.order.clone()) {
                    Some(Order::Hold(_)) => self.held(d, Vec::new(), Vec::new()),
                    _ => self.off_failed(d),
                }
            }
            (None, Some(power)) => {
                let epoch = Some(self.epoch(d));
                let (asked_at, answered_at) = (boot(call.since), boot(tick));
                self.judge_reading(
                    d,
                    Reading { power, asked_at, answered_at, epoch, said: String::new(), lowered_by: None },
                );
            }
            (None, None) => {
                if let Some(run) = self.run() {
                    run.judge.silence(&device(d), boot(call.since), boot(tick));
                    run.hands[d].not_before = tick + 1;
                }
                self.fell_silent(d, call.since);
            }
        }
    }

    /// A device that answered within the fence does not any more: stored, so that it binds successors.
    fn fell_silent(&mut self, d: usize, since: u64) {
        let session = &mut self.me().sessions[d];
        if session.heard && session.silent.is_none() {
            session.silent = Some(since);
            self.persist(Event::Silent { device: device(d), silent: true });
        }
    }

    fn answers_again(&mut self, d: usize) {
        let session = &mut self.me().sessions[d];
        session.heard = true;
        if session.silent.take().is_some() {
            self.persist(Event::Silent { device: device(d), silent: false });
        }
    }

    pub(super) fn read_in_fence(&mut self, d: usize, luck: Luck) {
        let since = self.tick();
        let late = (luck == Luck::Late).then(|| self.says(d));
        if luck != Luck::Fine {
            if let Some(hand) = self.hand(d) {
                hand.call = Some(Call { effect: None, epoch: None, since, answer: None, late });
            }
            return;
        }
        let reading = self.read(d);
        self.judge_reading(d, reading);
    }

    fn judge_reading(&mut self, d: usize, reading: Reading) {
        let weak = self.setup.weak;
        let ledger = self.record().ledger.clone();
        let Some(run) = self.run() else { return };
        // Weakened, every look before an off says On, whatever the device said.
        let look = run.judge.wants_off().is_empty() && run.hands[d].order.is_none();
        let power = if weak == Weak::LongWindow && look { Power::On } else { reading.power };
        let mut lost = false;
        if run.judge.life(&device(d)) != reading.epoch.map(|epoch| epoch.id) {
            // In each of its lives the device is asked whose machine it controls before it is looked at.
            let (epoch, asked_at) = (reading.epoch, reading.asked_at);
            let (said, _) = self.asks_whose(d);
            if said == IdentityMatch::Mismatch {
                return self.gives_up(Reason::IdentityMismatch);
            }
            let Some(run) = self.run() else { return };
            lost = run.judge.identified(&device(d), said, epoch, asked_at);
        }
        let Some(run) = self.run() else { return };
        lost |= run.judge.reading(&device(d), &Reading { power, ..reading.clone() }, &ledger);
        self.note_loss(d, lost);
        if matches!(self.gateway().task, Task::Fence(_)) {
            self.answers_again(d);
            self.found_on_while_proven_anew(d, reading);
        }
    }

    /// A device that said here whose machine it controls says On, of a node that was proven off before: breach.
    fn found_on_while_proven_anew(&mut self, d: usize, reading: Reading) {
        let was_proven = self.record().fence.as_ref().is_some_and(|fence| fence.was_proven);
        let is_ours = self.run().is_some_and(|run| run.judge.is_identified(&device(d)));
        if was_proven && is_ours {
            let asked_at = reading.asked_at;
            self.found_on(&[Look { device: device(d), asked_at, reading: Some(reading) }]);
        }
    }

    /// What follows from the verdict.
    pub(super) fn judge(&mut self) {
        let tick = self.tick();
        let ledger = self.record().ledger.clone();
        let Some(run) = self.run() else { return };
        match run.judge.verdict(&ledger, boot(tick), Now(tick).wall()) {
            Verdict::Confirmed(proof) => {
                if self.apply(Event::Confirmed(&proof)).is_ok() {
                    self.me().ground = Some(Arc::new(ReleaseGround::Confirmed(proof)));
                    self.confirmed();
                }
            }
            Verdict::Restarted(_) => self.level_spent(Reason::BmcRestarted),
            Verdict::Contradiction(_) => self.gives_up(Reason::Contradiction),
            Verdict::GradeTooLow { .. } => self.level_spent(Reason::GradeTooLow),
            Verdict::Open => {}
        }
    }

    /// The next level is tried, or a person is asked.
    pub(super) fn level_spent(&mut self, reason: Reason) {
        let level = self.record().fence.as_ref().map_or(0, |fence| fence.level + 1);
        if !self.setup.apart || level >= self.setup.hosts {
            return self.gives_up(reason);
        }
        if self.persist(Event::NextLevel { why: String::new(), gives_way: false }).is_none() {
            return;
        }
        let Some(run) = self.run() else { return };
        run.judge.try_level(level);
        run.hands[level].live = false;
    }

    pub(super) fn gives_up(&mut self, reason: Reason) {
        self.persist(Event::GiveUp { reason, detail: String::new() });
    }
}
