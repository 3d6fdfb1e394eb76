//! What a fence waits for, and until when; and its turns at what its devices share with those of other nodes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use picket_core::ids::DeviceId;
use picket_core::time::BootTime;

use super::Run;
use crate::node::{NodeTask, words};
use crate::units::{LevelTurn, Unit, named};
use crate::view::LIVENESS_SOURCE;

/// A turn that is wanted: where, of how many devices, each asked once in that time.
struct Wanted {
    unit: Arc<Unit>,
    devices: usize,
    dwell: Duration,
}

/// The turns of a level: one at each unit that its devices are at, taken in the order of the units' names.
pub(super) struct Turns {
    held: Vec<LevelTurn>,
    left: VecDeque<Wanted>,
    waiting: Option<(Arc<Unit>, BoxFuture<'static, LevelTurn>)>,
}

impl Turns {
    /// Whether the level may be worked.
    pub(super) fn are_here(&self) -> bool {
        self.left.is_empty() && self.waiting.is_none()
    }

    /// Whether what is waited for has answered nobody for so long.
    pub(super) fn waits_for_silence(&self, so_long: Duration) -> bool {
        self.waiting.as_ref().is_some_and(|(unit, _)| unit.silent_for() >= so_long)
    }

    /// Until the next of them has come; for ever where none is waited for.
    pub(super) async fn next(&mut self) {
        match &mut self.waiting {
            Some((_, turn)) => {
                let turn = turn.await;
                self.held.push(turn);
                self.waiting = None;
            }
            None => std::future::pending().await,
        }
    }
}

impl NodeTask {
    /// The turns that a level needs; the first is asked for by [`NodeTask::take_turns`].
    pub(super) fn turns_of(&self, level: usize) -> Turns {
        let mut units: BTreeMap<String, Wanted> = BTreeMap::new();
        let level = self.open_fence().and_then(|fence| fence.topology.level(level));
        for spec in level.into_iter().flat_map(|level| &level.devices) {
            let program = self.plan.runs_programs(&spec.id).then_some(&self.parts.programs);
            for unit in self.plan.units.get(&spec.id).into_iter().chain(program) {
                let first = || Wanted { unit: unit.clone(), devices: 0, dwell: spec.dwell };
                let wanted = units.entry(unit.name().to_owned()).or_insert_with(first);
                wanted.devices += 1;
                wanted.dwell = wanted.dwell.min(spec.dwell);
            }
        }
        Turns { held: Vec::new(), left: units.into_values().collect(), waiting: None }
    }

    /// Asks for the next turn, as long as they come at once.
    pub(super) fn take_turns(&self, run: &mut Run) {
        let turns = &mut run.turns;
        if turns.waiting.is_some() || turns.left.is_empty() {
            return;
        }
        while turns.waiting.is_none() {
            let Some(Wanted { unit, devices, dwell }) = turns.left.pop_front() else { break };
            let mut turn = unit.clone().level(self.plan.id.clone(), devices, dwell).boxed();
            match (&mut turn).now_or_never() {
                Some(turn) => turns.held.push(turn),
                None => turns.waiting = Some((unit, turn)),
            }
        }
    }

    /// One of the turns came. Once all are here the level's time begins, and what was known before the wait is asked anew.
    pub(super) fn turn_came(&self, run: &mut Run) {
        self.take_turns(run);
        if run.turns.are_here() {
            let now = self.now();
            run.level_began = now;
            // Of whom a round was told that nobody answers, no later turn puts the deadline off.
            if run.round.spent.is_none() {
                run.deadline = run.deadline.max(now + self.least());
            }
            run.last_look = self.first_look(now);
        }
    }

    /// While the word of what decides about the node is waited for, or the end of a pause, nothing is sent to its devices, others have
    /// their turns, and the time of the level does not run (K9). A pause takes of the time of the fence.
    pub(super) fn stands_aside(&self, run: &mut Run) -> bool {
        let waits_for_word = run.last_look.waits_for_its_word().is_some();
        self.lends_its_place(run, waits_for_word && self.is_unsent());
        if !waits_for_word && run.barred.is_none() {
            return false;
        }
        let now = self.now();
        if run.doing.is_empty() {
            run.turns = self.turns_of(run.level);
        }
        // What is attached may be other volumes by then.
        run.surveys = self.surveys(now);
        run.level_began = now;
        if waits_for_word {
            run.deadline = run.deadline.max(now + self.least());
        }
        true
    }

    /// The word of what decides about a node may be away for days: others have its place among the fences until it comes (S14). Where all places are
    /// taken by then it waits for one.
    fn lends_its_place(&self, run: &mut Run, lends: bool) {
        if lends && !run.lent {
            self.office.reaches_nothing(&self.plan.id);
        }
        // Of whom no device answered in a round, others have the place still.
        let is_due = run.lent && !lends && (run.round.reached || run.round.spent.is_none());
        let bar = if is_due { self.office.regains(&self.plan.id) } else { None };
        run.lent = lends || bar.is_some();
        if let Some(bar) = bar {
            run.barred = Some(bar.detail());
        }
    }

