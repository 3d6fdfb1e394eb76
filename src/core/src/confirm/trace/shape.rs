//! What of a device's trace decides how its judge goes on.

use std::time::Duration;

use super::{SILENCE, Trace, Word};
use crate::confirm::own_off::{OwnOff, REPEAT};
use crate::confirm::shape::Shape;
use crate::time::BootTime;

/// What is told apart at a deadline is told apart on both sides of it.
const BEYOND: Duration = Duration::from_secs(1);

impl Trace {
    /// What decides how it goes on. `first`: when a host device first read Off.
    pub(in crate::confirm) fn shape(&self, to: &mut Shape, first: Option<BootTime>) {
        let Self {
            spec,
            identity: _,
            is_learned: _,
            was_identified,
            asked_whose,
            hold: _,
            said: _,
            lowered_by: _,
            lost,
            seen_off,
            seen_off_at: _,
            proved_held: _,
            held_on,
            answered,
            resumed,
            began: _,
            epoch,
            contacted_at,
            heard_at,
            was_left,
            quiet,
            prior,
            last,
            objection,
            off,
            off_due,
            run,
            fell_at,
        } = self;
        for flag in [lost, seen_off, held_on, answered, resumed] {
            to.flag(*flag);
        }
        to.number(*epoch);
        to.flag(*was_identified);
        to.number(asked_whose.map(|epoch| epoch.unwrap_or(0)));
        to.ages(*contacted_at);
        to.flag(heard_at.is_some());
        heard_at.iter().for_each(|at| to.age_up_to(*at, SILENCE + BEYOND));
        to.flag(*was_left);
        to.flag(*quiet);
        to.put(prior.map_or(0, |(power, _)| 1 + power as u64));
        prior.iter().for_each(|(_, at)| to.age(*at));
        match last {
            None => to.put(0),
            Some(Word { power, answers, asked_at, heard_at }) => {
                to.put(1 + *power as u64 + 4 * u64::from(*answers));
                to.age(*asked_at);
                to.age(*heard_at);
                to.flag(first.is_some_and(|first| *asked_at >= first));
            }
        }
        to.number(objection.map(|(_, epoch)| epoch.unwrap_or(0)));
        objection.iter().for_each(|(at, _)| to.age(*at));
        to.flag(*off_due);
        to.flag(off.is_some());
        off.iter().for_each(|off| off.shape(to));
        to.ages(*fell_at);
        to.flag(run.is_some());
        let window = off.and_then(|off| off.window(spec.longest_cycle)).unwrap_or_default();
        let lasted = window.max(spec.longest_cycle) + BEYOND;
        run.iter().for_each(|run| run.shape(to, lasted, spec.readings));
    }
}

impl OwnOff {
    fn shape(&self, to: &mut Shape) {
        let Self { answered_at, epoch, long, is_acknowledged, fell, worked, sealed_at } = self;
        // An off that is ignored is sent again: till then its age matters.
        let is_final = *worked || !fell;
        to.age_up_to(*answered_at, if is_final { Duration::ZERO } else { REPEAT + BEYOND });
        to.number(*epoch);
        for flag in [long.is_some(), *is_acknowledged, *fell, *worked] {
            to.flag(flag);
        }
        to.ages(*sealed_at);
    }
}
