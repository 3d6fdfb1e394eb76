//! What a stream has told already, so that everything is told once, and readings do not flood it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::power::Power;
use picket_core::record::{Fence, Moment};
use picket_core::time::WallTime;
use picket_engine::{DeviceLive, Live};
use tokio::time::Instant;

/// Between two messages that tell of nothing but readings that say what they said before.
const SLOW: Duration = Duration::from_secs(1);
/// Between two messages that tell of a change of power, or of what is waited for.
const QUICK: Duration = Duration::from_millis(100);

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct UpdateDedup {
    moments: usize,
    last_moment: Option<Moment>,
    readings: BTreeMap<DeviceId, (Power, WallTime)>,
    wait: Option<(String, String)>,
    /// Releases that were told to be unannounced.
    unannounced: BTreeSet<ReleaseId>,
    at: Option<Instant>,
}

/// What is to be done about what devices showed and what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing is new.
    No,
    /// It is told now.
    Now,
    /// It is told then, with what comes until then.
    At(Instant),
}

impl UpdateDedup {
    /// A stream that begins now: what devices showed before is not news.
    pub(crate) fn from_now(live: &Live) -> Self {
        let mut dedup = Self::default();
        dedup.note_readings(live);
        dedup
    }

    /// What happened before this call is not news either.
    pub(crate) fn skip_moments(&mut self, fence: &Fence) {
        let _ = self.new_moments(&fence.moments);
    }

    /// The moments that were not told yet, oldest first. Of more than a fence keeps, those that it kept.
    pub(crate) fn new_moments<'a>(&mut self, moments: &'a [Moment]) -> &'a [Moment] {
        let sent = match &self.last_moment {
            None => 0,
            // As long as none was dropped they stand where they stood.
            Some(last) if moments.get(self.moments.wrapping_sub(1)) == Some(last) => self.moments,
            Some(last) => moments.iter().rposition(|moment| moment == last).map_or(0, |at| at + 1),
        };
        self.moments = moments.len();
        self.last_moment = moments.last().cloned();
        moments.get(sent..).unwrap_or_default()
    }

    /// Devices with a reading that was not told yet.
    pub(crate) fn new_readings<'a>(&self, live: &'a Live) -> Vec<(&'a DeviceId, &'a DeviceLive)> {
        let is_new = |(device, shown): &(&DeviceId, &DeviceLive)| {
            shown.power.is_some() && self.readings.get(*device).copied() != shown.power
        };
        live.devices.iter().map(|(device, shown)| (device, &**shown)).filter(is_new).collect()
    }

    /// Far sides that do not hear that the node is being fenced, in words: each once, for as long as it is so.
    pub(crate) fn new_unannounced(&mut self, live: &Live) -> Vec<String> {
        self.unannounced.retain(|release| live.unannounced.contains_key(release));
        let fresh =
            live.unannounced.iter().filter(|(release, _)| self.unannounced.insert((*release).clone()));
        let words = |(release, why): (&ReleaseId, &String)| {
            format!("release {release}: that it is being fenced is not told there yet: {why}")
        };
        fresh.map(words).collect()
    }

    /// Whether, and when, what is live wants a message of its own.
    pub(crate) fn due(&self, live: &Live, now: Instant) -> Due {
        let fresh = self.new_readings(live);
        let changed = |(device, shown): &(&DeviceId, &DeviceLive)| {
            self.readings.get(*device).map(|(power, _)| *power) != shown.power.map(|(power, _)| power)
        };
        let waits = wait_of(live);
        let pause = if fresh.iter().any(changed) || waits.is_some() && waits != self.wait {
            QUICK
        } else if !fresh.is_empty() {
            SLOW
        } else {
            return Due::No;
        };
        match self.at.map(|at| at + pause) {
            Some(at) if at > now => Due::At(at),
            _ => Due::Now,
        }
    }

    /// All that is live was told in a message now.
    pub(crate) fn note(&mut self, live: &Live, now: Instant) {
        self.note_readings(live);
        self.wait = wait_of(live);
        self.at = Some(now);
    }

    fn note_readings(&mut self, live: &Live) {
        let shown = live.devices.iter().filter_map(|(device, shown)| Some((device.clone(), shown.power?)));
        self.readings = shown.collect();
    }
}

