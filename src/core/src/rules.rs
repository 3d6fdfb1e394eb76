//! The numbers of the rules: their defaults and the least that is allowed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::written;

/// A number below what the rules allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// Its key in the settings (`dwell`).
    pub key: &'static str,
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
    /// How long Off must hold after a restart of the device, where that is trusted. Default 60 s, least 30 s.
    pub trust_dwell: Duration,
    /// One call to a device. Default 5 s, 0.1 s to 5 min.
    pub device_call: Duration,
    /// A level's share of a fence's time. Default 180 s, least 1 s, and room for the longest cycle and three dwells.
    pub level_share: Duration,
    /// The share of a level of which nothing answers at all. Default 20 s, least 1 s; beyond `level_share` it is of no
    /// effect.
    pub silent_share: Duration,
    /// From the intent to the confirmation, unless the caller says otherwise. Default 10 min, least 10 s.
    pub fence_deadline: Duration,
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
    /// Everything that is below its least, or above its most.
    pub fn faults(&self) -> Vec<RuleFault> {
        let ms = Duration::from_millis;
        let mut faults = Vec::new();
        if self.readings < 2 {
            faults.push(RuleFault {
                key: "readings",
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
        if self.level_share < self.longest_cycle + self.dwell * 3 {
            let (share, cycle, dwell) =
                (written(self.level_share), written(self.longest_cycle), written(self.dwell));
            faults.push(RuleFault {
                key: "level_share",
                message: format!(
                    "a level's share of {share} has no room for a longest cycle of {cycle} and three dwells of \
                     {dwell}: a node that is off already could never be confirmed"
                ),
            });
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed_and_less_is_not() {
        assert_eq!(Rules::default().faults(), []);
        let weak = Rules { readings: 1, dwell: Duration::ZERO, ..Rules::default() };
        let keys: Vec<_> = weak.faults().into_iter().map(|fault| fault.key).collect();
        assert_eq!(keys, ["readings", "dwell"]);
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
    fn a_level_has_time_for_the_long_window() {
        let s = Duration::from_secs;
        for (level_share, longest_cycle, faults) in [(18, 15, 0), (17, 15, 1), (180, 177, 0), (180, 178, 1)] {
            let rules =
                Rules { level_share: s(level_share), longest_cycle: s(longest_cycle), ..Rules::default() };
            let found = rules.faults();
            assert_eq!(found.len(), faults, "{found:?}");
            assert!(found.iter().all(|fault| fault.key == "level_share"), "{found:?}");
        }
    }
}
