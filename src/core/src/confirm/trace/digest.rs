//! What of a device's trace decides how its judge goes on, for the model.

use super::Trace;
use crate::model::bytes::Bytes;
use crate::time::BootTime;

impl Trace {
    /// What decides how it goes on. `first`: when a host device first read Off.
    pub(in crate::confirm) fn digest(&self, to: &mut Bytes, first: Option<BootTime>) {
        to.flag(self.lost);
        to.flag(self.seen_off);
        to.flag(self.held_on);
        to.flag(self.answered);
        to.flag(self.resumed);
        to.number(self.epoch);
        to.flag(self.was_identified);
        to.number(self.asked_whose.map(|epoch| epoch.unwrap_or(0)));
        to.flag(self.contacted_at.is_some());
        self.contacted_at.iter().for_each(|at| to.moment(*at));
        to.flag(self.heard_at.is_some());
        self.heard_at.iter().for_each(|at| to.moment_up_to(*at, 11));
        to.flag(self.was_left);
        to.flag(self.quiet);
        to.put(self.prior.map_or(0, |(power, _)| 1 + power as u64));
        self.prior.iter().for_each(|(_, at)| to.moment(*at));
        to.put(self.last.map_or(0, |word| 1 + word.power as u64 + 4 * u64::from(word.answers)));
        if let Some(word) = &self.last {
            to.moment(word.asked_at);
            to.moment(word.heard_at);
            to.flag(first.is_some_and(|first| word.asked_at >= first));
        }
        to.number(self.objection.map(|(_, epoch)| epoch.unwrap_or(0)));
        self.objection.iter().for_each(|(at, _)| to.moment(*at));
        to.flag(self.off_due);
        to.flag(self.off.is_some());
        if let Some(off) = &self.off {
            // An off that is ignored is sent again after fifteen seconds: till then its age matters.
            to.moment_up_to(off.answered_at, if off.worked || !off.fell { 0 } else { 16 });
            to.number(off.epoch);
            to.flag(off.long.is_some());
            to.flag(off.is_acknowledged);
            to.flag(off.fell);
            to.flag(off.worked);
            to.flag(off.sealed_at.is_some());
            off.sealed_at.iter().for_each(|at| to.moment(*at));
        }
        to.flag(self.fell_at.is_some());
        self.fell_at.iter().for_each(|at| to.moment(*at));
        to.flag(self.run.is_some());
        if let Some(run) = &self.run {
            run.digest(to);
        }
    }
}
