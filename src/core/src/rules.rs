//! The numbers of the rules: their defaults and the least that is allowed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::DeviceSpec;
use crate::time::written;
use crate::topology::{Level, Topology};

/// A number below what the rules allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// Its key in the settings (`dwell`).
    pub key: &'static str,
    /// The keys that ask for more than it has room for, if it is too little for others; the one that asks for most first.
    pub asked_by: &'static [&'static str],
    /// What is wrong and what would be right.
    pub message: String,
}

/// The numbers of the rules. `Default` is what the documentation's table of defaults says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Readings in a row that must say Off. Default 2, least 2.
    pub readings: u32,
    /// Least time between two readings that count. Default 1 s, least 0.5 s.
    pub dwell: Duration,
    /// The longest power cycle of a device: how long Off must hold after "already off" or without epochs.
    /// Default 15 s, least 5 s (IPMI 2.0 §28.5 lets a BMC hold power down for up to 255 s: set it to what yours does).
    pub longest_cycle: Duration,
    /// How long Off must hold after a restart of the device, where that is trusted. Default 60 s, least 30 s;
    /// where it is trusted, a level's share and a fence's deadline have room for it and three dwells.
    pub trust_dwell: Duration,
    /// One call to a device. Default 5 s, 0.1 s to 5 min.
    pub device_call: Duration,
    /// A level's share of a fence's time. Default 180 s, least 1 s, and room for the longest cycle and three dwells, and for the readings.
    pub level_share: Duration,
    /// The share of a level of which nothing answers at all, or its slowest call, if that takes longer. Default 20 s, least 1 s;
    /// beyond `level_share` it is of no effect.
    pub silent_share: Duration,
    /// From the intent to the confirmation, unless the caller says otherwise. Default 10 min, least 10 s, and room for what a level has room for.
    pub fence_deadline: Duration,
    /// Least time between two readings of a cloud's device that count, unless the device says otherwise. Default 2 s, least 1 s;
    /// less than `dwell` it is of no effect.
    pub cloud_poll: Duration,
    /// `level_share` of a level with a cloud's device in it, where that is longer. Default 300 s, least 1 s.
    pub cloud_level_share: Duration,
    /// `fence_deadline` of a node that has a cloud's device, where that is longer. Default 15 min, least 10 s.
    pub cloud_fence_deadline: Duration,
    /// From the on until On must be seen. Default 5 min, least 1 s.
    pub on_deadline: Duration,
    /// Between two readings of a fenced node. Default 10 s, least 1 s.
    pub watch: Duration,
    /// Time for the power to fall out of a host after its last supply was cut. Default 10 s.
    pub supply_hold_up: Duration,
    /// How long host devices may contradict each other before a person is asked. Fixed: 30 s.
    pub contradiction: Duration,
    /// A jump of the wall clock against the boot-time clock that ends leadership. Default 1 s, least 0.1 s.
    pub clock_jump: Duration,
    /// How long a receipt lives. Default 60 s, least 10 s.
    pub receipt_life: Duration,
    /// How much longer than its receipts live a node is kept off, for readers whose clocks differ. Default 5 s, least 1 s.
    pub receipt_margin: Duration,
    /// How often each device of a node that is not fenced is checked. Default 5 min, least 10 s; zero: never.
    pub check_every: Duration,
    /// How long ended fences are kept. Default 90 days, least 1 day.
    pub history: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        let s = Duration::from_secs;
        Self {
            readings: 2,
            dwell: s(1),
            longest_cycle: s(15),
            trust_dwell: s(60),
            device_call: s(5),
            level_share: s(180),
            silent_share: s(20),
            fence_deadline: s(600),
            cloud_poll: s(2),
            cloud_level_share: s(300),
            cloud_fence_deadline: s(900),
            on_deadline: s(300),
            watch: s(10),
            supply_hold_up: s(10),
            contradiction: s(30),
            clock_jump: s(1),
            receipt_life: s(60),
            receipt_margin: s(5),
            check_every: s(300),
            history: s(90 * 86_400),
        }
    }
}

impl Rules {
    /// A level's share of a fence's time.
    pub fn share_of(&self, level: &Level) -> Duration {
        let cloud = level.devices.iter().any(DeviceSpec::is_cloud);
        if cloud { self.level_share.max(self.cloud_level_share) } else { self.level_share }
    }

