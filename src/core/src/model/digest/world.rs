//! What is true, whoever knows it, in numbers.

use super::verb;
use crate::model::bytes::Bytes;
use crate::model::state::State;
use crate::model::world::Cause;

/// Power, volumes, devices and messages.
pub(super) fn world(to: &mut Bytes, state: &State) {
    let world = &state.world;
    match world.power {
        None => to.put(0),
        Some(Cause::Known) => to.put(1),
        Some(Cause::Button(at)) => {
            to.put(2);
            to.age(at);
        }
    }
    to.put(world.cycle.map_or(0, |at| 1 + at.saturating_sub(state.tick)));
    world.owned.iter().for_each(|owned| to.flag(*owned));
    to.flag(world.stands);
    to.ahead(world.acts_until);
    to.number(world.acted.map(|generation| generation.0));
    to.flag(world.kept_off);
    to.flag(world.owed);
    for board in &world.boards {
        to.put(board.life);
        to.flag(board.lies);
        to.flag(board.kept);
    }
    // Those that differ in nothing but their order are the same.
    let mut messages: Vec<_> = world.messages.iter().collect();
    messages.sort_by_key(|message| (message.verb, message.effect, message.since, message.stray));
    to.put(messages.len() as u64);
    for message in messages {
        verb(to, message.verb);
        to.effect(message.effect);
        to.put(message.generation.0);
        to.put(message.sender.map_or(0, |who| 1 + who as u64));
        to.age(message.since);
        to.flag(message.stray);
        to.flag(message.unseen);
        let of_now = |who: usize, d: usize| state.gateways[who].sessions[d].number == message.session;
        to.flag(message.sender.zip(message.verb.device()).is_some_and(|(who, d)| of_now(who, d)));
        to.flag(message.astray);
    }
    to.flag(world.astray);
    to.put(world.reliance.map_or(0, |reliance| 1 + reliance.until.saturating_sub(state.tick)));
}

/// How much may still go wrong.
pub(super) fn left(to: &mut Bytes, state: &State) {
    state.left.counts().into_iter().for_each(|(_, count)| to.put(u64::from(count)));
}
