//! Fenced: look, intent, permit, attempt, see it complete; release after release, the parts of one side by side.

mod parts;
mod sending;
mod watch_over;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::event::Event;
use picket_core::ground::{AttestedOff, Look, LookFault, ReleaseGround};
use picket_core::ids::{EffectId, ReleaseId};
use picket_core::outcome::Reason;
use picket_core::record::{Phase, ReleaseState};
use picket_core::time::BootTime;
use picket_release::{InParts, Quarantine, Releaser, Subject};

pub(super) use self::parts::survey_event;
use super::{Fatal, Ground, NodeTask, quarantine};
use crate::paces::Backoff;
use crate::view::whose_release;

/// When something is tried, and until when.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    began: BootTime,
    deadline: BootTime,
    next: BootTime,
    backoff: Backoff,
    pause: Duration,
    /// The last attempt was made then.
    tried: BootTime,
    /// So many had something to do before.
    rounds: u32,
    /// So many of these are followed by the next one at once.
    at_once: u32,
}

impl Pacing {
    fn back_off(&mut self, now: BootTime) {
        self.next = now + self.pause;
        self.pause = self.backoff.after(self.pause);
    }

    /// An attempt had something to do before: the next one is due at once, unless that goes on and on.
    fn goes_on(&mut self, now: BootTime) {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= self.at_once {
            self.make_due(now);
        }
    }

    /// The next attempt is due at once, and what fails then is tried again soon.
    fn make_due(&mut self, now: BootTime) {
        (self.next, self.pause) = (now, self.backoff.first);
    }

    /// When half of its time is over.
    fn half(&self) -> BootTime {
        self.began + self.deadline.since(self.began) / 2
    }
}

/// What a run of the phase remembers.
struct Run {
    /// Why the last look permits no attempt.
    barred: Option<LookFault>,
    /// Of each release, and of each part of one.
    paces: BTreeMap<ReleaseId, Pacing>,
    /// Releases of parts of which this run has asked what is attached.
    surveyed: BTreeSet<ReleaseId>,
    /// Parts that were found attached since the last attempt: a new one is due.
    attached: BTreeSet<ReleaseId>,
    /// Parts of which a detach by force was taken.
    forced: BTreeSet<ReleaseId>,
    /// What was heard of each last that is not stored.
    heard: BTreeMap<ReleaseId, String>,
    /// What was said of parts whose attempts were taken and came to nothing.
    in_vain: BTreeMap<ReleaseId, String>,
    /// What this run set up, and what stands on its own look.
    set_up: BTreeSet<EffectId>,
    /// What was taken has at least this part of the deadline before it is forced.
    force_part: u32,
}

impl Run {
    fn pace(&mut self, id: &ReleaseId) -> Option<&mut Pacing> {
        self.paces.get_mut(id)
    }

    fn back_off(&mut self, id: &ReleaseId, now: BootTime) {
        if let Some(pacing) = self.pace(id) {
            pacing.back_off(now);
        }
    }

    /// When a part that is under way is due once more, by force; `None`: that is not allowed, or done.
    fn force_due(&self, id: &ReleaseId, releaser: &dyn Releaser) -> Option<BootTime> {
        let forces = releaser.in_parts().is_some_and(InParts::forces) && !self.forced.contains(id);
        let pacing = self.paces.get(id).filter(|_| forces)?;
        let span = pacing.deadline.since(pacing.began);
        Some(pacing.half().max(pacing.tried + span / self.force_part))
    }
}

/// What comes after a step.
enum Next {
    /// The next step, at once.
    Again,
    /// It is waited for: until when nothing is due, and until when at most.
    Wait(BootTime, BootTime),
    /// The node was moved, or a person is asked.
    Moved,
}

