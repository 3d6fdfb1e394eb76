//! The chassis' commands (IPMI 2.0 §28).

use std::time::Duration;

use picket_core::power::Power;
use picket_driver_sim::{Act, Fault, HoldSettings, Request as Asked, Response, RestorePolicy, Verb};

use super::IpmiBmc;
use super::command::{Caller, Silence};
use super::message::{
    INVALID_COMMAND, INVALID_DATA, NO_RESPONSE, NOT_IN_STATE, OUT_OF_RANGE, Outcome, Request, UNSPECIFIED,
    WRONG_LENGTH,
};

/// All four buttons may be disabled (table 28-3, bits 7:4).
const ALL_LOCKABLE: u8 = 0xF0;
const POWER_BUTTON: u8 = 0x01;
/// How long somebody's power cycle stays off: "at least one second" (§28.3).
const CYCLE: Duration = Duration::from_secs(2);
/// Boot option parameters that are kept, and how long one may be.
const BOOT_PARAMETERS: u8 = 8;
const LONGEST_BOOT_PARAMETER: usize = 24;

impl IpmiBmc {
    pub(super) fn chassis(
        &mut self,
        caller: &mut Caller<'_>,
        request: &Request<'_>,
    ) -> Result<Outcome, Silence> {
        match request.cmd {
            0x01 => self.status(caller),
            0x02 => self.control(caller, request.data),
            0x06 => self.set_policy(caller, request.data),
            0x0A => self.set_buttons(caller, request.data),
            cmd => Ok(caller.touch(self)?.and_then(|()| match (cmd, request.data) {
                // Get Chassis Capabilities: no intrusion sensor; all devices at this address.
                (0x00, _) => Ok(vec![0, 0x20, 0x20, 0x20, 0x20]),
                // Get System Restart Cause: chassis control, by channel 1.
                (0x07, _) => Ok(vec![0x01, 0x01]),
                (0x08, [parameter, data @ ..]) => self.set_boot_option(*parameter, data),
                (0x09, [parameter, _set, _block]) => self.boot_option(*parameter),
                // Get POH Counter: in hours, since the simulation began.
                (0x0F, _) => {
                    let hours = (caller.now.since_boot().as_secs() / 3600).min(u64::from(u32::MAX)) as u32;
                    Ok([&[60][..], &hours.to_le_bytes()].concat())
                }
                (0x08 | 0x09, _) => Err(WRONG_LENGTH),
                _ => Err(INVALID_COMMAND),
            })),
        }
    }

    /// Get Chassis Status: power and policy, no last event, nothing of the rest, the buttons.
    fn status(&mut self, caller: &mut Caller<'_>) -> Result<Outcome, Silence> {
        let is_nonsense = caller.world.suffers(&self.options.device, &Fault::SaysNonsense);
        let power = match caller.ask(self, &Asked::Read)? {
            Ok(Response::Power(Power::On)) => 1,
            Ok(Response::Power(Power::Off)) => 0,
            // A driver that took two bytes for a status would read Off in them.
            Ok(Response::Power(Power::Unknown)) if is_nonsense => 0,
            // It answers, and neither On nor Off.
            Ok(_) => return Ok(Err(NO_RESPONSE)),
            Err(code) => return Ok(Err(code)),
        };
        // A device without holds still tells a policy, "unknown", and so does one that does not answer questions for them.
        let held = self.hold(caller).ok().and_then(Result::ok);
        let policy = match held.map(|held| held.restore) {
            Some(RestorePolicy::AlwaysOff) => 0,
            Some(RestorePolicy::LastState) => 1,
            Some(RestorePolicy::AlwaysOn) => 2,
            None => 3,
        };
        if is_nonsense {
            return Ok(Ok(vec![policy << 5, 0]));
        }
        let mut out = vec![power | policy << 5, 0, 0];
        if let Some(held) = held {
            out.push(ALL_LOCKABLE | self.buttons & !POWER_BUTTON | u8::from(held.button_locked));
        }
        Ok(Ok(out))
    }

