//! What comes of an action.

use super::actions::{Action, Luck};
use super::callers::ops;
use super::gateways::Gateway;
use super::setup::Setup;
use super::state::State;
use super::turn::Turn;
use super::world::{ALWAYS, Cause, GATEWAYS};
use super::{arrivals, digest, properties, standing};
use crate::event::Event;

/// The state after it.
pub(super) fn next(setup: &Setup, before: &State, action: &Action) -> State {
    let mut state = before.clone();
    let left = &mut state.left;
    match action {
        Action::Does(_, _, Luck::Silent | Luck::Late) => left.silences -= 1,
        Action::Unanswered(..) | Action::Strays(..) => left.late -= 1,
        Action::ArrivesTwice(..) => left.doubled -= 1,
        Action::RestartsUnder(_) => left.restarts -= 1,
        Action::Crashes(_) => left.crashes -= 1,
        Action::Pauses(_) => left.pauses -= 1,
        Action::IsCut(_) => left.cuts -= 1,
        Action::WantsFence(_) => left.fences -= 1,
        Action::WantsUnfence(_) if left.unfences < ALWAYS => left.unfences -= 1,
        Action::WantsReceipt(_) => left.receipts -= 1,
        Action::Retries(_) | Action::Attests(_) | Action::Abandons(_) | Action::StandsDown(_) => {
            left.people -= 1
        }
        Action::Overdue(_) => left.overdue -= 1,
        Action::Recovers(_) => left.aborts -= 1,
        Action::Dies => left.deaths -= 1,
        Action::Leads => left.leads -= 1,
        Action::CycleBegins => left.cycles -= 1,
        Action::Button => left.buttons -= 1,
        _ => {}
    }
    macro_rules! at {
        ($who:expr) => {
            Turn { setup, state: &mut state, who: $who }
        };
    }
    match action.clone() {
        Action::Does(who, what, luck) => at!(who).does(what, luck),
        Action::Campaigns(who) => at!(who).campaign(),
        Action::WantsFence(who) => at!(who).wants_fence(),
        Action::WantsUnfence(who) => at!(who).wants_unfence(),
        Action::WantsReceipt(who) => at!(who).issue(),
        Action::HandsBack(who) => at!(who).hand_back(),
        Action::Retries(who) => at!(who).person(Event::Retry(ops())),
        Action::Attests(who) => at!(who).attests(),
        Action::Abandons(who) => {
            at!(who).abandons();
        }
        Action::Recovers(who) => at!(who).recovers(),
        Action::Dies => state.world.power = None,
        Action::Leads => state.world.astray = !state.world.astray,
        Action::StandsDown(who) => at!(who).stands_down(),
        Action::Overdue(who) => at!(who).overdue(),
        Action::Notices(who) => at!(who).notices(),
        Action::Crashes(who) => {
            for message in state.world.messages.iter_mut().filter(|message| message.sender == Some(who)) {
                (message.sender, message.stray) = (None, true);
            }
            state.gateways[who] = Gateway::new(state.stored.clone());
        }
        Action::Pauses(who) => state.gateways[who].paused = true,
        Action::GoesOn(who) => state.gateways[who].paused = false,
        Action::IsCut(who) => state.gateways[who].cut = true,
        Action::Arrives(_, index) => arrivals::arrives(setup, &mut state, index, true, false),
        Action::ArrivesTwice(_, index) => arrivals::arrives(setup, &mut state, index, true, true),
        Action::Unanswered(_, index) => arrivals::arrives(setup, &mut state, index, false, false),
        Action::Strays(_, index) => state.world.messages[index].stray = true,
        Action::RestartsUnder(index) => arrivals::restarts_under(&mut state, index),
        Action::TellsTruth(d) => state.world.boards[d].lies = false,
        Action::CycleBegins => {
            state.world.power = None;
            state.world.cycle = Some(state.tick + setup.cycle + 1);
        }
        Action::CycleEnds => {
            state.world.cycle = None;
            state.world.power = Some(Cause::Known);
            if state.world.kept_off {
                state.wrong.get_or_insert(properties::LIT);
            }
        }
        Action::Button => state.world.power = Some(Cause::Button(state.tick)),
        Action::Reattached => state.world.owned = setup.volumes(),
        Action::LetsGo => standing::acts(&mut state),
        Action::Tick => arrivals::tick(setup, &mut state),
    }
    for who in 0..GATEWAYS {
        Turn { setup, state: &mut state, who }.settle();
    }
    state.digest = digest::of(setup, &state);
    state
}
