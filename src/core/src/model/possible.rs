//! All that can happen next.

use super::actions::{Action, Do, Luck};
use super::gateways::Gateway;
use super::setup::Setup;
use super::state::State;
use super::tasks::Task;
use super::turn::Eye;
use super::weaken::Weak;
use super::world::{GATEWAYS, Message, Verb};
use super::{digest, doing, standing};
use crate::outcome::Reason;
use crate::record::{Cause, Phase};

/// Whether a gateway's permit holds.
fn leads(setup: &Setup, state: &State, who: usize) -> bool {
    Eye { setup, state, who }.leadership().is_some_and(|leadership| leadership.check().is_ok())
}

/// Whether a gateway leads and hears callers now.
fn hears(state: &State, who: usize) -> bool {
    let gateway = &state.gateways[who];
    let busy = match &gateway.task {
        Task::Bring(run) => run.is_busy(),
        _ => false,
    };
    gateway.lead.is_some() && !gateway.paused && !busy
}

/// Nothing that this gateway would do, or be answered, waits.
fn is_patient(state: &State, message: &Message) -> bool {
    let waits = message.sender.is_some_and(|who| !state.gateways[who].paused);
    message.stray || !waits
}

/// All that can happen next.
pub(super) fn all(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    if state.wrong.is_some() {
        return;
    }
    let left = &state.left;
    let mut urgent = false;
    for who in 0..GATEWAYS {
        if let Some(next) = doing::plan(Eye { setup, state, who }) {
            urgent = true;
            match next {
                Do::Read(_) if left.silences > 0 => {
                    actions.push(Action::Does(who, next.clone(), Luck::Silent));
                    actions.push(Action::Does(who, next.clone(), Luck::Late));
                }
                Do::Look | Do::Survey | Do::ReadOn(_) | Do::Quiesce(_) | Do::Withdraw
                    if left.silences > 0 =>
                {
                    actions.push(Action::Does(who, next.clone(), Luck::Silent));
                }
                _ => {}
            }
            actions.push(Action::Does(who, next, Luck::Fine));
        }
    }
    gateways(setup, state, actions);
    for (index, message) in state.world.messages.iter().enumerate() {
        let verb = message.verb;
        actions.push(Action::Arrives(verb, index));
        let awaited = !message.stray && message.sender.is_some();
        if awaited && left.late > 0 {
            actions.push(Action::Unanswered(verb, index));
            actions.push(Action::Strays(verb, index));
        }
        // What goes to a cloud goes by TCP, and arrives once.
        let once = (setup.parts || setup.stands) && matches!(verb, Verb::Release(_));
        if left.doubled > 0 && !once {
            actions.push(Action::ArrivesTwice(verb, index));
        }
        if left.restarts > 0 && awaited && matches!(verb, Verb::Off(_)) {
            actions.push(Action::RestartsUnder(index));
        }
    }
    let answered = state.world.messages.iter().all(|message| is_patient(state, message));
    surroundings(setup, state, actions);
    let cycle = state.world.cycle.is_none_or(|at| at > state.tick + 1);
    if !urgent && answered && cycle {
        actions.push(Action::Tick);
    }
}

