//! What a gateway does next, and that it does it; with the drains, as `engine/node/drain`.

use super::actions::{Do, Luck};
use super::gateways::Session;
use super::tasks::{Kinds, Task, Then};
use super::turn::{Eye, Turn};
use super::world::{DEVICES, Message, device};
use crate::event::Event;
use crate::ids::EffectId;
use crate::ledger::{EffectKind, OpenEffect};
use crate::record::Phase;

/// What the gateway does next; `None`: it waits for somebody, or for time.
pub(super) fn plan(turn: Eye<'_>) -> Option<Do> {
    let gateway = turn.gateway();
    if gateway.paused || gateway.lead.is_none() {
        return None;
    }
    if turn.leadership().is_none_or(|leadership| leadership.check().is_err()) {
        return Some(Do::Resign);
    }
    if let Some(withdraw) = turn.plan_standing() {
        return Some(withdraw);
    }
    match &gateway.task {
        Task::Rest => {
            let has: fn(&EffectKind) -> bool = match gateway.record().phase {
                Phase::Normal | Phase::PowerOnFailed => |_| true,
                Phase::Released => |kind| !kind.bars_proof(),
                _ => |_| false,
            };
            let over = gateway.expired(turn.tick(), has);
            (!over.is_empty()).then_some(Do::Close(over))
        }
        Task::Drain { kinds, asked, then } => plan_drain(turn, *kinds, asked, *then),
        Task::Fence(run) => turn.plan_fencing(run),
        Task::LetGo(run) => turn.plan_releasing(run),
        Task::Bring(run) => turn.plan_bringing(run),
    }
}

fn plan_drain(turn: Eye<'_>, kinds: Kinds, asked: &[bool; DEVICES], then: Then) -> Option<Do> {
    let gateway = turn.gateway();
    let over = gateway.expired(turn.tick(), |kind| kinds.has(kind));
    if !over.is_empty() {
        return Some(Do::Close(over));
    }
    if !gateway.has_open(kinds) {
        return (then == Then::Back).then_some(Do::Back);
    }
    let open = || gateway.record().ledger.open().iter().filter(|open| kinds.has(&open.kind));
    let ours = |d: &usize| {
        let of =
            |open: &OpenEffect| open.kind.device() == Some(&device(*d)) && gateway.own.contains(&open.id);
        open().any(of)
    };
    (0..turn.setup.hosts).find(|d| !asked[*d] && ours(d)).map(Do::Quiesce)
}

impl Turn<'_> {
    pub(super) fn does(&mut self, what: Do, luck: Luck) {
        match what {
            Do::Resign => self.resign(),
            Do::Close(effects) => drop(self.persist(Event::Closed { effects, why: "over" })),
            Do::Quiesce(d) => self.quiesce(d, luck),
            Do::Back => self.back(),
            Do::HoldIntent(d) => self.hold_intent(d),
            Do::SendHold(d) => self.send_hold(d),
            Do::OffIntent => self.off_intent(),
            Do::SendOff(d) => self.send_off(d),
            Do::Read(d) => self.read_in_fence(d, luck),
            Do::Hear(d) => self.hear(d),
            Do::GiveUpWaiting(d) => self.give_up_waiting(d),
            Do::Judge => self.judge(),
            Do::Unproven => self.unproven(),
            Do::Look => self.look_before_release(luck),
            Do::Survey => self.survey(luck),
            Do::Follow(_) if self.setup.stands => self.follow_standing(),
            Do::Follow(v) => self.follow(v),
            Do::ReleaseIntent(v) => self.release_intent(v),
            Do::SendRelease => self.send_release(),
            Do::HearRelease => self.hear_release(),
            Do::Withdraw => self.withdraw(luck),
            Do::RestoreIntent => self.restore_intent(),
            Do::SendRestore(d) => self.send_restore(d),
            Do::OnIntent => self.on_intent(),
            Do::SendOn(d) => self.send_on(d),
            Do::HearBack(d) => self.hear_back(d),
            Do::ReadOn(d) => self.read_on(d, luck),
            Do::SeenOn => self.seen_on(),
            Do::SeenAlive => self.seen_alive(),
        }
    }

    /// Ends the session: what this process sent in it is void, and so its end is known.
    pub(super) fn quiesce(&mut self, d: usize, luck: Luck) {
        let (who, tick) = (self.who, self.tick());
        if let Task::Drain { asked, .. } = &mut self.me().task {
            asked[d] = true;
        }
        // One that was left behind where the address led before is closed by nobody: it ends by itself.
        let (life, orphan) = (self.setup.life, self.gateway().sessions[d].orphan);
        let is_left = orphan.is_some_and(|since| tick < since + life);
        if luck != Luck::Fine || is_left {
            self.me().unclosed[d] = Some(tick);
            self.says_something(d);
            return;
        }
        let Task::Drain { kinds, .. } = self.gateway().task else { return };
        let of_session = |message: &Message| message.sender == Some(who) && message.verb.device() == Some(d);
        self.state.world.messages.retain(|message| !of_session(message));
        let me = self.me();
        let session = &mut me.sessions[d];
        *session = Session { open: false, heard: false, silent: None, orphan: None, ..*session };
        let gateway = self.gateway();
        let ended = |open: &&OpenEffect| {
            kinds.has(&open.kind) && open.kind.device() == Some(&device(d)) && gateway.own.contains(&open.id)
        };
        let effects: Vec<EffectId> =
            gateway.record().ledger.open().iter().filter(ended).map(|open| open.id).collect();
        if !effects.is_empty() {
            self.persist(Event::Closed { effects, why: "its session was closed" });
        }
    }
}
