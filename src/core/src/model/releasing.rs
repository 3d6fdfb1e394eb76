//! Letting volumes go: look, intent, permit, attempt, seen complete. As `engine/node/releasing`, and `receipts` beside it.
//! Storage settles at once; a far side that works answers "complete".

use std::sync::Arc;

use super::actions::{Do, Luck};
use super::store::{Now, boot, now};
use super::tasks::{CALL, Call, Releasing, Task};
use super::turn::{Eye, Turn};
use super::weaken::Weak;
use super::world::{Reliance, Verb, detach, part};
use crate::event::Event;
use crate::gate::{self, GateFault};
use crate::ground::{Look, LookFault, ReleaseGround};
use crate::ids::{EffectId, ReleaseId};
use crate::order::Opened;
use crate::power::{Epoch, Power, Reading};
use crate::receipt::{ReceiptRequest, SeenOff};
use crate::record::ReleaseStage;
use crate::time::Clock;

/// Looks without an Off in a row after which the evidence begins from zero.
const UNKNOWN_LOOKS: u8 = 3;

impl Eye<'_> {
    pub(super) fn plan_releasing(self, run: &Releasing) -> Option<Do> {
        let (tick, gateway) = (self.tick(), self.gateway());
        if gateway.ground.is_none() {
            return Some(Do::Unproven);
        }
        if let Some(call) = run.call {
            let over = call.answer.is_some() || tick >= call.since + CALL;
            return over.then_some(Do::HearRelease);
        }
        if run.order.is_some() {
            return (!self.is_full()).then_some(Do::SendRelease);
        }
        let over = gateway.expired(tick, |kind| !kind.bars_proof());
        if !over.is_empty() {
            return Some(Do::Close(over));
        }
        if tick < run.next {
            return None;
        }
        if self.setup.stands
            && let Some(first) = self.plan_set_up(run)
        {
            return Some(first);
        }
        let at = match self.setup.parts {
            false => 0,
            true => match self.plan_parts(run) {
                Ok(at) => at,
                Err(first) => return Some(first),
            },
        };
        Some(if run.looks.is_none() { Do::Look } else { Do::ReleaseIntent(at) })
    }
}

