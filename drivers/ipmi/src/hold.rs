//! Keeping a machine off by its BMC's own means (S11): restore policy, watchdog timer, power button.
//!
//! # Invariants
//!
//! - Only what was read, and can therefore be put back, is changed, but for a restore policy that the BMC
//!   itself does not know. Shown by `a_hold_is_engaged_seen_and_put_back`.
//! - The watchdog timer is stopped and never started. Shown by `a_watchdog_is_set_and_never_started`.

use ipmi_rs_core::connection::{IpmiCommand, Message};
use picket_driver::{Call, DriverError, Effort, ErrorKind, HoldFound, HoldReport};

use crate::command::{
    ChassisStatus, GetChassisStatus, GetWatchdog, RestorePolicy, SetButtons, SetRestorePolicy, SetWatchdog,
    Watchdog,
};
use crate::inquiry::ask;
use crate::line::Line;
use crate::quirks::{self, Verdict};
use crate::settings::Privilege;

const POLICY: &str = "restore_policy";
const BUTTONS: &str = "buttons_disabled";
const WATCHDOG_USE: &str = "watchdog_use";
const WATCHDOG_ACTIONS: &str = "watchdog_actions";
const WATCHDOG_PRE_TIMEOUT: &str = "watchdog_pre_timeout";
const WATCHDOG_COUNTDOWN: &str = "watchdog_countdown";
const WATCHDOG_RUNNING: &str = "watchdog_running";

/// Front panel byte: the power button may be disabled (bit 4), is disabled (bit 0) (IPMI 2.0 table 28-3).
const MAY_LOCK_POWER: u8 = 0x10;
const POWER_LOCKED: u8 = 0x01;

/// Bit 7 of the watchdog's timer use (IPMI 2.0 table 27-3).
const DONT_LOG: u8 = 0x80;

/// What a hold changes, as it was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FoundSettings {
    policy: Option<RestorePolicy>,
    watchdog: Option<Watchdog>,
    /// Which buttons are disabled, as bits 3:0.
    buttons: Option<u8>,
}

impl FoundSettings {
    fn write(self) -> HoldFound {
        let mut found = HoldFound::new();
        let mut put = |key: &str, value: String| {
            found.insert(key.to_owned(), value);
        };
        if let Some(policy) = self.policy {
            put(POLICY, policy.word().to_owned());
        }
        if let Some(buttons) = self.buttons {
            put(BUTTONS, buttons.to_string());
        }
        if let Some(timer) = self.watchdog {
            put(WATCHDOG_USE, timer.timer_use.to_string());
            put(WATCHDOG_ACTIONS, timer.actions.to_string());
            put(WATCHDOG_PRE_TIMEOUT, timer.pre_timeout.to_string());
            put(WATCHDOG_COUNTDOWN, timer.countdown.to_string());
            put(WATCHDOG_RUNNING, timer.running.to_string());
        }
        found
    }

    fn read(found: &HoldFound) -> Self {
        fn number<T: std::str::FromStr>(found: &HoldFound, key: &str) -> Option<T> {
            found.get(key)?.parse().ok()
        }
        let watchdog = || {
            Some(Watchdog {
                timer_use: number(found, WATCHDOG_USE)?,
                actions: number(found, WATCHDOG_ACTIONS)?,
                pre_timeout: number(found, WATCHDOG_PRE_TIMEOUT)?,
                countdown: number(found, WATCHDOG_COUNTDOWN)?,
                running: number(found, WATCHDOG_RUNNING)?,
            })
        };
        Self {
            policy: found.get(POLICY).and_then(|word| RestorePolicy::from_word(word)),
            watchdog: watchdog(),
            buttons: number(found, BUTTONS),
        }
    }
}

/// What was found comes back from how it is stored (feature `fuzz`).
#[cfg(feature = "fuzz")]
pub(crate) fn comes_back(policy: Option<RestorePolicy>, watchdog: Option<Watchdog>, buttons: Option<u8>) {
    let found = FoundSettings { policy, watchdog, buttons };
    assert_eq!(FoundSettings::read(&found.write()), found);
}

/// Looks whether a setting took. Whatever is not a whole answer does not say that it did.
async fn look<C: IpmiCommand>(
    line: &mut Line,
    call: &Call,
    command: C,
) -> Result<Option<C::Output>, DriverError> {
    let heard = line.command(command, call, &mut Effort::reading()).await?;
    Ok((heard.answer.code == 0).then(|| C::parse_success_response(&heard.answer.data).ok()).flatten())
}