    /// How long a level may answer nothing at all in its first turn; a silence that is shorter than a call is none yet. Then the
    /// next level has its turn, and after the last of them the first again, until the fence's deadline (S16).
    pub fn silent_share_of(&self, level: &Level) -> Duration {
        let slowest = level.devices.iter().map(|spec| spec.call).max().unwrap_or_default();
        self.silent_share.max(slowest).min(self.share_of(level))
    }

    /// From the intent to the confirmation, unless the caller says otherwise.
    pub fn deadline_of(&self, topology: &Topology) -> Duration {
        let cloud = topology.devices().any(DeviceSpec::is_cloud);
        if cloud { self.fence_deadline.max(self.cloud_fence_deadline) } else { self.fence_deadline }
    }

    /// Everything that is below its least, or above its most.
    pub fn faults(&self) -> Vec<RuleFault> {
        let ms = Duration::from_millis;
        let mut faults = Vec::new();
        if self.readings < 2 {
            faults.push(RuleFault {
                key: "readings",
                asked_by: &[],
                message: match self.readings {
                    1 => "1 reading proves nothing: at least 2".to_owned(),
                    none => format!("{none} readings prove nothing: at least 2"),
                },
            });
        }
        let mut range = |key, value: Duration, least: Duration, most: Duration| {
            if value < least || value > most {
                faults.push(RuleFault {
                    key,
                    asked_by: &[],
                    message: format!(
                        "{} is out of range: {} to {}",
                        written(value),
                        written(least),
                        written(most)
                    ),
                });
            }
        };
        let day = Duration::from_secs(86_400);
        range("dwell", self.dwell, ms(500), ms(60_000));
        range("longest_cycle", self.longest_cycle, ms(5_000), ms(600_000));
        range("trust_dwell", self.trust_dwell, ms(30_000), ms(3_600_000));
        range("device_call", self.device_call, ms(100), ms(300_000));
        range("level_share", self.level_share, ms(1_000), ms(3_600_000));
        range("silent_share", self.silent_share, ms(1_000), ms(3_600_000));
        range("fence_deadline", self.fence_deadline, ms(10_000), day);
        range("cloud_poll", self.cloud_poll, ms(1_000), ms(60_000));
        range("cloud_level_share", self.cloud_level_share, ms(1_000), ms(3_600_000));
        range("cloud_fence_deadline", self.cloud_fence_deadline, ms(10_000), day);
        range("on_deadline", self.on_deadline, ms(1_000), day);
        range("watch", self.watch, ms(1_000), ms(600_000));
        range("supply_hold_up", self.supply_hold_up, ms(1_000), ms(600_000));
        range("contradiction", self.contradiction, ms(30_000), ms(30_000));
        range("clock_jump", self.clock_jump, ms(100), ms(10_000));
        range("receipt_life", self.receipt_life, ms(10_000), ms(3_600_000));
        range("receipt_margin", self.receipt_margin, ms(1_000), ms(600_000));
        if !self.check_every.is_zero() {
            range("check_every", self.check_every, ms(10_000), day);
        }
        range("history", self.history, day, day * 36_500);
        let windows = self.shares().into_iter().filter_map(|share| {
            let never = "a node that is off already could never be confirmed";
            self.without_room(
                share,
                self.longest_cycle,
                "a longest cycle",
                &["longest_cycle", "dwell"],
                never,
            )
        });
        let runs = self.shares().into_iter().filter_map(|(key, share, name)| {
            let run = self.dwell.saturating_mul(self.readings.saturating_sub(1));
            let (readings, dwell, is) = (self.readings, written(self.dwell), written(share));
            (run > share).then(|| RuleFault {
                key,
                asked_by: &["readings", "dwell"],
                message: format!(
                    "{readings} readings that are {dwell} apart take longer than {name} of {is}: nothing could ever be confirmed"
                ),
            })
        });
        faults.extend(windows.chain(runs));
        faults
    }

    /// What has no room for `trust_dwell`, where a restart is trusted.
    pub fn trust_faults(&self) -> Vec<RuleFault> {
        let asked_by = &["trust_dwell", "dwell"];
        let never = "after a restart it could never be confirmed";
        let fault = |share| self.without_room(share, self.trust_dwell, "an Off", asked_by, never);
        self.shares().into_iter().filter_map(fault).collect()
    }

    /// What a confirmation must come within.
    fn shares(&self) -> [(&'static str, Duration, &'static str); 2] {
        [
            ("level_share", self.level_share, "a level's share"),
            ("fence_deadline", self.fence_deadline, "a fence's deadline"),
        ]
    }

