//! The commands that `ipmi-rs-core` does not have: chassis, watchdog, session (IPMI 2.0 §20, §22, §27, §28).

use ipmi_rs_core::connection::{IpmiCommand, Message, NetFn, NotEnoughData};
use picket_core::power::Power;

use crate::settings::Privilege;

/// Get Chassis Status (§28.2).
#[derive(Clone, Copy, Debug)]
pub struct GetChassisStatus;

/// What Get Chassis Status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChassisStatus {
    /// Byte "current power state".
    pub state: u8,
    /// Byte "front panel button capabilities", which a BMC may leave out.
    pub buttons: Option<u8>,
}

impl ChassisStatus {
    /// Bit 0: the system's power is on. Both its values are explicit answers.
    pub fn power(self) -> Power {
        if self.state & 1 == 1 { Power::On } else { Power::Off }
    }

    /// Bits 6:5: what happens when mains comes back.
    pub fn restore_policy(self) -> RestorePolicy {
        match self.state >> 5 & 3 {
            0 => RestorePolicy::AlwaysOff,
            1 => RestorePolicy::Previous,
            2 => RestorePolicy::AlwaysOn,
            _ => RestorePolicy::Unknown,
        }
    }
}

impl From<GetChassisStatus> for Message {
    fn from(_: GetChassisStatus) -> Message {
        Message::new_request(NetFn::Chassis, 0x01, Vec::new())
    }
}

impl IpmiCommand for GetChassisStatus {
    type Output = ChassisStatus;
    type Error = NotEnoughData;

    fn parse_success_response(data: &[u8]) -> Result<ChassisStatus, NotEnoughData> {
        // Power state, last power event, miscellaneous state, and perhaps buttons. The first alone is what we live by,
        // but an answer without its two companions is none.
        match data {
            [state, _, _, rest @ ..] => Ok(ChassisStatus { state: *state, buttons: rest.first().copied() }),
            _ => Err(NotEnoughData),
        }
    }
}

/// Chassis Control (§28.3). Only the absolute verbs (S9): no cycle, no reset, no pulse, no soft shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChassisControl {
    /// Power down, hard.
    Off,
    /// Power up.
    On,
}

impl From<ChassisControl> for Message {
    fn from(control: ChassisControl) -> Message {
        let verb = match control {
            ChassisControl::Off => 0,
            ChassisControl::On => 1,
        };
        Message::new_request(NetFn::Chassis, 0x02, vec![verb])
    }
}

/// What happens when mains comes back (§28.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePolicy {
    /// Stays off.
    AlwaysOff,
    /// Goes back to what it was.
    Previous,
    /// Goes on.
    AlwaysOn,
    /// The BMC does not know.
    Unknown,
}

impl RestorePolicy {
    const WORDS: [(RestorePolicy, &'static str); 4] = [
        (RestorePolicy::AlwaysOff, "always-off"),
        (RestorePolicy::Previous, "previous"),
        (RestorePolicy::AlwaysOn, "always-on"),
        (RestorePolicy::Unknown, "unknown"),
    ];

    /// A stable word.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(policy, _)| *policy == self).map_or("unknown", |(_, word)| word)
    }

    /// The policy of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(policy, _)| *policy)
    }
}

/// Set Power Restore Policy (§28.8).
#[derive(Clone, Copy, Debug)]
pub struct SetRestorePolicy(pub RestorePolicy);

impl From<SetRestorePolicy> for Message {
    fn from(SetRestorePolicy(policy): SetRestorePolicy) -> Message {
        let value = match policy {
            RestorePolicy::AlwaysOff => 0,
            RestorePolicy::Previous => 1,
            RestorePolicy::AlwaysOn => 2,
            // "No change": only asks which policies there are.
            RestorePolicy::Unknown => 3,
        };
        Message::new_request(NetFn::Chassis, 0x06, vec![value])
    }
}

/// Set Front Panel Button Enables (§28.6): the buttons to disable, as bits 3:0.
#[derive(Clone, Copy, Debug)]
pub struct SetButtons(pub u8);

impl From<SetButtons> for Message {
    fn from(SetButtons(disabled): SetButtons) -> Message {
        Message::new_request(NetFn::Chassis, 0x0A, vec![disabled & 0x0F])
    }
}

