//! How a gateway changes the record, and what it asks devices. What it does in each phase stands in `fencing`, `releasing` and
//! `bringing`; all of it mirrors the engine's task of a node, in its order.

use std::sync::Arc;

use super::gateways::{Gateway, Lead, Session};
use super::properties;
use super::setup::Setup;
use super::state::State;
use super::store::{Now, OneRecord, boot, leadership, now};
use super::tasks::{Bringing, Kinds, Releasing, Task, Then};
use super::weaken::Weak;
use super::world::{DEVICES, Message, Verb, device, number};
use crate::device::IdentityMatch;
use crate::election::Leadership;
use crate::event::Event;
use crate::ground::{AttestedOff, Look, ReleaseGround};
use crate::ids::{EffectId, FenceId, Generation};
use crate::ledger::OpenEffect;
use crate::machine;
use crate::order::Opened;
use crate::outcome::Reason;
use crate::power::{Epoch, Loss, Power, Reading};
use crate::record::{NodeRecord, Phase};
use crate::step;
use crate::store::{Store, Stored};
use crate::time::Clock;

/// The node was not changed: this leadership is over, or the rules did not allow it.
#[derive(Debug)]
pub(super) enum Failure {
    Fatal,
    Refused,
}

/// What one gateway goes by when it plans.
#[derive(Clone, Copy)]
pub(super) struct Eye<'s> {
    pub(super) setup: &'s Setup,
    pub(super) state: &'s State,
    pub(super) who: usize,
}

impl<'s> Eye<'s> {
    pub(super) fn tick(self) -> u64 {
        self.state.tick
    }

    pub(super) fn gateway(self) -> &'s Gateway {
        &self.state.gateways[self.who]
    }

    /// Its permit, if it holds a leadership.
    pub(super) fn leadership(self) -> Option<Arc<Leadership>> {
        let lead = self.gateway().lead?;
        let until = (self.setup.weak != Weak::Leadership).then_some(lead.until);
        Some(leadership(lead.term, until, self.state.tick))
    }

    /// As many messages are under way as may be.
    pub(super) fn is_full(self) -> bool {
        self.state.world.messages.len() >= self.setup.most
    }
}

/// One gateway's turn.
pub(super) struct Turn<'s> {
    pub(super) setup: &'s Setup,
    pub(super) state: &'s mut State,
    pub(super) who: usize,
}