    /// Chassis Control: down, up, cycle, hard reset, and soft shutdown, which a machine without a system cannot obey.
    fn control(&mut self, caller: &mut Caller<'_>, data: &[u8]) -> Result<Outcome, Silence> {
        let machine = &self.options.machine;
        match data {
            [0] => {
                let done = caller.ask(self, &Asked::Command(Verb::Off))?;
                self.late = caller.world.late_off(&self.options.device);
                Ok(done.map(|_| Vec::new()))
            }
            [1] => Ok(caller.ask(self, &Asked::Command(Verb::On))?.map(|_| Vec::new())),
            [verb @ (2 | 3)] => {
                let (cycle, machine) = (*verb == 2, machine.clone());
                Ok(caller.touch(self)?.and_then(|()| {
                    if !caller.world.truth(&machine, caller.now) {
                        return Err(NOT_IN_STATE);
                    }
                    if cycle {
                        let act = Act::ForeignCycle { machine, off_for: CYCLE };
                        caller.world.happen(caller.now, act);
                    }
                    Ok(Vec::new())
                }))
            }
            [5] => Ok(caller.touch(self)?.map(|()| Vec::new())),
            [_] => Ok(caller.touch(self)?.and(Err(INVALID_DATA))),
            _ => Ok(caller.touch(self)?.and(Err(WRONG_LENGTH))),
        }
    }

    pub(super) fn hold(&mut self, caller: &mut Caller<'_>) -> Result<Result<HoldSettings, u8>, Silence> {
        Ok(match caller.ask(self, &Asked::InspectHold)? {
            Ok(Response::Hold(held)) => Ok(held),
            Ok(_) => Err(UNSPECIFIED),
            Err(code) => Err(code),
        })
    }

    pub(super) fn set_hold(
        &mut self,
        caller: &mut Caller<'_>,
        change: impl FnOnce(HoldSettings) -> HoldSettings,
    ) -> Result<Outcome, Silence> {
        let held = match self.hold(caller)? {
            Ok(held) => held,
            Err(code) => return Ok(Err(code)),
        };
        Ok(caller.ask(self, &Asked::SetHold(change(held)))?.map(|_| Vec::new()))
    }

    /// Set Power Restore Policy; answers which there are: all three.
    fn set_policy(&mut self, caller: &mut Caller<'_>, data: &[u8]) -> Result<Outcome, Silence> {
        let restore = match data {
            [0] => RestorePolicy::AlwaysOff,
            [1] => RestorePolicy::LastState,
            [2] => RestorePolicy::AlwaysOn,
            // "No change".
            [3] => return Ok(caller.touch(self)?.map(|()| vec![0x07])),
            [_] => return Ok(caller.touch(self)?.and(Err(OUT_OF_RANGE))),
            _ => return Ok(caller.touch(self)?.and(Err(WRONG_LENGTH))),
        };
        Ok(self.set_hold(caller, |held| HoldSettings { restore, ..held })?.map(|_| vec![0x07]))
    }

    /// Set Front Panel Button Enables: the buttons to disable.
    fn set_buttons(&mut self, caller: &mut Caller<'_>, data: &[u8]) -> Result<Outcome, Silence> {
        let &[disabled] = data else { return Ok(caller.touch(self)?.and(Err(WRONG_LENGTH))) };
        let button_locked = disabled & POWER_BUTTON != 0;
        let set = self.set_hold(caller, |held| HoldSettings { button_locked, ..held })?;
        if set.is_ok() {
            self.buttons = disabled & 0x0F;
        }
        Ok(set)
    }

    fn set_boot_option(&mut self, parameter: u8, data: &[u8]) -> Outcome {
        let parameter = parameter & 0x7F;
        if parameter >= BOOT_PARAMETERS {
            // "Parameter not supported".
            return Err(0x80);
        }
        if data.len() > LONGEST_BOOT_PARAMETER {
            return Err(WRONG_LENGTH);
        }
        self.boot_options.insert(parameter, data.to_vec());
        Ok(Vec::new())
    }

    fn boot_option(&self, parameter: u8) -> Outcome {
        let parameter = parameter & 0x7F;
        if parameter >= BOOT_PARAMETERS {
            return Err(0x80);
        }
        let data = self.boot_options.get(&parameter).cloned();
        // Version 1, the parameter, and what was set; boot flags have five bytes, the others that are asked for one or two.
        let data = data.unwrap_or_else(|| vec![0; if parameter == 5 { 5 } else { 2 }]);
        Ok([&[0x01, parameter][..], &data].concat())
    }
}