/// Get Watchdog Timer (§27.7).
#[derive(Clone, Copy, Debug)]
pub struct GetWatchdog;

/// The BMC's watchdog timer: its settings, and whether it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// Byte "timer use" but for bit 6: who set it (bits 2:0), and that expirations are not logged (bit 7).
    pub timer_use: u8,
    /// Whether it counts down now.
    pub running: bool,
    /// Byte "timer actions": what it does at zero (0 nothing, 1 reset, 2 power down, 3 power cycle) and before.
    pub actions: u8,
    /// Seconds before zero at which it does the latter.
    pub pre_timeout: u8,
    /// Where it starts, in units of 100 ms.
    pub countdown: u16,
}

impl Watchdog {
    /// Whether nobody ever set it: it does not run, cannot be started (§27.5, completion code 0x80), and has the reserved
    /// timer use 0, which a BMC refuses to be told (table 27-3).
    pub fn was_never_set(self) -> bool {
        !self.running && self.timer_use & 0x07 == 0
    }
}

impl From<GetWatchdog> for Message {
    fn from(_: GetWatchdog) -> Message {
        Message::new_request(NetFn::App, 0x25, Vec::new())
    }
}

impl IpmiCommand for GetWatchdog {
    type Output = Watchdog;
    type Error = NotEnoughData;

    fn parse_success_response(data: &[u8]) -> Result<Watchdog, NotEnoughData> {
        match *data {
            [timer_use, actions, pre_timeout, _flags, low, high, ..] => Ok(Watchdog {
                timer_use: timer_use & !0x40,
                running: timer_use & 0x40 != 0,
                actions,
                pre_timeout,
                countdown: u16::from_le_bytes([low, high]),
            }),
            _ => Err(NotEnoughData),
        }
    }
}

/// Set Watchdog Timer (§27.6). It always stops the timer (bit 6 of the first byte is 0) and never starts it: only
/// Reset Watchdog Timer does, which is not among our commands.
#[derive(Clone, Copy, Debug)]
pub struct SetWatchdog(pub Watchdog);

impl From<SetWatchdog> for Message {
    fn from(SetWatchdog(timer): SetWatchdog) -> Message {
        let [low, high] = timer.countdown.to_le_bytes();
        let data = vec![timer.timer_use & !0x40, timer.actions, timer.pre_timeout, 0, low, high];
        Message::new_request(NetFn::App, 0x24, data)
    }
}

/// Get System GUID (§22.14).
#[derive(Clone, Copy, Debug)]
pub struct GetSystemGuid;

impl From<GetSystemGuid> for Message {
    fn from(_: GetSystemGuid) -> Message {
        Message::new_request(NetFn::App, 0x37, Vec::new())
    }
}

impl IpmiCommand for GetSystemGuid {
    /// In the order of the bytes on the wire.
    type Output = [u8; 16];
    type Error = NotEnoughData;

    fn parse_success_response(data: &[u8]) -> Result<[u8; 16], NotEnoughData> {
        data.get(..16).and_then(|guid| guid.try_into().ok()).ok_or(NotEnoughData)
    }
}

/// Set Session Privilege Level (§22.18): a session begins at User, whatever it may reach.
#[derive(Clone, Copy, Debug)]
pub struct SetPrivilege(pub Privilege);

impl From<SetPrivilege> for Message {
    fn from(SetPrivilege(privilege): SetPrivilege) -> Message {
        Message::new_request(NetFn::App, 0x3B, vec![privilege.level()])
    }
}

impl IpmiCommand for SetPrivilege {
    /// The level that the session has now.
    type Output = u8;
    type Error = NotEnoughData;

    fn parse_success_response(data: &[u8]) -> Result<u8, NotEnoughData> {
        data.first().map(|level| level & 0x0F).ok_or(NotEnoughData)
    }
}

/// Close Session (§22.19), by the BMC's id for it. Another session than one's own wants administrator.
#[derive(Clone, Copy, Debug)]
pub struct CloseSession(pub u32);

impl From<CloseSession> for Message {
    fn from(CloseSession(id): CloseSession) -> Message {
        Message::new_request(NetFn::App, 0x3C, id.to_le_bytes().to_vec())
    }
}