impl NodeTask {
    pub(super) async fn releasing(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        if self.ground.is_none() {
            // Confirmed by a process that is gone: own off at once, evidence from zero.
            self.resumed = true;
            let why = "it was confirmed by another leadership";
            self.persist(|| Event::Unproven { why: why.to_owned(), seen: false }).await?;
            return Ok(());
        }
        self.unseen = 0;
        let mut run = Run {
            barred: None,
            paces: BTreeMap::new(),
            surveyed: BTreeSet::new(),
            attached: BTreeSet::new(),
            forced: BTreeSet::new(),
            heard: BTreeMap::new(),
            in_vain: BTreeMap::new(),
            set_up: BTreeSet::new(),
            force_part: self.plan.paces.release_force_part,
        };
        loop {
            // By the ledger an attempt may still set something up until it has ended there.
            self.close_expired(|kind| !kind.bars_proof()).await?;
            if self.place() != here {
                return Ok(());
            }
            // What stands on another confirmation, or by another leadership, goes first, whichever release is due (K3).
            if self
                .record()
                .ledger
                .standing()
                .any(|(effect, release)| self.is_from_before(&run, release, effect))
            {
                self.withdraw_unseen().await?;
            }
            let Some(state) = self.next_release() else { return Ok(()) };
            let whole = state.id.whole();
            let Some(releaser) = self.releaser(&whole) else {
                let left = if self.stands_of(&whole).is_empty() {
                    "abandon it by name"
                } else {
                    quarantine::BY_ITS_SETTINGS
                };
                let detail =
                    format!("release {whole} is in the record and not in the settings any more: {left}");
                return self.give_up(Reason::ReleaseDeadline, detail).await;
            };
            if state.id.is_part() && releaser.in_parts().is_none() {
                let detail = format!(
                    "release {} is in the record, and by the settings {whole} has no parts any more",
                    state.id
                );
                return self.give_up(Reason::ReleaseDeadline, detail).await;
            }
            if releaser.in_parts().is_none() {
                self.begin(&mut run, &whole, &*releaser);
            }
            let looks = self.look().await?;
            if self.judge_looks(&mut run, &looks).await? {
                return Ok(());
            }
            let next = match releaser.in_parts() {
                Some(_) => self.in_parts(&mut run, &whole, &releaser, &looks).await?,
                None => self.as_a_whole(&mut run, &state, &releaser, &looks).await?,
            };
            if self.place() != here {
                return Ok(());
            }
            let (until, deadline) = match next {
                Next::Again => continue,
                Next::Moved => return Ok(()),
                Next::Wait(until, deadline) => (until, deadline),
            };
            let left = deadline.since(self.now());
            let said = run.heard.get(&whole).map_or_else(String::new, |words| format!(": {words}"));
            self.wait_for(format!("release {whole} to complete{said}"), whose_release(&whole), Some(left));
            let until_next = until.since(self.now());
            let soon = run.barred.is_some() || until_next.is_zero();
            let paces = &self.plan.paces;
            let pause = if soon { paces.release.first } else { until_next.min(paces.power_watch) };
            if self.pause(here, pause).await? {
                return Ok(());
            }
        }
    }

    /// What the crash table asks for at the start: a person's word is stored and still stands; what was confirmed by
    /// readings died with its process and is proven anew by the phases themselves. Where a ground is in hand it stays.
    pub(super) fn recover(&mut self) {
        if self.ground.is_some() || !matches!(self.record().phase, Phase::Fenced | Phase::Released) {
            return;
        }
        let term = self.hands.leadership().term();
        if let Some(word) = AttestedOff::of(self.record(), term) {
            let dark_since = self.now();
            self.ground = Some(Arc::new(Ground { ground: ReleaseGround::Attested(word), dark_since }));
        }
    }

    fn next_release(&self) -> Option<ReleaseState> {
        self.record().fence.as_ref()?.next_release().cloned()
    }

    pub(super) fn releaser(&self, id: &ReleaseId) -> Option<Arc<dyn Releaser>> {
        self.plan.releases.iter().find(|plan| plan.id == *id).map(|plan| plan.releaser.clone())
    }

    /// The cluster that such a release lets go in; `None`: it is in none, or left the settings.
    pub(in crate::node) fn quarantine_of(&self, id: &ReleaseId) -> Option<Arc<dyn Quarantine>> {
        self.releaser(id)?.quarantine()
    }

