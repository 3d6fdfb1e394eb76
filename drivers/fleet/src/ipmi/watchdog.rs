//! The BMC's watchdog timer (IPMI 2.0 §27). Whether it runs is the world's; its settings have no effect but to be told.

use super::IpmiBmc;
use super::command::{Caller, Silence};
use super::message::{INVALID_COMMAND, INVALID_DATA, Outcome, Request, WRONG_LENGTH};
use picket_driver_sim::HoldSettings;

/// The timer runs (table 27-4, bit 6 of the first byte).
const RUNS: u8 = 0x40;

/// What was set: a system that has the timer power-cycle it after five minutes.
#[derive(Clone, Copy, Debug)]
pub struct Watchdog {
    timer_use: u8,
    actions: u8,
    pre_timeout: u8,
    countdown: [u8; 2],
}

impl Default for Watchdog {
    fn default() -> Self {
        Self { timer_use: 0x04, actions: 0x03, pre_timeout: 0, countdown: 3000_u16.to_le_bytes() }
    }
}

impl IpmiBmc {
    pub(super) fn watchdog(
        &mut self,
        caller: &mut Caller<'_>,
        request: &Request<'_>,
    ) -> Result<Outcome, Silence> {
        match (request.cmd, request.data) {
            (0x25, _) => self.tell(caller),
            (0x24, &[timer_use, actions, pre_timeout, _flags, low, high]) => {
                if timer_use & 0x07 == 0 {
                    return Ok(caller.touch(self)?.and(Err(INVALID_DATA)));
                }
                // Bit 6, "don't stop": whatever it does it goes on doing.
                let goes_on = timer_use & RUNS != 0;
                let set = self
                    .set_hold(caller, |held| HoldSettings { watchdog: held.watchdog && goes_on, ..held })?;
                if set.is_ok() {
                    let timer_use = timer_use & !RUNS;
                    self.watchdog = Watchdog { timer_use, actions, pre_timeout, countdown: [low, high] };
                }
                Ok(set)
            }
            // Reset Watchdog Timer starts it from its countdown.
            (0x22, _) => {
                let touched = caller.touch(self)?;
                if touched.is_ok() {
                    caller.world.set_watchdog(&self.options.machine, true);
                }
                Ok(touched.map(|()| Vec::new()))
            }
            (0x24, _) => Ok(caller.touch(self)?.and(Err(WRONG_LENGTH))),
            _ => Ok(caller.touch(self)?.and(Err(INVALID_COMMAND))),
        }
    }

    /// Get Watchdog Timer.
    fn tell(&mut self, caller: &mut Caller<'_>) -> Result<Outcome, Silence> {
        let runs = match self.hold(caller)? {
            Ok(held) => held.watchdog,
            Err(code) => return Ok(Err(code)),
        };
        let Watchdog { timer_use, actions, pre_timeout, countdown: [low, high] } = self.watchdog;
        let timer_use = if runs { timer_use | RUNS } else { timer_use };
        // The present countdown is what it begins with: the world's watchdog bites when it is told to.
        Ok(Ok(vec![timer_use, actions, pre_timeout, 0, low, high, low, high]))
    }
}
