//! What an Off lacks that is read and does not count yet, for people (S2).

use super::Judge;
use super::trace::Trace;
use crate::ids::DeviceId;
use crate::power::Power;
use crate::time::{BootTime, written};

impl Judge {
    /// What the Off that the device says lacks to count; `None` where it says none, or lacks nothing. The rule's setting is named where a time
    /// decides: `longest_cycle`, `readings`, `dwell`.
    pub fn lacks(&self, device: &DeviceId, now: BootTime) -> Option<String> {
        self.traces.get(device)?.lacks(now)
    }
}

impl Trace {
    fn lacks(&self, now: BootTime) -> Option<String> {
        self.last().filter(|word| word.power == Power::Off)?;
        let (Some(off), Some(run)) = (self.off, self.run()) else {
            return Some("no off was taken before it read so".to_owned());
        };
        let dwell = written(self.spec.dwell);
        if !run.is_recent(now, self.spec.dwell) {
            return Some(format!("it was not asked for longer than three times its dwell of {dwell}"));
        }
        if let Some((long, window)) = off.long.zip(off.window(self.spec.longest_cycle)) {
            let setting = if window == self.spec.longest_cycle { " (longest_cycle)" } else { "" };
            let (lasted, window, why) = (run.lasted().as_secs(), written(window), long.words());
            if !self.window_is_over() {
                return Some(format!("Off for {lasted}s of {window}{setting}, asked for as: {why}"));
            }
            if off.sealed_at.is_none_or(|sealed_at| run.last_asked < sealed_at) {
                return Some(format!("Off for {window}{setting}, and the off after that was not taken yet"));
            }
        }
        let (count, readings) = (run.count, self.spec.readings);
        (count < readings).then(|| format!("{count} of {readings} readings, each a dwell of {dwell} apart"))
    }
}
