//! A release that sets something up, which lets the volume go for as long as it stands, and a moment longer: a taint. As
//! `engine/node/quarantine`.

use std::time::Duration;

use super::actions::{Do, Luck};
use super::properties;
use super::state::State;
use super::tasks::Releasing;
use super::turn::{Eye, Turn};
use super::weaken::Weak;
use super::world::detach;
use crate::event::Event;
use crate::ids::EffectId;
use crate::ledger::EffectKind;
use crate::record::{Phase, ReleaseStage};

/// So many ticks after it was taken away it may still be acted on.
pub(super) const LINGERS: u64 = 2;

/// The same, as a release says it.
pub(super) fn lingers() -> Duration {
    Duration::from_secs(LINGERS)
}

impl Eye<'_> {
    /// What stands, and was not seen to be gone.
    fn standing(self) -> impl Iterator<Item = EffectId> {
        self.gateway().record().ledger.standing().map(|(id, _)| id)
    }

    /// What stands although nothing proves that the node is off is taken away beside whatever is done.
    pub(super) fn plan_standing(self) -> Option<Do> {
        let gateway = self.gateway();
        let is_proven = gateway.record().phase == Phase::Fenced && gateway.ground.is_some();
        let due = self.tick() >= gateway.withdraw_at && !is_proven && self.standing().next().is_some();
        due.then_some(Do::Withdraw)
    }

    /// What comes before the next attempt.
    pub(super) fn plan_set_up(self, run: &Releasing) -> Option<Do> {
        if run.looks.is_none() {
            return Some(Do::Look);
        }
        if self.standing().any(|effect| !run.set_up.contains(&effect)) {
            return Some(Do::Withdraw);
        }
        let fence = self.gateway().record().fence.as_ref();
        let stage = fence.and_then(|fence| fence.release(&detach())).map(|state| state.stage);
        (stage == Some(ReleaseStage::Accepted)).then_some(Do::Follow(0))
    }
}

impl Turn<'_> {
    /// What this run set up stands on its own look.
    pub(super) fn sets_up(&mut self) {
        let standing: Vec<EffectId> = self.eye().standing().collect();
        if self.setup.weak == Weak::Standing && !standing.is_empty() {
            let _ = self.apply(Event::Closed { effects: standing, why: "sent" });
            return;
        }
        if let Some(run) = self.letting_go() {
            run.set_up = standing;
        }
    }

    /// Takes away what stands. It counts as gone where nothing that is open may set it up anew.
    pub(super) fn withdraw(&mut self, luck: Luck) {
        let tick = self.tick();
        self.me().withdraw_at = tick + 1;
        self.letting_go().into_iter().for_each(|run| (run.looks, run.next) = (None, tick + 1));
        if luck != Luck::Fine {
            return;
        }
        if std::mem::replace(&mut self.state.world.stands, false) {
            self.state.world.acts_until = tick + LINGERS;
        }
        let of_release = |kind: &EffectKind| matches!(kind, EffectKind::Release(_));
        let over = match self.setup.weak {
            Weak::Settled => {
                let open = self.record().ledger.open().iter();
                open.filter(|open| of_release(&open.kind)).map(|open| open.id).collect()
            }
            _ => self.gateway().expired(tick, of_release),
        };
        if !over.is_empty() && self.persist(Event::Closed { effects: over, why: "over" }).is_none() {
            return;
        }
        let effects: Vec<EffectId> = self.eye().standing().collect();
        if effects.is_empty() || self.persist(Event::Withdrawn { effects: effects.clone() }).is_none() {
            return;
        }
        self.me().counted.extend(effects.iter().map(|effect| (*effect, tick)));
        if self.setup.weak == Weak::Lingers {
            let _ = self.apply(Event::Closed { effects, why: "gone" });
        }
    }

    /// Whether it still stands, and whether anything is left.
    pub(super) fn follow_standing(&mut self) {
        let tick = self.tick();
        self.letting_go().into_iter().for_each(|run| (run.looks, run.next) = (None, tick + 1));
        let (stands, owned) = (self.state.world.stands, self.state.world.owned[0]);
        let stage = match (stands, owned) {
            (false, _) => ReleaseStage::Pending,
            (true, true) => return,
            (true, false) => {
                self.withdraw(Luck::Fine);
                if self.eye().standing().next().is_some() {
                    return;
                }
                ReleaseStage::Complete
            }
        };
        let (release, detail) = (detach(), String::new());
        self.persist(Event::ReleaseProgress { release, stage, detail, known: None });
        let is_released = self.record().phase == Phase::Released;
        if is_released && self.state.world.owned[0] {
            self.state.wrong.get_or_insert(properties::KEPT);
        }
    }
}

/// Whoever sees it, or saw it a moment ago, lets the volume go.
pub(super) fn acts(state: &mut State) {
    use super::world::Cause;
    state.world.owned[0] = false;
    // Of a button that somebody presses no rule can know before it is seen.
    if state.world.power == Some(Cause::Known) {
        state.wrong.get_or_insert(properties::RELEASE);
    }
}

/// Whether the volume may be let go just now.
pub(super) fn is_acted_on(state: &State) -> bool {
    state.world.stands || state.tick < state.world.acts_until
}
