//! What callers, people and the watch bring to a gateway: as `engine/node/command`, `watching` and `kept_off`.

use std::sync::Arc;
use std::time::Duration;

use super::actions::Luck;
use super::properties;
use super::setup::Setup;
use super::standing::lingers;
use super::turn::Turn;
use super::weaken::Weak;
use super::world::{Cause, Verb, detach, number};
use crate::event::{Event, FenceRequest, Person, PlannedRelease};
use crate::ground::{AttestedOff, ReleaseGround};
use crate::ids::{EffectId, FenceId};
use crate::ledger::EffectKind;
use crate::order::Opened;
use crate::outcome::Reason;
use crate::power::Power;
use crate::record::{Bringing, Phase, ReleaseStage, Then};
use crate::store::Stored;
use crate::support;

/// Whoever acts in person.
pub(super) fn ops() -> Person {
    Person { name: "ops".to_owned(), reason: String::new() }
}

impl Setup {
    /// A fence that somebody asks for.
    fn request(&self, id: FenceId) -> FenceRequest {
        let max_in_flight = Some(Duration::from_secs(self.life));
        FenceRequest {
            id,
            holder: support::holder("ops", if self.reboots { Then::PowerOn } else { Then::StayOff }),
            topology: self.topology.clone(),
            releases: vec![PlannedRelease {
                id: detach(),
                max_in_flight,
                lingers: self.stands.then(lingers),
                by_name: false,
            }],
            ..support::request(1, &[&[support::host("a")]], &[])
        }
    }
}

impl Turn<'_> {
    pub(super) fn wants_fence(&mut self) {
        let id = self.setup.fence_id(self.record().generation);
        if self.apply(Event::Fence(Box::new(self.setup.request(id)))).is_ok() {
            self.me().resumed = false;
        }
    }

    pub(super) fn person(&mut self, event: Event<'_>) {
        // Where it is refused they are told why, and nothing changed.
        let _ = self.apply(event);
    }

    /// What a release set up is taken away before it is given up.
    pub(super) fn abandons(&mut self) {
        if self.setup.stands {
            self.withdraw(Luck::Fine);
        }
        self.person(Event::Abandon { release: detach(), person: ops(), orphan: false });
    }

    /// A sign of life before the off: what was begun is undone.
    pub(super) fn recovers(&mut self) {
        self.persist(Event::Abort { why: String::new() });
    }

    /// A person says that it was alive: it is left as it is, and what was begun is undone.
    pub(super) fn stands_down(&mut self) {
        if self.apply(Event::StandDown(ops())).is_ok() {
            (self.state.world.kept_off, self.state.world.owed) = (false, false);
        }
    }

    pub(super) fn attests(&mut self) {
        let looks = self.look(false);
        let term = self.gateway().lead.map(|lead| lead.term);
        if self.apply(Event::Attest { person: ops(), looks: &looks }).is_ok()
            && let (Some(term), Phase::Fenced | Phase::Released) = (term, &self.record().phase)
        {
            let word = AttestedOff::of(self.record(), term);
            self.me().ground = word.map(|word| Arc::new(ReleaseGround::Attested(word)));
            self.confirmed();
        }
    }

    /// The node is held to be off from now on, until somebody unfences it.
    pub(super) fn confirmed(&mut self) {
        (self.state.world.kept_off, self.state.world.owed) = (true, false);
        let attested = self.record().fence.as_ref().is_some_and(|fence| fence.attestation.is_some());
        if self.state.world.power == Some(Cause::Known) && !attested {
            self.state.wrong.get_or_insert(properties::LIT);
        }
        let holds = self.record().fence.iter().flat_map(|fence| &fence.holds);
        let mut engaged =
            holds.filter(|(_, hold)| !hold.engaged.is_empty()).map(|(device, _)| number(device));
        if engaged.any(|d| !self.state.world.boards[d].kept) {
            self.state.wrong.get_or_insert(properties::HOLD);
        }
    }

    pub(super) fn wants_unfence(&mut self) {
        let unfence = Event::Unfence { holder: "ops".to_owned(), person: ops() };
        if self.setup.weak == Weak::Unfence && self.record().phase == Phase::Fenced {
            self.forge_released();
        }
        if self.apply(unfence).is_ok() {
            (self.state.world.kept_off, self.state.world.owed) = (false, true);
        }
    }

    /// S7 weakened: what is under way is taken for complete.
    pub(super) fn forge_released(&mut self) {
        let mut forged = Stored::clone(&self.gateway().stored);
        let record = &mut forged.record;
        let releases: Vec<EffectId> = {
            let open = record.ledger.open().iter();
            open.filter(|open| matches!(open.kind, EffectKind::Release(_))).map(|open| open.id).collect()
        };
        for id in releases {
            record.ledger.close(id);
        }
        record.phase = Phase::Released;
        for release in record.fence.iter_mut().flat_map(|fence| &mut fence.releases) {
            release.stage = ReleaseStage::Complete;
        }
        let forged = Arc::new(forged);
        self.state.stored = forged.clone();
        self.me().stored = forged;
        self.enter();
    }

    pub(super) fn overdue(&mut self) {
        match self.record().phase {
            Phase::Fencing => self.level_spent(Reason::LevelsSpent),
            Phase::Fenced => self.gives_up(Reason::ReleaseDeadline),
            Phase::Unfencing => self.overdue_on_the_way_back(),
            _ => {}
        }
    }

    /// A board that refuses to take its policy back does not keep the node off; an on that is not seen waits for a person.
    fn overdue_on_the_way_back(&mut self) {
        let fence = self.record().fence.as_ref();
        let held: Vec<_> = fence.iter().flat_map(|fence| fence.holds.keys().cloned()).collect();
        if !held.is_empty() {
            self.persist(Event::Unheld { devices: held, detail: String::new() });
        } else if self.record().bringing == Bringing::StandDown {
            self.gives_up(Reason::StandDownUnseen);
        } else {
            self.persist(Event::OnFailed { detail: String::new() });
        }
    }

    /// A node that is watched reads On: breach; while a person is waited for, it is switched off again.
    pub(super) fn notices(&mut self) {
        let Some(looks) = self.watch() else { return };
        let fence = self.record().fence.clone();
        let Some(fence) = fence.filter(|fence| fence.generation == self.record().generation) else { return };
        if self.record().phase == Phase::Released || fence.was_held_off() {
            self.found_on(&looks);
            return;
        }
        let on = looks
            .iter()
            .filter(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On));
        let devices: Vec<_> =
            on.map(|look| look.device.clone()).filter(|d| fence.switched_off.contains(d)).collect();
        if devices.is_empty() {
            return;
        }
        for one in self.persist(Event::OffIntent { devices, identified: Vec::new() }).unwrap_or_default() {
            let Opened::Off(order) = one else { continue };
            let d = number(order.device());
            if !self.eye().is_full() {
                self.send(Verb::Off(d), order.effect(), order.generation(), false);
                self.state
                    .world
                    .messages
                    .iter_mut()
                    .filter(|m| m.effect == order.effect())
                    .for_each(|m| m.stray = true);
            }
        }
    }
}