    /// A fault, if `window` and three dwells are longer than the share.
    fn without_room(
        &self,
        (key, share, name): (&'static str, Duration, &str),
        window: Duration,
        of: &str,
        asked_by: &'static [&'static str],
        never: &str,
    ) -> Option<RuleFault> {
        let fits = share >= window.saturating_add(self.dwell.saturating_mul(3));
        let (is, window, dwell) = (written(share), written(window), written(self.dwell));
        (!fits).then(|| RuleFault {
            key,
            asked_by,
            message: format!(
                "{name} of {is} has no room for {of} of {window} and three dwells of {dwell}: {never}"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Grade;

    #[test]
    fn the_defaults_are_allowed_and_less_is_not() {
        assert_eq!(Rules::default().faults(), []);
        let weak = Rules { readings: 1, dwell: Duration::ZERO, ..Rules::default() };
        let keys: Vec<_> = weak.faults().into_iter().map(|fault| fault.key).collect();
        assert_eq!(keys, ["readings", "dwell"]);
    }

    #[test]
    fn a_cloud_has_more_time() {
        let topology = |grade| {
            let spec = DeviceSpec { grade, ..crate::support::host("one") };
            Topology::new(vec![Level { devices: vec![spec] }]).expect("right")
        };
        let (bmc, cloud) = (topology(Grade::Observed), topology(Grade::Hypervisor));
        let s = Duration::from_secs;
        let share = |rules: &Rules, topology: &Topology| rules.share_of(&topology.levels()[0]);
        let rules = Rules::default();
        assert_eq!((share(&rules, &bmc), rules.deadline_of(&bmc)), (s(180), s(600)));
        assert_eq!((share(&rules, &cloud), rules.deadline_of(&cloud)), (s(300), s(900)));
        let more = Rules { level_share: s(400), fence_deadline: s(1_200), ..rules };
        assert_eq!((share(&more, &cloud), more.deadline_of(&cloud)), (s(400), s(1_200)));
    }

    #[test]
    fn ranges_are_told_in_the_units_of_the_settings() {
        let odd = Rules {
            readings: 0,
            dwell: Duration::ZERO,
            history: Duration::from_secs(3_600),
            ..Rules::default()
        };
        let said: Vec<_> = odd.faults().into_iter().map(|fault| fault.message).collect();
        assert_eq!(
            said,
            [
                "0 readings prove nothing: at least 2",
                "0s is out of range: 500ms to 1m",
                "1h is out of range: 1d to 36500d"
            ]
        );
    }

    #[test]
    fn a_level_and_a_fence_have_time_for_what_they_wait_for() {
        let s = Duration::from_secs;
        let plain = Rules::default;
        let (share, deadline) = (vec!["level_share"], vec!["fence_deadline"]);
        for (rules, keys) in [
            (Rules { level_share: s(18), ..plain() }, vec![]),
            (Rules { level_share: s(17), ..plain() }, share.clone()),
            (Rules { longest_cycle: s(177), ..plain() }, vec![]),
            (Rules { longest_cycle: s(178), ..plain() }, share.clone()),
            (Rules { fence_deadline: s(18), ..plain() }, vec![]),
            (Rules { fence_deadline: s(17), ..plain() }, deadline.clone()),
            (Rules { readings: 181, ..plain() }, vec![]),
            (Rules { readings: 182, ..plain() }, share.clone()),
            (Rules { readings: 182, level_share: s(900), ..plain() }, vec![]),
            (Rules { readings: 602, level_share: s(900), ..plain() }, deadline),
            (Rules { readings: u32::MAX, level_share: s(3_600), fence_deadline: s(86_400), ..plain() }, {
                vec!["level_share", "fence_deadline"]
            }),
            // Without anybody who trusts a restart, its dwell asks for nothing.
            (Rules { trust_dwell: s(3_600), ..plain() }, vec![]),
        ] {
            let found: Vec<_> = rules.faults().into_iter().map(|fault| fault.key).collect();
            assert_eq!(found, keys, "{rules:?}");
        }
        for (trust_dwell, level_share, faults) in [
            (60, 63, vec![]),
            (60, 62, share.clone()),
            (177, 180, vec![]),
            (178, 180, share),
            (598, 900, vec!["fence_deadline"]),
        ] {
            let rules = Rules { trust_dwell: s(trust_dwell), level_share: s(level_share), ..plain() };
            let found: Vec<_> = rules.trust_faults().into_iter().map(|fault| fault.key).collect();
            assert_eq!(found, faults, "{rules:?}");
        }
    }
}