impl Turn<'_> {
    pub(super) fn tick(&self) -> u64 {
        self.state.tick
    }

    pub(super) fn gateway(&self) -> &Gateway {
        &self.state.gateways[self.who]
    }

    pub(super) fn me(&mut self) -> &mut Gateway {
        &mut self.state.gateways[self.who]
    }

    pub(super) fn record(&self) -> &NodeRecord {
        self.gateway().record()
    }

    pub(super) fn eye(&self) -> Eye<'_> {
        Eye { setup: self.setup, state: self.state, who: self.who }
    }

    pub(super) fn leadership(&self) -> Option<Arc<Leadership>> {
        self.eye().leadership()
    }

    /// The store, for one question. What it holds afterwards is given back with [`Turn::put`].
    pub(super) fn store(&self) -> OneRecord {
        let blind = self.setup.weak == Weak::Leadership;
        OneRecord::new(self.state.stored.clone(), self.state.term, blind)
    }

    /// Decides, stores, opens: as the engine's `apply`.
    pub(super) fn apply(&mut self, event: Event<'_>) -> Result<Vec<Opened>, Failure> {
        let Some(leadership) = self.leadership() else { return Err(Failure::Fatal) };
        let gateway = self.gateway();
        let (before, was_normal) = (place(gateway.record()), gateway.record().phase == Phase::Normal);
        let wall = Now(self.tick()).wall();
        let (record, version) = (gateway.record(), gateway.stored.version);
        let step =
            machine::step(record, version, event, leadership.term(), wall).map_err(|_| Failure::Refused)?;
        let store = self.store();
        let Ok(saved) = now(step::save(&store, &leadership, &step)) else {
            self.resign();
            return Err(Failure::Fatal);
        };
        let (mut stored, opened) = step.open(saved).into_parts();
        // Told to people alone: without them the record stays as small as what it decides.
        if let Some(fence) = &mut stored.record.fence {
            fence.moments.clear();
        }
        self.took(Arc::new(stored), &opened);
        let tick = self.tick();
        let me = self.me();
        if was_normal || me.record().phase == Phase::Normal {
            me.began = Some(tick);
            for session in &mut me.sessions {
                (session.heard, session.silent) = (false, None);
            }
        }
        if !matches!(me.record().phase, Phase::Fenced | Phase::Released) {
            me.ground = None;
        }
        let began = before.0 != "unfencing" && me.record().phase == Phase::Unfencing;
        if began && self.setup.reboots {
            (self.state.world.kept_off, self.state.world.owed) = (false, true);
        }
        if place(self.record()) != before {
            self.enter();
        }
        Ok(opened)
    }

    /// The same for a step of our own: the phases ask only for what the rules allow. True if it is done.
    pub(super) fn persist(&mut self, event: Event<'_>) -> Option<Vec<Opened>> {
        match self.apply(event) {
            Ok(opened) => Some(opened),
            Err(Failure::Fatal) => None,
            Err(Failure::Refused) => {
                self.state.wrong.get_or_insert(properties::REFUSED);
                None
            }
        }
    }

    fn took(&mut self, stored: Arc<Stored>, opened: &[Opened]) {
        let tick = self.tick();
        self.state.stored = stored.clone();
        let me = self.me();
        me.stored = stored;
        for one in opened {
            let id = one.effect();
            me.own.insert(id);
            me.counted.insert(id, tick);
        }
        let ledger = &me.stored.record.ledger;
        me.own.retain(|id| ledger.get(*id).is_some());
        me.counted.retain(|id, _| ledger.get(*id).is_some());
    }

    /// Begins the phase in which the record is. Calls under way are let go; what they carry is late from now on.
    pub(super) fn enter(&mut self) {
        self.late();
        let gateway = self.gateway();
        let foreign = |open: &OpenEffect| open.kind.bars_proof() && !gateway.own.contains(&open.id);
        let task = match gateway.record().phase {
            Phase::Fencing => Task::Drain { kinds: Kinds::Proof, asked: [false; DEVICES], then: Then::Fence },
            Phase::Fenced => Task::LetGo(Releasing::default()),
            Phase::Unfencing => {
                // What somebody before us sent is waited out too: what happens from here on is then our own doing.
                let all = gateway.record().ledger.open().iter().any(foreign);
                let kinds = if all { Kinds::All } else { Kinds::On };
                Task::Drain { kinds, asked: [false; DEVICES], then: Then::Bring }
            }
            _ => Task::Rest,
        };
        let me = self.me();
        me.unclosed = [None; DEVICES];
        me.task = task;
    }

    /// What it sent and waits for no longer may arrive later, or never.
    fn late(&mut self) {
        let who = self.who;
        for message in self.state.world.messages.iter_mut().filter(|message| message.sender == Some(who)) {
            message.stray = true;
        }
    }

    /// Goes on without anything that another could see: a drain that is over leads to what comes after it.
    pub(super) fn settle(&mut self) {
        let Task::Drain { kinds, then, .. } = self.gateway().task else { return };
        if self.gateway().lead.is_none() || self.gateway().has_open(kinds) || then == Then::Back {
            return;
        }
        self.me().unclosed = [None; DEVICES];
        let task = match then {
            Then::Fence => self.begin_fencing(),
            Then::Bring | Then::Back => Some(Task::Bring(Bringing::default())),
        };
        if let Some(task) = task {
            self.me().task = task;
        }
    }

    /// This leadership is over: the process goes on without, and another one need not wait for the lease.
    pub(super) fn resign(&mut self) {
        self.late();
        let who = self.who;
        self.state.elected = self.state.elected.filter(|(holder, _)| *holder != who);
        let me = self.me();
        (me.lead, me.cut, me.ground, me.task) = (None, false, None, Task::Rest);
    }

    /// Wins an election, and takes the node over as it is stored.
    pub(super) fn campaign(&mut self) {
        let (tick, who) = (self.tick(), self.who);
        let store = self.store();
        let Ok(term) = now(store.take_term()) else { return };
        self.state.term = store.into_inner().1;
        self.state.elected = Some((who, tick + self.setup.lease));
        let (stored, permit) = (self.state.stored.clone(), tick + self.setup.permit);
        let me = self.me();
        me.lead = Some(Lead { term, until: permit });
        me.counted = stored.record.ledger.open().iter().map(|open| (open.id, tick)).collect();
        me.resumed = stored.record.phase != Phase::Normal;
        let word = AttestedOff::of(&stored.record, term)
            .filter(|_| matches!(stored.record.phase, Phase::Fenced | Phase::Released));
        me.ground = word.map(|word| Arc::new(ReleaseGround::Attested(word)));
        me.stored = stored;
        let silent: Vec<usize> = me.record().fence.iter().flat_map(|f| &f.silent).map(number).collect();
        let ours = |d: &usize| me.sessions[*d].silent.is_some();
        let lost: Vec<usize> = silent.into_iter().filter(|d| !ours(d)).collect();
        self.enter();
        for d in lost {
            let known = self.record().fence.as_ref().is_some_and(|fence| fence.lost.contains(&device(d)));
            if !known && self.persist(Event::Lost { device: device(d) }).is_none() {
                return;
            }
        }
        self.settle();
    }

    /// Sends under the permit: from now on it may arrive. False if the permit is over.
    pub(super) fn send(
        &mut self,
        verb: Verb,
        effect: EffectId,
        generation: Generation,
        unseen: bool,
    ) -> bool {
        if self.leadership().is_none_or(|leadership| leadership.check().is_err()) {
            return false;
        }
        let (sender, since) = (Some(self.who), self.tick());
        let session = verb.device().map(|d| self.gateway().sessions[d]).unwrap_or_default();
        let (astray, session) = (session.astray, session.number);
        let message =
            Message { verb, effect, generation, sender, since, stray: false, unseen, session, astray };
        self.state.world.messages.push(message);
        let closes = match self.setup.weak {
            Weak::Ledger => !matches!(verb, Verb::Hold(_)),
            Weak::LedgerOfRestores => matches!(verb, Verb::Restore(_)),
            _ => false,
        };
        if closes {
            let _ = self.apply(Event::Closed { effects: vec![effect], why: "sent" });
        }
        true
    }

    /// A session lives as long as anything is said in it, and with it what was sent in it before.
    pub(super) fn says_something(&mut self, d: usize) {
        let (tick, who, session) = (self.tick(), self.who, self.gateway().sessions[d].number);
        let of_session = |message: &&mut Message| {
            message.sender == Some(who) && message.verb.device() == Some(d) && message.session == session
        };
        self.state.world.messages.iter_mut().filter(of_session).for_each(|message| message.since = tick);
        if matches!(self.gateway().task, Task::Drain { .. }) {
            let unclosed = &mut self.me().unclosed[d];
            *unclosed = unclosed.map(|_| tick);
        }
    }

    /// Whether the device that answers now is another machine's.
    pub(super) fn is_astray(&self, d: usize) -> bool {
        d == 0 && self.state.world.astray
    }

    /// Whose machine the device says that it controls, and in which life of it.
    pub(super) fn asks_whose(&mut self, d: usize) -> (IdentityMatch, Option<Epoch>) {
        let epoch = Some(self.epoch(d));
        let is_another_s = self.is_astray(d) && self.setup.weak != Weak::Whose;
        (if is_another_s { IdentityMatch::Mismatch } else { IdentityMatch::Match }, epoch)
    }

    /// The session with a device, made anew where there is none, the device restarted under it, or its address leads elsewhere.
    fn session(&mut self, d: usize) -> Epoch {
        let (life, tick, astray) = (self.state.world.boards[d].life, self.tick(), self.is_astray(d));
        let session = &mut self.me().sessions[d];
        let left = session.open && session.astray != astray;
        let lost = session.open && session.life != life || left;
        if !session.open || lost {
            let since = session.silent.unwrap_or(tick);
            let lost = lost.then_some(since);
            let orphan = if left { Some(tick) } else { session.orphan };
            let number = session.number + 1;
            *session = Session { number, open: true, life, lost, astray, orphan, ..*session };
        }
        self.says_something(d);
        let session = &self.gateway().sessions[d];
        let loss = session.lost.map(|since| Loss { epoch: session.number, since: boot(since) });
        Epoch { id: session.number, loss }
    }

    /// The life of the device in which it answers now.
    pub(super) fn epoch(&mut self, d: usize) -> Epoch {
        let epoch = self.session(d);
        match self.setup.weak {
            Weak::Epochs => Epoch::FIRST,
            _ => epoch,
        }
    }

    /// What a device says of power.
    pub(super) fn says(&self, d: usize) -> Power {
        let world = &self.state.world;
        if self.is_astray(d) {
            return if self.setup.other_is_on { Power::On } else { Power::Off };
        }
        if world.power.is_some() && !world.boards[d].lies { Power::On } else { Power::Off }
    }

    /// Asks a device for power; the answer is there at once.
    pub(super) fn read(&mut self, d: usize) -> Reading {
        let (power, epoch, at) = (self.says(d), Some(self.epoch(d)), boot(self.tick()));
        Reading { power, asked_at: at, answered_at: at, epoch, said: String::new(), lowered_by: None }
    }

    /// Asks these devices side by side; `silent`: the first of them does not answer.
    pub(super) fn look(&mut self, silent: bool) -> Vec<Look> {
        let asked_at = boot(self.tick());
        let hosts = 0..self.setup.hosts;
        let mut ask = |d| {
            let reading = (!(silent && d == 0)).then(|| self.read(d));
            Look { device: device(d), asked_at, reading }
        };
        hosts.map(&mut ask).collect()
    }

    /// The same, of a node that is watched: what another machine's device says is no reading, and a person is told.
    pub(super) fn watch(&mut self) -> Option<Vec<Look>> {
        let looks = self.look(false);
        for d in 0..self.setup.hosts {
            if self.asks_whose(d).0 == IdentityMatch::Mismatch {
                self.gives_up(Reason::IdentityMismatch);
                return None;
            }
        }
        Some(looks)
    }

    /// A host device says On although nobody unfenced the node: breach.
    pub(super) fn found_on(&mut self, looks: &[Look]) -> bool {
        let says_on = |look: &&Look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On);
        let Some(on) = looks.iter().find(says_on) else { return false };
        self.me().resumed = false;
        let id = self.setup.fence_id(self.record().generation);
        self.persist(Event::Breach { id, device: on.device.clone() });
        true
    }
}

/// Where a node stands; what a gateway is at ends when this changes.
fn place(record: &NodeRecord) -> (&'static str, u64, Option<FenceId>) {
    (record.phase.label(), record.generation.0, record.fence.as_ref().map(|fence| fence.id))
}