impl Turn<'_> {
    pub(super) fn letting_go(&mut self) -> Option<&mut Releasing> {
        match &mut self.me().task {
            Task::LetGo(run) => Some(run),
            _ => None,
        }
    }

    /// Confirmed by a process that is gone: own off at once, evidence from zero.
    pub(super) fn unproven(&mut self) {
        self.me().resumed = true;
        self.persist(Event::Unproven { why: String::new(), seen: true });
    }

    /// Looks before an attempt, and whether the looks still bear the ground.
    pub(super) fn look_before_release(&mut self, luck: Luck) {
        if self.setup.weak == Weak::Look {
            self.letting_go().into_iter().for_each(|run| run.looks = Some(Vec::new()));
            return;
        }
        let looks = self.look(luck == Luck::Silent);
        if self.found_on(&looks) {
            return;
        }
        let (tick, astray) = (self.tick(), self.is_astray(0));
        let Some(ground) = self.gateway().ground.clone() else { return };
        let examined = ground.examine(&looks, boot(tick));
        let Some(run) = self.letting_go() else { return };
        run.unseen = astray || looks.iter().any(|look| look.reading.is_none());
        match examined {
            Ok(()) => {
                run.unknown = 0;
                run.looks = Some(looks);
            }
            Err(LookFault::NewEpoch(_)) => {
                drop(self.persist(Event::Unproven { why: String::new(), seen: true }))
            }
            Err(_) => {
                run.unknown += 1;
                run.next = tick + 1;
                if run.unknown >= UNKNOWN_LOOKS {
                    self.persist(Event::Unproven { why: String::new(), seen: true });
                }
            }
        }
    }

    pub(super) fn release_intent(&mut self, at: usize) {
        let release = self.release(at);
        let opened = self
            .persist(Event::ReleaseIntent { release, life: None, lingers: None, sets_up: true })
            .unwrap_or_default();
        self.sets_up();
        let Some(run) = self.letting_go() else { return };
        (run.at, run.attached[at]) = (at, false);
        for one in opened {
            if let Opened::Release(order) = one {
                run.order = Some(Arc::new(order));
            }
        }
    }

    /// Asks the store once more, examines the look once more, and sends at once.
    pub(super) fn send_release(&mut self) {
        let tick = self.tick();
        let (Some(leadership), Some(ground)) = (self.leadership(), self.gateway().ground.clone()) else {
            return;
        };
        let Some(run) = self.letting_go() else { return };
        let (at, unseen) = (run.at, run.unseen);
        let (Some(order), Some(mut looks)) = (run.order.take(), run.looks.take()) else { return };
        if self.setup.weak == Weak::Look {
            forge(&ground, &mut looks, tick);
        }
        let store = self.store();
        let stored = self.gateway().stored.clone();
        let clock = Now(tick);
        let permit = now(gate::release_permit(&store, &leadership, &clock, &stored, &ground, &looks));
        match permit {
            Ok(permit) => {
                let generation = permit.generation();
                if self.send(Verb::Release(at), order.effect(), generation, unseen) {
                    let effect = Some(order.effect());
                    let Some(run) = self.letting_go() else { return };
                    run.call = Some(Call { effect, epoch: None, since: tick, answer: None, late: None });
                } else {
                    self.attempted(ReleaseStage::Pending, Some(order.effect()));
                }
            }
            Err(GateFault::Store(crate::store::StoreError::Deposed(_))) => self.resign(),
            Err(_) => self.attempted(ReleaseStage::Pending, Some(order.effect())),
        }
    }

    /// The attempt's answer, or none within its time.
    pub(super) fn hear_release(&mut self) {
        let who = self.who;
        let Some(Call { effect: Some(effect), answer, .. }) =
            self.letting_go().and_then(|run| run.call.take())
        else {
            return;
        };
        match answer {
            // A detach is taken first; that it is done is seen.
            Some(_) if self.setup.parts => self.attempted(ReleaseStage::Accepted, None),
            // What was answered has ended; what it set up stands in the ledger besides.
            Some(_) if self.setup.stands => self.attempted(ReleaseStage::Accepted, Some(effect)),
            Some(_) => self.attempted(ReleaseStage::Complete, Some(effect)),
            None => {
                let ours = |message: &&mut super::world::Message| {
                    message.effect == effect && message.sender == Some(who)
                };
                self.state.world.messages.iter_mut().filter(ours).for_each(|message| message.stray = true);
                self.attempted(ReleaseStage::Requested, None);
            }
        }
    }

    /// What lets go the volume of that number.
    fn release(&self, at: usize) -> ReleaseId {
        if self.setup.parts { part(at) } else { detach() }
    }

    fn attempted(&mut self, stage: ReleaseStage, known: Option<EffectId>) {
        let tick = self.tick();
        let at = self.letting_go().map_or(0, |run| run.at);
        let (release, detail) = (self.release(at), String::new());
        self.persist(Event::ReleaseProgress { release, stage, detail, known });
        if let Some(run) = self.letting_go() {
            run.next = tick + 1;
        }
    }

    /// Somebody wants a receipt, and relies on it from the moment at which it is stored.
    pub(super) fn issue(&mut self) {
        let tick = self.tick();
        let over = self.gateway().expired(tick, crate::ledger::EffectKind::is_receipt);
        if !over.is_empty() && self.apply(Event::Closed { effects: over, why: "over" }).is_err() {
            return;
        }
        let looks = self.look(false);
        if self.found_on(&looks) {
            return;
        }
        let Some(ground) = self.gateway().ground.clone() else { return };
        let Ok(seen) = SeenOff::of(&ground, &looks, boot(tick), Now(tick).wall()) else { return };
        // Asked for again, it takes the place of the one that is relied on.
        let renews = self.state.world.reliance.map(|reliance| reliance.receipt);
        let id = crate::ids::ReceiptId::mint(Now(tick).wall(), [self.state.left.receipts; 10]);
        let (life, margin) = (self.setup.rules.receipt_life, self.setup.rules.receipt_margin);
        let request = ReceiptRequest {
            id,
            seen,
            by: "other".to_owned(),
            audience: String::new(),
            system_uuid: String::new(),
            renews,
            life,
            margin,
        };
        let Ok(opened) = self.apply(Event::ReceiptIntent(Box::new(request))) else { return };
        for one in opened {
            let Opened::Receipt(order) = one else { continue };
            let until = tick + (life + margin).as_secs();
            self.state.world.reliance = Some(Reliance { receipt: order.statement().id, until });
            if self.setup.weak == Weak::Receipt {
                let _ = self.apply(Event::Closed { effects: vec![order.effect()], why: "issued" });
            }
        }
    }

    /// Whoever relied on it does not any more, and says so.
    pub(super) fn hand_back(&mut self) {
        if let Some(Reliance { receipt, .. }) = self.state.world.reliance.take() {
            let _ = self.apply(Event::ReceiptReturned { id: receipt, by: "other".to_owned() });
        }
    }
}

/// What was never asked, in the words of a device that reads Off.
fn forge(ground: &ReleaseGround, looks: &mut Vec<Look>, tick: u64) {
    let ReleaseGround::Confirmed(proof) = ground else { return };
    let at = boot(tick);
    let of = |(device, epoch): (&crate::ids::DeviceId, Option<u64>)| {
        let epoch = epoch.map(|id| Epoch { id, loss: None });
        let reading = Reading {
            power: Power::Off,
            asked_at: at,
            answered_at: at,
            epoch,
            said: String::new(),
            lowered_by: None,
        };
        Look { device: device.clone(), asked_at: at, reading: Some(reading) }
    };
    *looks = proof.devices().map(of).collect();
}