/// Get Session Info (§22.20), by the BMC's id for it.
#[derive(Clone, Copy, Debug)]
pub struct GetSessionInfo(pub u32);

impl From<GetSessionInfo> for Message {
    fn from(GetSessionInfo(id): GetSessionInfo) -> Message {
        let data = [&[0xFF][..], &id.to_le_bytes()].concat();
        Message::new_request(NetFn::App, 0x3D, data)
    }
}

impl IpmiCommand for GetSessionInfo {
    /// Whether such a session is open: handle 0 says that none is.
    type Output = bool;
    type Error = NotEnoughData;

    fn parse_success_response(data: &[u8]) -> Result<bool, NotEnoughData> {
        data.first().map(|handle| *handle != 0).ok_or(NotEnoughData)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(message: impl Into<Message>) -> (u8, u8, Vec<u8>) {
        let message = message.into();
        (message.netfn_raw(), message.cmd(), message.data().to_vec())
    }

    #[test]
    fn commands_are_written_as_the_specification_says() {
        assert_eq!(bytes(GetChassisStatus), (0x00, 0x01, vec![]));
        assert_eq!(bytes(ChassisControl::Off), (0x00, 0x02, vec![0]));
        assert_eq!(bytes(ChassisControl::On), (0x00, 0x02, vec![1]));
        assert_eq!(bytes(SetRestorePolicy(RestorePolicy::AlwaysOff)), (0x00, 0x06, vec![0]));
        assert_eq!(bytes(SetButtons(0xF1)), (0x00, 0x0A, vec![1]));
        assert_eq!(bytes(GetSystemGuid), (0x06, 0x37, vec![]));
        assert_eq!(bytes(SetPrivilege(Privilege::Operator)), (0x06, 0x3B, vec![3]));
        assert_eq!(bytes(CloseSession(0x0102_0304)), (0x06, 0x3C, vec![4, 3, 2, 1]));
        assert_eq!(bytes(GetSessionInfo(0x0102_0304)), (0x06, 0x3D, vec![0xFF, 4, 3, 2, 1]));
    }

    #[test]
    fn a_watchdog_is_set_and_never_started() {
        let found = GetWatchdog::parse_success_response(&[0xC4, 0x13, 5, 0x3E, 0x58, 0x02, 1, 0]);
        let timer = found.expect("it is long enough");
        assert_eq!(
            timer,
            Watchdog { timer_use: 0x84, running: true, actions: 0x13, pre_timeout: 5, countdown: 600 }
        );
        assert_eq!(bytes(SetWatchdog(timer)), (0x06, 0x24, vec![0x84, 0x13, 5, 0, 0x58, 0x02]));
    }

    #[test]
    fn a_watchdog_that_nobody_ever_set_is_known() {
        for (timer_use, never_set) in
            [(0x00, true), (0x80, true), (0x40, false), (0x04, false), (0x44, false)]
        {
            let timer =
                GetWatchdog::parse_success_response(&[timer_use, 0, 0, 0, 0, 0]).expect("long enough");
            assert_eq!(timer.was_never_set(), never_set, "{timer_use:#x}");
        }
    }

    #[test]
    fn a_status_says_on_or_off_and_nothing_shorter_is_one() {
        for (state, power, policy) in [
            (0x00, Power::Off, RestorePolicy::AlwaysOff),
            (0x21, Power::On, RestorePolicy::Previous),
            (0x5E, Power::Off, RestorePolicy::AlwaysOn),
            (0x61, Power::On, RestorePolicy::Unknown),
        ] {
            let status = GetChassisStatus::parse_success_response(&[state, 0, 0]).expect("three bytes");
            assert_eq!((status.power(), status.restore_policy(), status.buttons), (power, policy, None));
        }
        for short in [&[][..], &[0], &[0, 0]] {
            assert!(GetChassisStatus::parse_success_response(short).is_err());
        }
    }

    #[test]
    fn policies_have_words_and_come_back_from_them() {
        for (policy, word) in RestorePolicy::WORDS {
            assert_eq!((policy.word(), RestorePolicy::from_word(word)), (word, Some(policy)));
        }
        assert_eq!(RestorePolicy::from_word("on"), None);
    }
}