    /// Host devices that were reached are asked for power all the same: a session that ended by its idleness, or a silence of ours, would
    /// be taken for their restart (S2).
    pub(super) fn stay_in_touch(&self, run: &mut Run) {
        let (now, every) = (self.now(), self.watched_every() / 2);
        for device in self.hosts() {
            let Some(hand) = run.hands.get_mut(&device).filter(|hand| !hand.busy && hand.not_before <= now)
            else {
                continue;
            };
            if hand.reached_at.is_some_and(|at| now.since(at) >= every) {
                hand.asks();
                run.doing.push(self.hands.read(&device));
            }
        }
    }

    pub(super) fn next_wake(&self, run: &Run, now: BootTime) -> BootTime {
        if run.barred.is_some() {
            return now + self.plan.paces.bar;
        }
        if !run.turns.are_here() {
            let reserved = self.reserved(run.level);
            let last = BootTime::from_boot(run.deadline.since_boot().saturating_sub(reserved));
            let silent = now + self.parts.rules.silent_share;
            let soonest = [run.level_began + self.share_of(run.level), last, run.deadline, silent];
            return soonest.into_iter().filter(|at| *at > now).min().unwrap_or(now);
        }
        let idle = |device: &DeviceId| run.hands.get(device).is_none_or(|hand| !hand.busy);
        let readings =
            run.judge.readings_due().into_iter().filter(|(device, _)| idle(device)).map(|(_, at)| at);
        let idle_hands = run.hands.values().filter(|hand| !hand.busy);
        let retries = idle_hands.flat_map(|hand| [hand.not_before, hand.off_not_before]);
        let shares =
            [self.share_of(run.level), self.silent_share_of(run)].map(|share| run.level_began + share);
        let look = run.last_look.waited_for();
        let volumes = run.surveys.waited_for().map(|(until, _)| until);
        let soonest = readings
            .chain(retries)
            .chain(shares)
            .chain([run.deadline])
            .chain(look)
            .chain(volumes)
            .filter(|at| *at > now)
            .min();
        soonest.unwrap_or(now + self.plan.paces.idle)
    }

    pub(super) fn tell_wait(&mut self, run: &Run, now: BootTime) {
        if let Some(why) = &run.away {
            return self.wait_for(format!("the store ({why})"), "store", None);
        }
        if let Some(why) = &run.barred {
            return self.wait_for(why.clone(), "picket", Some(run.deadline.since(now)));
        }
        if let Some(why) = run.last_look.waits_for_its_word() {
            return self.wait_for(format!("whether the node recovered ({why})"), LIVENESS_SOURCE, None);
        }
        if let Some((unit, _)) = &run.turns.waiting {
            let whose = format!("{} (busy with {})", unit.name(), named(&unit.busy_with()));
            return self.wait_for("its turn at what it shares", whose, Some(run.deadline.since(now)));
        }
        if let Some(until) = run.last_look.waited_for().filter(|until| *until > now) {
            return self.wait_for("whether the node recovered", LIVENESS_SOURCE, Some(until.since(now)));
        }
        if let Some((until, device)) = run.surveys.waited_for().filter(|(until, _)| *until > now) {
            let what = "what volumes are attached before the off";
            return self.wait_for(what, device.as_str(), Some(until.since(now)));
        }
        let devices: Vec<String> = self.level_devices(run.level).iter().map(ToString::to_string).collect();
        let is_unsent = self.open_fence().is_none_or(|fence| !fence.off_sent);
        let fault = self.fault_of(run.level);
        if let Some(why) = run.round.spent.as_ref().filter(|_| is_unsent) {
            // What stops it now stands first: a narrow terminal has no room for what comes behind.
            let what = match fault {
                Some(fault) => {
                    format!("{fault}; a device that takes the off (tried again until the deadline)")
                }
                None => format!("a device that takes the off ({why})"),
            };
            return self.wait_for(what, devices.join(", "), Some(run.deadline.since(now)));
        }
        let until = (run.level_began + self.share_of(run.level)).min(run.deadline);
        if let Some(fault) = fault.filter(|_| is_unsent && run.round.spent.is_none()) {
            let what = format!("{fault}; an answer of level {}", run.level + 1);
            return self.wait_for(what, devices.join(", "), Some(until.since(now)));
        }
        let word = if is_unsent { "an answer" } else { "Off" };
        let before = run.round.spent.as_ref().map(|why| format!(" (tried anew: {why})")).unwrap_or_default();
        self.wait_for(
            format!("{word} of level {}{before}", run.level + 1),
            devices.join(", "),
            Some(until.since(now)),
        );
    }

    /// What keeps the first device of the level that has a fault from answering, as of its last try: `bmc: unreachable: ...`. Times in it may
    /// differ with each try. A wait that differs in these alone stays as it was told: it is no news.
    fn fault_of(&self, level: usize) -> Option<String> {
        let fault = self.level_devices(level).into_iter().find_map(|device| {
            let (fault, _) = self.live.devices.get(&device)?.fault.as_ref()?;
            Some(format!("{device}: {fault}").replace("; ", ", "))
        })?;
        let told = self.live.wait.as_ref().and_then(|wait| wait.what.split_once("; "));
        match told.filter(|(told, _)| words::without_times(told) == words::without_times(&fault)) {
            Some((told, _)) => Some(told.to_owned()),
            None => Some(fault),
        }
    }
}
