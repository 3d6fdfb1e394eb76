//! What completion codes mean, and what BMCs do that the specification does not say. One predicate a fact, with its
//! reason.

use ipmi_rs_core::connection::CompletionErrorCode;

/// What a completion code (IPMI 2.0 table 5-2) means for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done, or under way.
    Done,
    /// Not done; the same may be taken in a moment.
    Busy,
    /// Not done: not in this state.
    NotInThisState,
    /// Not done: this user may not, at this level.
    Forbidden,
    /// Not done: the BMC has no such command, or not with this data.
    Unsupported,
    /// It may have been done.
    Uncertain,
    /// Not done.
    Refused,
}

/// Codes 0xD0 to 0xD2: an update or the BMC's start is under way, and ends by itself, like "node busy". Of the codes
/// for which `ipmi-rs-core` has the one word "response unavailable" they are those that speak of the command too.
const NOT_NOW: std::ops::RangeInclusive<u8> = 0xD0..=0xD2;

/// What the code means.
pub fn verdict(code: u8) -> Verdict {
    use CompletionErrorCode as Code;
    let Ok(kind) = Code::try_from(code) else { return Verdict::Done };
    match kind {
        Code::NodeBusy => Verdict::Busy,
        Code::ResponseUnavailable { .. } if NOT_NOW.contains(&code) => Verdict::Busy,
        // Dell answers this to an off when the power is off already; others while a fall or rise is under way.
        Code::CannotExecuteCommandInCurrentState => Verdict::NotInThisState,
        Code::InsufficientPrivilege => Verdict::Forbidden,
        Code::InvalidCommand
        | Code::InvalidCommandForLun
        | Code::SubFunctionDisabled
        | Code::RequestedDatapointNotPresent
        | Code::ParameterOutOfRange
        | Code::InvalidDataFieldInRequest => Verdict::Unsupported,
        Code::ProcessingTimeout
        | Code::CannotExecuteDuplicateRequest
        | Code::ResponseUnavailable { .. }
        | Code::Unspecified
        | Code::Oem(_) => Verdict::Uncertain,
        _ => Verdict::Refused,
    }
}

/// A code, for people.
pub fn describe(code: u8) -> String {
    match CompletionErrorCode::try_from(code) {
        Err(()) => "success".to_owned(),
        Ok(CompletionErrorCode::NodeBusy) => format!("busy (0x{code:02X})"),
        Ok(CompletionErrorCode::InvalidCommand) => format!("no such command (0x{code:02X})"),
        Ok(CompletionErrorCode::InsufficientPrivilege) => format!("insufficient privilege (0x{code:02X})"),
        Ok(CompletionErrorCode::CannotExecuteCommandInCurrentState) => {
            format!("not supported in present state (0x{code:02X})")
        }
        Ok(_) => format!("completion code 0x{code:02X}"),
    }
}

/// What an RMCP+ status code (IPMI 2.0 table 13-15) means for the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginVerdict {
    /// All session slots are taken.
    Full,
    /// The BMC does not know this half-open session (any more): begin again.
    Again,
    /// It does not speak this cipher suite.
    OtherSuite,
    /// The user may not reach this level.
    Forbidden,
    /// The credentials are wrong.
    Credentials,
    /// Anything else.
    Protocol,
}

/// What the status means.
pub fn login_verdict(status: u8) -> LoginVerdict {
    match status {
        0x01 | 0x0B => LoginVerdict::Full,
        0x02 | 0x08 => LoginVerdict::Again,
        0x04..=0x07 | 0x10 | 0x11 => LoginVerdict::OtherSuite,
        0x09 | 0x0A => LoginVerdict::Forbidden,
        0x0C | 0x0D | 0x0F => LoginVerdict::Credentials,
        _ => LoginVerdict::Protocol,
    }
}

/// The status, for people.
pub fn describe_status(status: u8) -> String {
    let words = match status {
        0x01 => "insufficient resources to create a session",
        0x02 => "invalid session id",
        0x03 => "invalid payload type",
        0x04 => "invalid authentication algorithm",
        0x05 => "invalid integrity algorithm",
        0x06 => "no matching authentication payload",
        0x07 => "no matching integrity payload",
        0x08 => "inactive session id",
        0x09 => "invalid role",
        0x0A => "unauthorized role or privilege level requested",
        0x0B => "insufficient resources to create a session at the requested role",
        0x0C => "invalid name length",
        0x0D => "unauthorized name",
        0x0E => "unauthorized GUID",
        0x0F => "invalid integrity check value",
        0x10 => "invalid confidentiality algorithm",
        0x11 => "no cipher suite match with proposed security algorithms",
        0x12 => "illegal or unrecognized parameter",
        _ => "which the specification does not know",
    };
    format!("RMCP+ status 0x{status:02X}, {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_words_of_its_own() {
        let words: std::collections::BTreeSet<String> =
            (1..=0x12).map(|status| describe_status(status).split_off(18)).collect();
        assert_eq!(words.len(), 0x12);
        assert!(words.iter().all(|words| !words.contains("does not know")), "{words:?}");
        assert_eq!(describe_status(0xC3), "RMCP+ status 0xC3, which the specification does not know");
    }

    #[test]
    fn only_zero_is_done() {
        for code in 1..=u8::MAX {
            assert_ne!(verdict(code), Verdict::Done, "{code:#x}");
        }
        assert_eq!(verdict(0), Verdict::Done);
    }

    #[test]
    fn codes_mean_what_they_say() {
        for (code, expected) in [
            (0xC0, Verdict::Busy),
            (0xC1, Verdict::Unsupported),
            (0xC3, Verdict::Uncertain),
            (0xCE, Verdict::Uncertain),
            (0xCF, Verdict::Uncertain),
            (0xD2, Verdict::Busy),
            (0xD4, Verdict::Forbidden),
            (0xD5, Verdict::NotInThisState),
            (0xC7, Verdict::Refused),
            (0xFF, Verdict::Uncertain),
        ] {
            assert_eq!(verdict(code), expected, "{code:#x}");
        }
    }
}
