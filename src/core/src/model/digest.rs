//! A state in one number: what decides how it goes on, and nothing else.
//!
//! Left out: ids, texts, histories and moments of the wall clock. Moments of the boot-time clock count as ages, and are the
//! same from where no rule tells them apart; versions as whether a gateway knows the newest; effects by their order.

mod world;

use self::world::{left, world};
use super::bytes::Bytes;
use super::gateways::Gateway;
use super::setup::Setup;
use super::state::State;
use super::tasks::{Call, Order, Task};
use super::weaken::Weak;
use super::world::{DEVICES, Verb, number, of_part};
use crate::ids::EffectId;
use crate::ledger::EffectKind;
use crate::record::{NodeRecord, Phase};

/// The number of a state.
pub(super) fn of(setup: &Setup, state: &State) -> u64 {
    let mut effects: Vec<EffectId> = state.stored.record.ledger.open().iter().map(|open| open.id).collect();
    effects.extend(state.world.messages.iter().map(|message| message.effect));
    for gateway in state.gateways.iter().filter(|gateway| leads(setup, state, gateway)) {
        effects.extend(gateway.record().ledger.open().iter().map(|open| open.id));
    }
    effects.sort_unstable();
    effects.dedup();
    let mut to = Bytes::new(setup, state.tick, effects);
    record(&mut to, &state.stored.record);
    to.put(state.term.0);
    match state.elected {
        None => to.put(0),
        Some((who, until)) => {
            to.put(1 + who as u64);
            to.ahead(until);
        }
    }
    for gateway in &state.gateways {
        one(&mut to, setup, state, gateway);
    }
    world(&mut to, state);
    left(&mut to, state);
    to.put(state.wrong.map_or(0, |what| what.len() as u64));
    // FNV-1a over 64 bits, twice mixed: a state in the model is a few hundred bytes.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for chunk in to.bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    (hash ^ (hash >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn verb(to: &mut Bytes, verb: Verb) {
    let (kind, d) = match verb {
        Verb::Off(d) => (1, d),
        Verb::On(d) => (2, d),
        Verb::Hold(d) => (3, d),
        Verb::Restore(d) => (4, d),
        Verb::Release(v) => (5, v),
    };
    to.put(kind * 4 + d as u64);
}

fn kind(to: &mut Bytes, kind: &EffectKind) {
    let (word, d) = match kind {
        EffectKind::Off(d) => (1, number(d)),
        EffectKind::On(d) => (2, number(d)),
        EffectKind::Hold(d) => (3, number(d)),
        EffectKind::Unhold(d) => (4, number(d)),
        EffectKind::Release(release) => (5, of_part(release).map_or(0, |v| 1 + v)),
        EffectKind::Receipt(_) => (6, 0),
        EffectKind::Standing(_) => (7, 0),
    };
    to.put(word * 4 + d as u64);
}

fn phase(to: &mut Bytes, phase: &Phase) {
    let (word, why) = match phase {
        Phase::Normal => (0, 0),
        Phase::Fencing => (1, 0),
        Phase::Fenced => (2, 0),
        Phase::Released => (3, 0),
        Phase::Unfencing => (4, 0),
        Phase::PowerOnFailed => (5, 0),
        Phase::NeedsOperator(reason) => (6, *reason as u64),
        Phase::Retired => (7, 0),
    };
    to.put(word);
    to.put(why);
}

fn set<'d>(to: &mut Bytes, devices: impl IntoIterator<Item = &'d crate::ids::DeviceId>) {
    to.put(devices.into_iter().map(|device| 1 << number(device)).sum());
}

