//! A release of two parts, one a volume: what is attached is asked for, each let go and followed, and asked once more at the end. As
//! `engine/node/releasing/parts`.

use std::time::Duration;

use super::actions::{Do, Luck};
use super::properties;
use super::tasks::Releasing;
use super::turn::{Eye, Turn};
use super::weaken::Weak;
use super::world::{VOLUMES, Verb, detach, of_part, part, volume};
use crate::event::{Event, Survey};
use crate::ids::{EffectId, Generation};
use crate::ledger::EffectKind;
use crate::record::{Part, Phase, ReleaseStage, ReleaseState};

impl Eye<'_> {
    /// Which volume is to be let go next; `Err`: what is to be done first.
    pub(super) fn plan_parts(self, run: &Releasing) -> Result<usize, Do> {
        let whole = detach();
        let parts = self.gateway().record().fence.iter().flat_map(|fence| fence.parts(&whole));
        let open = parts.filter(|part| !part.stage.is_over());
        let open = open.filter_map(|state| Some((of_part(&state.id)?, state)));
        let open: Vec<(usize, &ReleaseState)> = open.collect();
        if open.is_empty() || !run.surveyed {
            return Err(Do::Survey);
        }
        let is_attempted =
            |(v, state): &&(usize, &ReleaseState)| state.stage != ReleaseStage::Accepted && run.attached[*v];
        match open.iter().find(|one| !is_attempted(one)) {
            Some((v, _)) => Err(Do::Follow(*v)),
            None => Ok(open[0].0),
        }
    }
}

impl Turn<'_> {
    /// What the node has, as whoever keeps it says.
    fn attached(&self) -> Survey {
        let part = |v| Part { volume: volume(v), device: String::new(), name: String::new() };
        let told = if self.setup.weak == Weak::OnePart { 1 } else { VOLUMES };
        let parts = (0..told).filter(|v| self.state.world.owned[*v]).map(part).collect();
        let max_in_flight = Some(Duration::from_secs(self.setup.life));
        Survey { parts, max_in_flight, ..Survey::default() }
    }

    /// Asked for before the off as well.
    pub(super) fn survey_before_off(&mut self) {
        let whole = detach();
        let known = self.record().fence.as_ref().is_some_and(|fence| fence.parts(&whole).next().is_some());
        if self.setup.parts && !known {
            let found = Ok(self.attached());
            self.persist(Event::ReleaseSurveyed { release: whole, found });
        }
        if self.setup.weak == Weak::EarlyPart {
            // Under no order: no rule gives one.
            self.send(Verb::Release(0), EffectId::default(), Generation::default(), false);
        }
    }

    /// After the confirmation, and again once all parts are over.
    pub(super) fn survey(&mut self, luck: Luck) {
        let tick = self.tick();
        if luck != Luck::Fine {
            let found = Err(String::new());
            self.persist(Event::ReleaseSurveyed { release: detach(), found });
            self.letting_go().into_iter().for_each(|run| run.next = tick + 1);
            return;
        }
        let mut found = Survey { on_ground: true, ..self.attached() };
        let was_told = self.letting_go().is_some_and(|run| run.surveyed);
        if self.setup.weak == Weak::LastSurvey && was_told {
            found.parts.clear();
        }
        let owned = self.state.world.owned;
        if let Some(run) = self.letting_go() {
            (run.surveyed, run.attached) = (true, owned);
        }
        self.persist(Event::ReleaseSurveyed { release: detach(), found: Ok(found) });
        self.is_all_gone();
    }

    /// What whoever keeps it says of one.
    pub(super) fn follow(&mut self, v: usize) {
        let (tick, id) = (self.tick(), part(v));
        let known = self.record().fence.as_ref().and_then(|fence| fence.release(&id));
        let accepted = known.is_some_and(|state| state.stage == ReleaseStage::Accepted);
        let is_there = self.state.world.owned[v] && self.setup.weak != Weak::LastSurvey;
        if is_there {
            if accepted {
                self.progress_of(v, ReleaseStage::Pending, None);
            }
            if let Some(run) = self.letting_go() {
                (run.attached[v], run.next) = (true, tick + 1);
            }
            return;
        }
        let open = self.record().ledger.open().iter();
        let attempts = open.filter(|open| open.kind == EffectKind::Release(id.clone()));
        let attempts: Vec<EffectId> = attempts.map(|open| open.id).collect();
        // What was taken has been done. One that was not answered may have been done by somebody else, and land yet.
        let known = attempts.last().copied().filter(|_| accepted);
        self.progress_of(v, ReleaseStage::Complete, known);
        if self.setup.weak == Weak::LedgerOfParts && !attempts.is_empty() {
            let _ = self.apply(Event::Closed { effects: attempts, why: "it is free" });
        }
    }

    fn progress_of(&mut self, v: usize, stage: ReleaseStage, known: Option<EffectId>) {
        self.persist(Event::ReleaseProgress { release: part(v), stage, detail: String::new(), known });
    }

    /// Released is what has nothing left, but for what a person gave up.
    fn is_all_gone(&mut self) {
        let record = &self.state.stored.record;
        let given_up = |state: &ReleaseState| state.stage == ReleaseStage::Abandoned;
        let fence = record.fence.iter().flat_map(|fence| &fence.releases);
        let is_over = record.phase == Phase::Released && !fence.into_iter().any(given_up);
        if is_over && self.state.world.owned.contains(&true) {
            self.state.wrong.get_or_insert(properties::KEPT);
        }
    }
}
