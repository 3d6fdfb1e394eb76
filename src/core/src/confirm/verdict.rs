//! What the devices of a level come to together: proven off, or why not (S2, S3).

use std::time::Duration;

use super::run::Run;
use super::trace::Trace;
use super::{ConfirmedOff, HAS_POWER, Judge, Verdict, by_name};
use crate::device::{DeviceClass, Grade};
use crate::ids::DeviceId;
use crate::ledger::Ledger;
use crate::power::Power;
use crate::record::{DeviceEvidence, Evidence};
use crate::time::{BootTime, WallTime};

impl Judge {
    /// What holds now. `wall` only dates the evidence.
    pub fn verdict(&self, ledger: &Ledger, now: BootTime, wall: WallTime) -> Verdict {
        let restarted: Vec<DeviceId> = self
            .level_traces()
            .filter(|trace| trace.is_restarted())
            .map(|trace| trace.spec.id.clone())
            .collect();
        if !restarted.is_empty() {
            return Verdict::Restarted(restarted);
        }
        if let Some(words) = self.contradiction(now) {
            return Verdict::Contradiction(words);
        }
        if ledger.bars_proof() {
            return Verdict::Open;
        }
        match self.level_holds(now) {
            Some(dark_at) => self.mint(dark_at, now, wall),
            None => Verdict::Open,
        }
    }

    fn is_supply_level(&self) -> bool {
        self.level_traces().any(|trace| trace.spec.class == DeviceClass::Supply)
    }

    /// Until when the readings that prove are in a row with what is asked next (S2): a proof that is stored later than that says nothing of now.
    pub fn fresh_until(&self) -> BootTime {
        let recent =
            self.level_traces().filter_map(|trace| Some(trace.run()?.last_answered + trace.spec.dwell * 3));
        recent.min().unwrap_or_default()
    }

    /// Since when the node is dark, if all devices of the level hold in one window and no host device objects.
    fn level_holds(&self, now: BootTime) -> Option<BootTime> {
        let runs: Vec<&Run> = self.level_traces().map(|trace| trace.holds(now)).collect::<Option<_>>()?;
        let fell_at = runs.iter().map(|run| run.first_answered).max()?;
        // Where supplies were cut, the power falls out of the host only while the hold-up lasts: until then it may
        // still write, and what a host device said is not yet an answer to the cut.
        let hold_up = if self.is_supply_level() { self.hold_up } else { Duration::ZERO };
        let dark_at = fell_at + hold_up;
        let one_window = runs.iter().all(|run| run.last_asked >= dark_at);
        // A host device elsewhere must have been asked since, and where the long window is asked for after its end:
        // before that, an Off of it may be the same power cycle's. Only an On objects, its silence proves nothing.
        let sealed_at = self.level_traces().filter_map(Trace::sealed_at).max();
        let since = sealed_at.map_or(dark_at, |sealed_at| dark_at.max(sealed_at));
        // An On that was said since the level fell stands, also where a gap in the level's readings began their run anew.
        let fell_first = self.fell_at().map_or(dark_at, |fell_at| dark_at.min(fell_at + hold_up));
        let heard = self.other_hosts().all(|trace| trace.was_asked(since) && !trace.objects(fell_first));
        (one_window && heard).then_some(dark_at)
    }

    /// When the last device of the level fell after our off; `None`: one of them was not read Off since it was on.
    fn fell_at(&self) -> Option<BootTime> {
        self.level_traces().map(Trace::fell_at).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn contradiction(&self, now: BootTime) -> Option<String> {
        let says = |power: Power| {
            move |trace: &&Trace| {
                trace.spec.class == DeviceClass::Host && trace.last().is_some_and(|word| word.power == power)
            }
        };
        let (off, since) = if self.is_supply_level() {
            let say_off = self.level_traces().all(|trace| trace.run().is_some());
            ("its supplies".to_owned(), self.fell_at().filter(|_| say_off)?)
        } else {
            let off = self.traces.values().filter(|trace| trace.run().is_some()).find(says(Power::Off))?;
            (off.spec.id.to_string(), self.first_host_off?)
        };
        let after = |trace: &&Trace| trace.last().is_some_and(|word| word.asked_at >= since);
        let on = self.traces.values().filter(after).find(says(Power::On))?;
        let long = now.since(since) >= self.contradiction;
        long.then(|| format!("{} says On and {off} Off for {:?}", on.spec.id, self.contradiction))
    }

    /// The grade of a proof by this level, whose devices have these, and what lowered it.
    fn grade(&self, of_device: impl Fn(&Trace) -> (Grade, Vec<String>)) -> (Grade, Vec<String>) {
        let mut grade = Grade::Observed;
        let mut lowered_by = Vec::new();
        for (own, why) in self.level_traces().map(of_device) {
            grade = grade.min(own);
            lowered_by.extend(why);
        }
        if self.is_supply_level() {
            let answering = |trace: &&Trace| trace.last().is_some_and(|word| word.answers);
            for host in self.other_hosts().filter(answering) {
                grade = grade.lowered();
                lowered_by.push(format!("{} {HAS_POWER}", host.spec.id));
            }
        }
        if let Some(release) = &self.by_name {
            grade = grade.lowered();
            lowered_by.push(by_name(release));
        }
        (grade, lowered_by)
    }

    fn mint(&self, dark_at: BootTime, now: BootTime, wall: WallTime) -> Verdict {
        let (grade, lowered_by) = self.grade(Trace::grade);
        if grade < self.min_grade {
            let may_rise = self.grade(Trace::grade_at_best).0 >= self.min_grade;
            return Verdict::GradeTooLow { grade, lowered_by, may_rise };
        }
        let back = |moment: BootTime| {
            let ago = u64::try_from(now.since(moment).as_millis()).unwrap_or(u64::MAX);
            WallTime::from_millis(wall.millis().saturating_sub(ago))
        };
        let devices = self.level_traces().map(|trace| {
            let (readings, lasted) = trace
                .run()
                .map_or((0, Duration::ZERO), |run| (run.count, run.last_answered.since(run.first_asked)));
            DeviceEvidence {
                device: trace.spec.id.clone(),
                said: trace.said.clone(),
                readings,
                lasted,
                hold: trace.hold.clone(),
                long_window: trace.long().map(|long| long.words().to_owned()),
                identity: trace.identity,
            }
        });
        Verdict::Confirmed(ConfirmedOff {
            node: self.node.clone(),
            fence: self.fence,
            generation: self.generation,
            term: self.term,
            round: self.round,
            evidence: Evidence {
                grade,
                lowered_by,
                level: self.level + 1,
                off_since: back(dark_at),
                confirmed_at: wall,
                devices: devices.collect(),
            },
            devices: self.level_traces().map(|trace| (trace.spec.id.clone(), trace.epoch())).collect(),
        })
    }
}