fn record(to: &mut Bytes, record: &NodeRecord) {
    phase(to, &record.phase);
    to.put(record.generation.0);
    to.put(record.holds.len() as u64);
    to.put(u64::from(record.breaches));
    to.put(record.bringing as u64);
    to.put(record.ledger.open().len() as u64);
    for open in record.ledger.open() {
        to.effect(open.id);
        kind(to, &open.kind);
        to.put(open.generation.0);
        to.put(open.term.0);
        to.flag(open.stands().is_some());
    }
    // Of receipts that are not open any more only the end is told.
    for issued in record.receipts.iter().filter(|issued| record.ledger.get(issued.effect).is_some()) {
        to.effect(issued.effect);
        to.flag(issued.ended.is_some());
    }
    let Some(fence) = &record.fence else { return to.put(0) };
    to.put(fence.generation.0);
    to.put(fence.cause as u64);
    to.put(u64::from(fence.round));
    to.put(fence.level as u64);
    to.put(fence.first_level as u64);
    to.flag(fence.off_sent);
    to.flag(fence.interrupted.is_some());
    set(to, &fence.switched_off);
    set(to, &fence.identified);
    set(to, &fence.lost);
    set(to, &fence.silent);
    set(to, fence.holds.keys());
    set(to, fence.holds.iter().filter(|(_, hold)| !hold.engaged.is_empty()).map(|(device, _)| device));
    to.put(fence.releases.len() as u64);
    for release in &fence.releases {
        to.number(of_part(&release.id).map(|v| v as u64));
        to.put(release.stage as u64);
        to.flag(release.attempts > 0);
        to.flag(release.unfinished);
    }
    to.flag(fence.attestation.is_some());
    to.flag(fence.evidence.is_some());
    to.flag(fence.was_proven);
}

fn call(to: &mut Bytes, call: &Option<Call>) {
    let Some(call) = call else { return to.put(0) };
    to.put(1);
    match call.effect {
        Some(effect) => to.effect(effect),
        None => to.put(u64::from(u8::MAX)),
    }
    to.number(call.epoch.map(|epoch| epoch.id));
    to.age(call.since);
    to.put(call.answer.map_or(0, |answer| 1 + u64::from(answer.already)));
    to.put(call.late.map_or(0, |power| 1 + power as u64));
}

/// Whether a gateway's permit is not over, or nothing ends it.
fn leads(setup: &Setup, state: &State, gateway: &Gateway) -> bool {
    gateway.lead.is_some_and(|lead| state.tick < lead.until || setup.weak == Weak::Leadership)
}

/// Whether it makes no difference which of the two gateways does something.
pub(super) fn are_twins(setup: &Setup, state: &State) -> bool {
    let bytes = |who: usize| {
        let mut to = Bytes::new(setup, state.tick, Vec::new());
        one(&mut to, setup, state, &state.gateways[who]);
        to.bytes
    };
    let blank = state.gateways.iter().all(|gateway| gateway.lead.is_none() && gateway.own.is_empty());
    blank && state.world.messages.iter().all(|message| message.sender.is_none()) && bytes(0) == bytes(1)
}

fn one(to: &mut Bytes, setup: &Setup, state: &State, gateway: &Gateway) {
    to.flag(gateway.paused);
    // A process that leads nothing goes by what it will read when it does, and by what it remembers. So does one whose
    // permit is over: it can do nothing but give its leadership up.
    let Some(lead) = gateway.lead.filter(|_| leads(setup, state, gateway)) else {
        to.put(if gateway.lead.is_some() { u64::from(u8::MAX) } else { 0 });
        return remembers(to, setup, state, gateway);
    };
    to.put(lead.term.0);
    to.ahead(lead.until);
    to.flag(gateway.cut);
    let newest = gateway.stored.version == state.stored.version;
    to.flag(newest);
    if !newest {
        record(to, gateway.record());
    }
    to.flag(gateway.resumed);
    remembers(to, setup, state, gateway);
    for open in gateway.record().ledger.open() {
        to.ages(gateway.counted.get(&open.id).copied());
    }
    for d in 0..setup.hosts {
        to.ages(gateway.unclosed[d]);
    }
    to.ahead(gateway.withdraw_at);
    match gateway.ground.as_deref() {
        None => to.put(0),
        Some(ground) => {
            let fence = gateway.record().fence.as_ref();
            let same = fence.is_some_and(|fence| fence.evidence.as_ref() == Some(ground.evidence()));
            let proof = matches!(ground, crate::ground::ReleaseGround::Confirmed(_));
            to.put(1 + u64::from(same) + 2 * u64::from(proof));
            to.put(ground.term().0);
            if let crate::ground::ReleaseGround::Confirmed(proof) = ground {
                proof.devices().for_each(|(_, epoch)| to.number(epoch));
            }
        }
    }
    task(to, setup, gateway);
}