    /// The clusters that the open fence's releases let go in, and about whom each is asked.
    pub(in crate::node) fn quarantines(&self) -> Vec<(Subject, Arc<dyn Quarantine>)> {
        let states = self.record().fence.iter().flat_map(|fence| &fence.releases);
        states.filter_map(|state| Some((self.subject(state)?, self.quarantine_of(&state.id)?))).collect()
    }

    /// A release, or a part of one, whose turn it is: it waits until storage has settled (S23).
    fn begin(&self, run: &mut Run, id: &ReleaseId, releaser: &dyn Releaser) {
        let (now, paces) = (self.now(), &self.plan.paces);
        let dark_since = self.ground.as_ref().map_or(now, |ground| ground.dark_since);
        run.paces.entry(id.clone()).or_insert_with(|| Pacing {
            began: now,
            deadline: now + self.time_left_of(id, releaser),
            next: dark_since + releaser.settle(),
            backoff: paces.release,
            pause: paces.release.first,
            tried: now,
            rounds: 0,
            at_once: paces.release_at_once,
        });
    }

    /// What is left of its deadline, which goes on over takeovers and lost proofs: at least what one attempt needs, and a look at it.
    fn time_left_of(&self, id: &ReleaseId, releaser: &dyn Releaser) -> Duration {
        let deadline = releaser.deadline();
        let state = self.record().fence.as_ref().and_then(|fence| fence.release(id));
        // What is attached is asked for at the beginning and at the end, and has a time of its own for each.
        let counts = id.is_part() || releaser.in_parts().is_none();
        let Some(since) = state.filter(|_| counts).and_then(|state| state.since) else { return deadline };
        let spent = Duration::from_millis(self.wall().millis().saturating_sub(since.millis()));
        let least = releaser.settle() + releaser.attempt_time() * 3;
        deadline.saturating_sub(spent).max(least.min(deadline))
    }

    /// Whether the looks still bear the ground. True if the node was moved: breach, or evidence from zero.
    async fn judge_looks(&mut self, run: &mut Run, looks: &[Look]) -> Result<bool, Fatal> {
        if self.found_on(looks).await? {
            return Ok(true);
        }
        let restarted = self.sessions.take_restarts();
        let fault = self.weigh(looks);
        let Some(ground) = &self.ground else { return Ok(true) };
        // A person's word, and what other devices prove, do not stand on what that one says.
        let unseen = match &ground.ground {
            ReleaseGround::Confirmed(proof) => {
                let mut devices = proof.devices().map(|(device, _)| device);
                devices
                    .find(|device| restarted.contains(*device))
                    .map(|one| format!("{one} may have restarted"))
            }
            ReleaseGround::Attested(_) => None,
        };
        run.barred = fault.clone();
        let why = match (unseen, fault) {
            (Some(why), _) => why,
            (None, None) => return Ok(false),
            // A supply that is on again: its machine may have run by the next look, whatever that says.
            (None, Some(fault @ (LookFault::NewEpoch(_) | LookFault::On(_)))) => fault.to_string(),
            (None, Some(fault)) => {
                tracing::warn!(%fault, looks = self.unseen, "no release is attempted");
                if self.unseen < self.plan.paces.looks_without_off {
                    return Ok(false);
                }
                fault.to_string()
            }
        };
        self.lose_proof(why).await?;
        Ok(true)
    }

    /// Evidence begins from zero; where it does so again and again a person is asked.
    pub(super) async fn lose_proof(&mut self, why: String) -> Result<(), Fatal> {
        self.cut_off();
        self.unproven += 1;
        let most = self.plan.paces.failed_proofs;
        if self.unproven > most {
            let detail = format!("the confirmation did not hold {most} times in a row, at last since {why}");
            return self.give_up(Reason::Deadline, detail).await;
        }
        let gone = self.withdraw_now().await;
        self.persist_unproven(gone, || Event::Unproven { why: why.clone(), seen: true }).await.map(drop)
    }
}