fn gateways(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    let left = &state.left;
    let vacant = state.elected.is_none_or(|(_, until)| until <= state.tick);
    for who in 0..GATEWAYS {
        let gateway = &state.gateways[who];
        if gateway.paused {
            actions.push(Action::GoesOn(who));
        } else if gateway.lead.is_none() && vacant && (who == 0 || !digest::are_twins(setup, state)) {
            actions.push(Action::Campaigns(who));
        }
        if gateway.lead.is_none() {
            continue;
        }
        if left.crashes > 0 {
            actions.push(Action::Crashes(who));
        }
        if left.pauses > 0 && !gateway.paused {
            actions.push(Action::Pauses(who));
        }
        if left.cuts > 0 && !gateway.cut {
            actions.push(Action::IsCut(who));
        }
        if !hears(state, who) || !leads(setup, state, who) {
            continue;
        }
        let known = gateway.record();
        let stale = known.fence.as_ref().is_none_or(|fence| fence.generation != known.generation);
        let opens = match known.phase {
            Phase::Normal | Phase::Unfencing | Phase::PowerOnFailed => true,
            Phase::NeedsOperator(_) => stale,
            _ => false,
        };
        if left.fences > 0 && opens {
            actions.push(Action::WantsFence(who));
        }
        let weak = setup.weak == Weak::Unfence && known.phase == Phase::Fenced;
        if left.unfences > 0 && (matches!(known.phase, Phase::Released | Phase::PowerOnFailed) || weak) {
            actions.push(Action::WantsUnfence(who));
        }
        let mid = matches!(&gateway.task, Task::LetGo(run) if run.call.is_some() || run.order.is_some());
        let fenced = matches!(known.phase, Phase::Fenced | Phase::Released);
        if left.receipts > 0 && fenced && gateway.ground.is_some() && !mid {
            actions.push(Action::WantsReceipt(who));
        }
        if state.world.reliance.is_some() {
            actions.push(Action::HandsBack(who));
        }
        if left.people > 0 {
            people(state, gateway, who, actions);
        }
        let undecided = known.fence.as_ref().is_some_and(|fence| {
            let begun = fence.releases.iter().any(|release| release.attempts > 0);
            !fence.off_sent && fence.cause == Cause::Asked && fence.round == 0 && !begun
        });
        if left.aborts > 0 && undecided && matches!(gateway.task, Task::Fence(_)) {
            actions.push(Action::Recovers(who));
        }
        let can_be_overdue = match &gateway.task {
            Task::Fence(_) => true,
            Task::Bring(run) => {
                !run.is_busy() && (run.pending.is_some() || run.send_at > 0 || run.again.is_some())
            }
            Task::LetGo(run) => run.call.is_none() && run.order.is_none() && gateway.ground.is_some(),
            _ => false,
        };
        if left.overdue > 0 && can_be_overdue {
            actions.push(Action::Overdue(who));
        }
        let watched = matches!(known.phase, Phase::Released | Phase::NeedsOperator(_)) && !stale;
        let shows = state.world.power.is_some() || state.world.astray;
        if watched && shows && state.stored.version == gateway.stored.version {
            actions.push(Action::Notices(who));
        }
    }
}

fn people(state: &State, gateway: &Gateway, who: usize, actions: &mut Vec<Action>) {
    let phase = &gateway.record().phase;
    if matches!(phase, Phase::NeedsOperator(_) | Phase::PowerOnFailed) {
        actions.push(Action::Retries(who));
    }
    let under_way = state.world.messages.iter().any(|message| matches!(message.verb, Verb::On(_)));
    // Nobody vouches for what is not so, or about to be otherwise.
    let dark = state.world.power.is_none() && state.world.cycle.is_none() && !under_way;
    if dark && matches!(phase, Phase::Fencing | Phase::NeedsOperator(_)) {
        actions.push(Action::Attests(who));
    }
    if matches!(phase, Phase::NeedsOperator(_) | Phase::PowerOnFailed) {
        actions.push(Action::StandsDown(who));
    }
    if matches!(phase, Phase::Fenced | Phase::NeedsOperator(Reason::ReleaseDeadline)) {
        actions.push(Action::Abandons(who));
    }
}

fn surroundings(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    let (left, world) = (&state.left, &state.world);
    let normal = state.stored.record.phase == Phase::Normal;
    if left.deaths > 0 && normal && world.power.is_some() {
        actions.push(Action::Dies);
    }
    if left.cycles > 0 && normal && world.power.is_some() && state.stored.record.generation.0 == 0 {
        actions.push(Action::CycleBegins);
    }
    if world.cycle.is_some() {
        actions.push(Action::CycleEnds);
    }
    if left.leads > 0 {
        actions.push(Action::Leads);
    }
    if left.buttons > 0 && world.power.is_none() && world.kept_off {
        actions.push(Action::Button);
    }
    if normal && world.power.is_some() && world.owned != setup.volumes() {
        actions.push(Action::Reattached);
    }
    if setup.stands && standing::is_acted_on(state) && world.owned[0] {
        actions.push(Action::LetsGo);
    }
    for d in (0..setup.hosts).filter(|d| world.boards[*d].lies) {
        actions.push(Action::TellsTruth(d));
    }
}