fn remembers(to: &mut Bytes, setup: &Setup, state: &State, gateway: &Gateway) {
    // What left the ledger is nobody's.
    let ledger = &state.stored.record.ledger;
    for id in gateway.own.iter().filter(|id| ledger.get(**id).is_some()) {
        to.effect(*id);
    }
    to.put(u64::from(u8::MAX));
    to.flag(gateway.began.is_some());
    for session in &gateway.sessions[..setup.hosts] {
        to.put(session.number);
        to.flag(session.open);
        to.put(session.life);
        to.flag(session.heard);
        to.ages(session.silent);
        to.flag(session.lost.is_some_and(|since| Some(since) >= gateway.began));
        to.flag(session.astray);
        to.ages(session.orphan);
    }
}

fn task(to: &mut Bytes, setup: &Setup, gateway: &Gateway) {
    match &gateway.task {
        Task::Rest => to.put(0),
        Task::Drain { kinds, asked, then } => {
            to.put(1);
            to.put(*kinds as u64 * 3 + *then as u64);
            asked.iter().for_each(|asked| to.flag(*asked));
        }
        Task::Fence(run) => {
            to.put(2);
            to.judge(&run.judge);
            for hand in &run.hands[..setup.hosts] {
                to.flag(hand.live);
                match &hand.order {
                    None => to.put(0),
                    Some(Order::Hold(order)) => {
                        to.put(1);
                        to.effect(order.effect());
                    }
                    Some(Order::Off(order)) => {
                        to.put(2);
                        to.effect(order.effect());
                    }
                }
                call(to, &hand.call);
                to.ahead(hand.not_before);
            }
        }
        Task::LetGo(run) => {
            to.put(3);
            match &run.looks {
                None => to.put(0),
                Some(looks) => {
                    to.put(1);
                    for look in looks {
                        to.moment(look.asked_at);
                        to.put(look.reading.as_ref().map_or(0, |reading| 1 + reading.power as u64));
                        to.number(
                            look.reading.as_ref().and_then(|reading| reading.epoch).map(|epoch| epoch.id),
                        );
                    }
                }
            }
            to.flag(run.unseen);
            to.flag(run.order.is_some());
            run.order.iter().for_each(|order| to.effect(order.effect()));
            call(to, &run.call);
            to.put(u64::from(run.unknown));
            to.flag(run.surveyed);
            to.put(run.set_up.len() as u64);
            run.set_up.iter().for_each(|effect| to.effect(*effect));
            run.attached.iter().for_each(|attached| to.flag(*attached));
            to.ahead(run.next);
        }
        Task::Bring(run) => {
            to.put(4);
            for d in 0..DEVICES {
                to.flag(run.undo[d].is_some());
                call(to, &run.calls[d]);
                to.flag(run.sent[d]);
                to.flag(run.dark[d]);
            }
            for d in 0..setup.hosts {
                let now = gateway.sessions[d].number;
                to.put(run.ours[d].map_or(0, |life| 1 + u64::from(life == now)));
            }
            to.flag(run.pending.is_some());
            for on in run.pending.iter().flatten() {
                to.effect(on.effect());
            }
            to.ahead(run.send_at);
            to.put(run.again.map_or(0, |at| 1 + at.saturating_sub(to.tick).min(to.old)));
            to.ahead(run.read_at);
        }
    }
}
