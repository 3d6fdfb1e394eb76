//! One error for all drivers: what went wrong, and what that means for power.

use std::fmt;

/// What an error means for the command (S10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The device surely did not do it: nothing was sent, or it refused.
    DidNotHappen,
    /// It may have done it, may do it now, or later. Neither failure nor success: keep reading.
    Unknown,
}

/// A stable kind, for metrics and for what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// No way to it: refused, no route, no name.
    Unreachable,
    /// No answer within the call.
    TimedOut,
    /// It refused the credentials, or did not prove its own.
    Authentication,
    /// The credentials are right and may not do this.
    Forbidden,
    /// It is busy, or limits requests or sessions.
    Throttled,
    /// It cannot do this at all.
    Unsupported,
    /// Its answer makes no sense.
    Protocol,
    /// It refused in its own words.
    Refused,
    /// It controls another machine than the settings say.
    IdentityMismatch,
    /// This gateway does not lead (any more): nothing was sent.
    NotLeader,
    /// The settings of the device do not work (a key file that is gone, a program that is not there).
    Settings,
}

impl ErrorKind {
    /// A stable word for metrics.
    pub fn metric_label(self) -> &'static str {
        match self {
            ErrorKind::Unreachable => "unreachable",
            ErrorKind::TimedOut => "timed_out",
            ErrorKind::Authentication => "authentication",
            ErrorKind::Forbidden => "forbidden",
            ErrorKind::Throttled => "throttled",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Refused => "refused",
            ErrorKind::IdentityMismatch => "identity_mismatch",
            ErrorKind::NotLeader => "not_leader",
            ErrorKind::Settings => "settings",
        }
    }
}

/// Why a call to a device did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub struct DriverError {
    /// The stable kind.
    pub kind: ErrorKind,
    /// What it means for the command.
    pub effect: Effect,
    /// For people: what was sent, what came back. Never a secret.
    pub detail: String,
}

impl DriverError {
    /// An error of that kind.
    pub fn new(kind: ErrorKind, effect: Effect, detail: impl Into<String>) -> Self {
        Self { kind, effect, detail: detail.into() }
    }

    /// The device cannot do this; nothing was sent that changes anything.
    pub fn unsupported(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, Effect::DidNotHappen, detail)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.metric_label().replace('_', " "), self.detail)?;
        match self.effect {
            Effect::DidNotHappen => Ok(()),
            Effect::Unknown => f.write_str(" (the effect is unknown)"),
        }
    }
}