fn wait_of(live: &Live) -> Option<(String, String)> {
    live.wait.as_ref().map(|wait| (wait.what.clone(), wait.whose.clone()))
}

#[cfg(test)]
mod tests {
    use picket_engine::Wait;

    use std::sync::Arc;

    use super::*;

    fn moment(at: u64, what: &str) -> Moment {
        Moment { at: WallTime::from_millis(at), phase: "fencing".to_owned(), what: what.to_owned() }
    }

    fn whats(moments: &[Moment]) -> Vec<&str> {
        moments.iter().map(|moment| moment.what.as_str()).collect()
    }

    #[test]
    fn each_moment_is_told_once() {
        let mut dedup = UpdateDedup::default();
        let mut moments = vec![moment(1, "a"), moment(1, "b")];
        assert_eq!(whats(dedup.new_moments(&moments)), ["a", "b"]);
        assert_eq!(whats(dedup.new_moments(&moments)), [""; 0]);
        moments.push(moment(1, "b"));
        moments.push(moment(2, "c"));
        assert_eq!(whats(dedup.new_moments(&moments)), ["b", "c"]);
    }

    #[test]
    fn moments_that_a_fence_dropped_do_not_confuse_it() {
        let mut dedup = UpdateDedup::default();
        let mut moments: Vec<Moment> =
            (0..Fence::MOMENTS).map(|n| moment(n as u64, &format!("m{n}"))).collect();
        dedup.new_moments(&moments);
        for n in 0..3 {
            moments.remove(Fence::MOMENTS / 4);
            moments.push(moment(1_000 + n, &format!("new{n}")));
        }
        assert_eq!(whats(dedup.new_moments(&moments)), ["new0", "new1", "new2"]);
    }

    fn live(power: Power, asked: u64, wait: Option<&str>) -> Live {
        let device =
            DeviceLive { power: Some((power, WallTime::from_millis(asked))), ..DeviceLive::default() };
        let wait = wait.map(|what| Wait { what: what.to_owned(), whose: "bmc".to_owned(), until: None });
        let devices = BTreeMap::from([(DeviceId::new("bmc").expect("a good name"), Arc::new(device))]);
        Live { devices, wait, ..Live::default() }
    }

    #[test]
    fn a_far_side_that_does_not_hear_is_told_once_for_as_long_as_it_is_so() {
        let mut dedup = UpdateDedup::default();
        let release = |id: &str| ReleaseId::new(id).expect("a good name");
        let deaf = |all: &[(&str, &str)]| Live {
            unannounced: all.iter().map(|(id, why)| (release(id), (*why).to_owned())).collect(),
            ..Live::default()
        };
        let first = dedup.new_unannounced(&deaf(&[("pods", "no answer")]));
        assert_eq!(first, ["release pods: that it is being fenced is not told there yet: no answer"]);
        assert_eq!(dedup.new_unannounced(&deaf(&[("pods", "refused"), ("a", "x")])).len(), 1);
        assert_eq!(dedup.new_unannounced(&Live::default()), [""; 0]);
        assert_eq!(dedup.new_unannounced(&deaf(&[("pods", "no answer")])), first);
    }

    #[tokio::test(start_paused = true)]
    async fn readings_come_once_a_second_and_changes_almost_at_once() {
        let begin = Instant::now();
        let mut dedup = UpdateDedup::from_now(&live(Power::On, 1, None));
        assert_eq!(dedup.due(&live(Power::On, 1, None), begin), Due::No);
        assert_eq!(dedup.due(&live(Power::On, 2, None), begin), Due::Now);
        dedup.note(&live(Power::On, 2, None), begin);
        assert_eq!(dedup.due(&live(Power::On, 3, None), begin), Due::At(begin + SLOW));
        assert_eq!(dedup.due(&live(Power::Off, 3, None), begin), Due::At(begin + QUICK));
        assert_eq!(dedup.due(&live(Power::On, 2, Some("an end")), begin), Due::At(begin + QUICK));
        assert_eq!(dedup.due(&live(Power::Off, 3, None), begin + QUICK), Due::Now);
        dedup.note(&live(Power::Off, 3, Some("an end")), begin + QUICK);
        assert_eq!(dedup.due(&live(Power::Off, 3, Some("an end")), begin + SLOW), Due::No);
    }
}
