//! What happens where messages arrive, and with time: the far side of everything.

use super::setup::Setup;
use super::state::State;
use super::tasks::{Answer, Call, Task};
use super::weaken::Weak;
use super::world::{Cause, Message, Verb};
use super::{properties, standing};
use crate::ground::LOOK_LIFE;
use crate::record::Phase;

/// It arrives. `answered`: whoever waits for it hears so; `twice`: a copy of it is still under way.
pub(super) fn arrives(setup: &Setup, state: &mut State, index: usize, answered: bool, twice: bool) {
    let message =
        if twice { state.world.messages[index].clone() } else { state.world.messages.remove(index) };
    let already = takes_effect(setup, state, &message);
    if answered && !message.stray {
        answer(state, &message, already);
    }
    if twice {
        state.world.messages[index].stray = true;
    }
}

/// What it does; true if there was nothing to do.
fn takes_effect(setup: &Setup, state: &mut State, message: &Message) -> bool {
    let tick = state.tick;
    let standing = standing::is_acted_on(state);
    let world = &mut state.world;
    if message.astray {
        state.wrong.get_or_insert(properties::ASTRAY);
        return false;
    }
    if message.verb.device().is_some_and(|d| world.boards[d].lies) {
        return true;
    }
    match message.verb {
        Verb::Off(_) => {
            if state.stored.record.phase == Phase::Normal {
                state.wrong.get_or_insert(properties::OFF_BACK);
            }
            world.power.take().is_none()
        }
        Verb::On(_) => {
            if world.kept_off {
                state.wrong.get_or_insert(properties::UNWANTED_ON);
            } else if setup.stands && standing {
                state.wrong.get_or_insert(properties::STANDS);
            } else if world.reliance.is_some_and(|reliance| tick < reliance.until) {
                state.wrong.get_or_insert(properties::RECEIPT);
            }
            world.owed = false;
            world.power.replace(Cause::Known).is_some()
        }
        Verb::Hold(d) => {
            if state.stored.record.phase == Phase::Normal {
                state.wrong.get_or_insert(properties::HELD_BACK);
            }
            std::mem::replace(&mut world.boards[d].kept, true)
        }
        Verb::Restore(d) => {
            let engaged = |device: &crate::record::HoldState| !device.engaged.is_empty();
            let fence = state.stored.record.fence.as_ref();
            let relied =
                fence.and_then(|fence| fence.holds.get(&super::world::device(d))).is_some_and(engaged);
            if world.kept_off && relied {
                state.wrong.get_or_insert(properties::HOLD);
            }
            !std::mem::replace(&mut world.boards[d].kept, false)
        }
        Verb::Release(v) => {
            // A detach names machine and place, and a cloud knows no generations.
            let acts =
                setup.parts || setup.stands || world.acted.is_none_or(|acted| message.generation > acted);
            if !acts && setup.weak != Weak::OncePerKey {
                return true;
            }
            world.acted = Some(message.generation);
            // Of a button that is pressed after the look, or where nobody but a person saw anything, no rule can know.
            let unseen = message.unseen
                || matches!(world.power, Some(Cause::Button(at)) if at + LOOK_LIFE.as_secs() >= message.since);
            if (world.owned[v] || setup.stands) && world.power.is_some() && !unseen {
                state.wrong.get_or_insert(properties::RELEASE);
            }
            if setup.stands {
                return std::mem::replace(&mut world.stands, true);
            }
            !std::mem::replace(&mut world.owned[v], false)
        }
    }
}

/// Whoever waits for it hears that it was taken.
fn answer(state: &mut State, message: &Message, already: bool) {
    let Some(who) = message.sender else { return };
    let takes = |call: &mut Option<Call>| {
        let call = call.as_mut().filter(|call| call.effect == Some(message.effect));
        if let Some(call) = call {
            call.answer = Some(Answer { already, epoch: call.epoch });
        }
    };
    match &mut state.gateways[who].task {
        Task::Fence(run) => run.hands.iter_mut().for_each(|hand| takes(&mut hand.call)),
        Task::LetGo(run) => takes(&mut run.call),
        Task::Bring(run) => run.calls.iter_mut().for_each(takes),
        Task::Rest | Task::Drain { .. } => {}
    }
}

/// The device takes an off and says so, and restarts before it does anything. Sessions end with its life, and what was on
/// its way in them.
pub(super) fn restarts_under(state: &mut State, index: usize) {
    let message = state.world.messages.remove(index);
    let Some(d) = message.verb.device() else { return };
    answer(state, &message, false);
    let board = &mut state.world.boards[d];
    (board.life, board.lies) = (board.life + 1, true);
    state.world.messages.retain(|message| message.verb.device() != Some(d));
}

/// Time passes: leases are renewed by whoever can, and what is too old is not taken any more.
pub(super) fn tick(setup: &Setup, state: &mut State) {
    let held: Vec<usize> = (0..state.gateways.len())
        .filter(|who| {
            let gateway = &state.gateways[*who];
            let leads = gateway.lead.is_some_and(|lead| state.tick < lead.until);
            leads && !gateway.paused && !gateway.cut
        })
        .collect();
    state.tick += 1;
    let tick = state.tick;
    for who in held {
        if let Some(lead) = state.gateways[who].lead.as_mut() {
            lead.until = tick + setup.permit;
            state.elected = Some((who, tick + setup.lease));
        }
    }
    if setup.weak != Weak::FarSide {
        state.world.messages.retain(|message| tick < message.since + setup.life);
    }
    state.world.reliance = state.world.reliance.filter(|reliance| tick < reliance.until);
}