/// The settings of the BMC that a hold would change, as they are now; and whether it lets its power button be locked, but not by this account.
pub async fn inspect(line: &mut Line, call: &Call) -> Result<(HoldFound, bool), DriverError> {
    if !line.settings.hold {
        return Ok((HoldFound::new(), false));
    }
    let status = ask(line, call, GetChassisStatus).await?;
    let watchdog = ask(line, call, GetWatchdog).await?;
    let may_lock = line.settings.login.privilege == Privilege::Administrator;
    let lockable = status.and_then(|status| status.buttons).filter(|buttons| buttons & MAY_LOCK_POWER != 0);
    let buttons = lockable.filter(|_| may_lock).map(|buttons| buttons & 0x0F);
    let found = FoundSettings { policy: status.map(ChassisStatus::restore_policy), watchdog, buttons };
    Ok((found.write(), lockable.is_some() && !may_lock))
}

const POLICY_HOLDS: &str = "restore policy always-off";
const WATCHDOG_HOLDS: &str = "watchdog timer stopped";
const BUTTON_HOLDS: &str = "power button locked";

/// What of a hold stands, by what was found.
pub fn engaged(found: &HoldFound) -> Vec<String> {
    let found = FoundSettings::read(found);
    [
        (found.policy == Some(RestorePolicy::AlwaysOff), POLICY_HOLDS),
        (found.watchdog.is_some_and(is_harmless), WATCHDOG_HOLDS),
        (found.buttons.is_some_and(|buttons| buttons & POWER_LOCKED != 0), BUTTON_HOLDS),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .map(|(_, words)| words.to_owned())
    .collect()
}

/// Whether that keeps the machine off also where its mains come back, and is said by no BMC that has just started: of each of those the watchdog
/// does not run, and a locked button keeps nothing off when the mains come back.
pub fn outlives(engaged: &str) -> bool {
    engaged == POLICY_HOLDS
}

/// It stands still, and would do nothing when its time is over.
fn is_harmless(timer: Watchdog) -> bool {
    !timer.running && timer.actions & 0x07 == 0
}

/// One of the things that a hold does.
struct Report {
    engaged: Vec<String>,
    notes: Vec<String>,
    /// Something was not put back that may be.
    open: Option<ErrorKind>,
}

impl Report {
    fn new() -> Self {
        Self { engaged: Vec::new(), notes: Vec::new(), open: None }
    }

    fn note(&mut self, what: &str, why: impl AsRef<str>) {
        self.notes.push(format!("{what}: {}", why.as_ref()));
    }

    fn finish(self) -> HoldReport {
        HoldReport { engaged: self.engaged, detail: self.notes.join("; ") }
    }

    /// Sends a command that changes something; what the BMC made of it.
    async fn send(
        &mut self,
        line: &mut Line,
        call: &Call,
        effort: &mut Effort,
        what: &str,
        message: impl Into<Message>,
    ) -> Result<Verdict, DriverError> {
        let heard = line.command(message, call, effort).await?;
        let code = heard.answer.code;
        let verdict = quirks::verdict(code);
        match verdict {
            Verdict::Done => {}
            Verdict::Unsupported => self.note(what, format!("not supported, {}", quirks::describe(code))),
            _ => self.note(what, quirks::describe(code)),
        }
        Ok(verdict)
    }

    /// The same; whether the BMC took it.
    async fn set(
        &mut self,
        line: &mut Line,
        call: &Call,
        effort: &mut Effort,
        what: &str,
        message: impl Into<Message>,
    ) -> Result<bool, DriverError> {
        Ok(self.send(line, call, effort, what, message).await? == Verdict::Done)
    }

    /// The same, of what is put back: what the BMC never takes is said and done with, anything else is asked for again.
    async fn put_back(
        &mut self,
        line: &mut Line,
        call: &Call,
        effort: &mut Effort,
        what: &str,
        message: impl Into<Message>,
    ) -> Result<(), DriverError> {
        match self.send(line, call, effort, what, message).await? {
            Verdict::Done | Verdict::Unsupported | Verdict::Forbidden => {}
            Verdict::Busy => self.open = Some(ErrorKind::Throttled),
            Verdict::Uncertain => self.open = Some(ErrorKind::Protocol),
            Verdict::NotInThisState | Verdict::Refused => self.open = Some(ErrorKind::Refused),
        }
        Ok(())
    }
}

const POLICY_WORDS: &str = "restore policy";
const WATCHDOG_WORDS: &str = "watchdog timer";
const BUTTON_WORDS: &str = "power button";
/// A remark: known before a hold is tried.
pub const BUTTON_OUT_OF_REACH: &str = "a fence does not lock its power button: that wants the privilege administrator, and the settings log in with operator";

/// Tells the BMC to keep the machine off, and looks whether it does.
pub async fn engage(line: &mut Line, found: &HoldFound, call: &Call) -> Result<HoldReport, DriverError> {
    let mut report = Report::new();
    if !line.settings.hold {
        report.note("hold", "switched off in the settings");
        return Ok(report.finish());
    }
    let found = FoundSettings::read(found);
    let mut effort = Effort::repeatable();
    let mut policy = false;
    let mut button = false;
    match found.policy {
        Some(_) => {
            let command = SetRestorePolicy(RestorePolicy::AlwaysOff);
            policy = report.set(line, call, &mut effort, POLICY_WORDS, command).await?;
        }
        None => report.note(POLICY_WORDS, "not supported"),
    }
    match found.watchdog {
        // It stands still, there is nothing to take from it, and what it says of itself could not be put back.
        Some(timer) if timer.was_never_set() => report.note(WATCHDOG_WORDS, "was never set"),
        Some(timer) => {
            // Without an action it does no harm, even if a dying system starts it again. Nothing of it is logged.
            let timer_use = timer.timer_use | DONT_LOG;
            let stopped = SetWatchdog(Watchdog { timer_use, actions: 0, pre_timeout: 0, ..timer });
            if report.set(line, call, &mut effort, WATCHDOG_WORDS, stopped).await? {
                let now = look(line, call, GetWatchdog).await.map_err(|error| effort.judge(error))?;
                match now {
                    Some(now) if is_harmless(now) => report.engaged.push(WATCHDOG_HOLDS.to_owned()),
                    _ => report.note(WATCHDOG_WORDS, "told to stop, and does not say that it did"),
                }
            }
        }
        None => report.note(WATCHDOG_WORDS, "not supported"),
    }
    match (found.buttons, line.settings.login.privilege) {
        (Some(disabled), _) => {
            let command = SetButtons(disabled | POWER_LOCKED);
            button = report.set(line, call, &mut effort, BUTTON_WORDS, command).await?;
        }
        (None, Privilege::Operator) => report.note(BUTTON_WORDS, "needs the privilege administrator"),
        (None, Privilege::Administrator) => report.note(BUTTON_WORDS, "not supported"),
    }
    if policy || button {
        let status = look(line, call, GetChassisStatus).await.map_err(|error| effort.judge(error))?;
        let always_off = status.map(ChassisStatus::restore_policy) == Some(RestorePolicy::AlwaysOff);
        let locked = status.and_then(|status| status.buttons).is_some_and(|b| b & POWER_LOCKED != 0);
        for (told, holds, engaged, what) in
            [(policy, always_off, POLICY_HOLDS, POLICY_WORDS), (button, locked, BUTTON_HOLDS, BUTTON_WORDS)]
        {
            match (told, holds) {
                (true, true) => report.engaged.push(engaged.to_owned()),
                (true, false) => report.note(what, "set, and the status does not say so"),
                (false, _) => {}
            }
        }
    }
    Ok(report.finish())
}

/// Puts back what was found. What the BMC never takes is said.
///
/// # Errors
/// Something was refused, or taken or not; the rest was put back.
pub async fn disengage(line: &mut Line, found: &HoldFound, call: &Call) -> Result<HoldReport, DriverError> {
    let mut report = Report::new();
    let found = FoundSettings::read(found);
    let mut effort = Effort::repeatable();
    if let Some(disabled) = found.buttons {
        report.put_back(line, call, &mut effort, BUTTON_WORDS, SetButtons(disabled)).await?;
    }
    if let Some(timer) = found.watchdog.filter(|timer| !timer.was_never_set()) {
        report.put_back(line, call, &mut effort, WATCHDOG_WORDS, SetWatchdog(timer)).await?;
    }
    match found.policy {
        Some(RestorePolicy::Unknown) => {
            report.note(POLICY_WORDS, "the BMC did not know what it was; left at always-off");
        }
        Some(policy) => {
            report.put_back(line, call, &mut effort, POLICY_WORDS, SetRestorePolicy(policy)).await?;
        }
        None => {}
    }
    match report.open {
        None => Ok(report.finish()),
        Some(kind) => Err(effort.error(kind, report.finish().detail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_stored_and_read_back() {
        let timer = Watchdog { timer_use: 4, running: true, actions: 0x13, pre_timeout: 5, countdown: 600 };
        for found in [
            FoundSettings::default(),
            FoundSettings { policy: Some(RestorePolicy::Previous), watchdog: Some(timer), buttons: Some(2) },
            FoundSettings { policy: Some(RestorePolicy::Unknown), ..FoundSettings::default() },
        ] {
            assert_eq!(FoundSettings::read(&found.write()), found);
        }
    }

    #[test]
    fn half_of_a_watchdog_is_none() {
        let mut found = FoundSettings {
            watchdog: Some(Watchdog {
                timer_use: 4,
                running: true,
                actions: 0,
                pre_timeout: 5,
                countdown: 600,
            }),
            ..FoundSettings::default()
        }
        .write();
        found.remove(WATCHDOG_COUNTDOWN);
        assert_eq!(FoundSettings::read(&found), FoundSettings::default());
    }
}
