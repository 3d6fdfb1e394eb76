//! What a device answers to a call: that it took a command, what a hold did, whose machine it controls, or why nothing.

use std::collections::BTreeMap;
use std::fmt;

use picket_core::device::Identity;
use picket_core::power::Epoch;
use picket_core::time::BootTime;

/// What a device said of whose machine it controls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identified {
    /// [`Identity::default`] if it says nothing.
    pub identity: Identity,
    /// The device's life in which it said so: in another one it may be another device, at the same address (S13). `None` for a
    /// device without epochs.
    pub epoch: Option<Epoch>,
}

/// The device took a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// When the first copy of the request was sent.
    pub asked_at: BootTime,
    /// When the device's yes arrived. Only readings asked for after this may count.
    pub answered_at: BootTime,
    /// The device's life in which it was taken.
    pub epoch: Option<Epoch>,
    /// The device said that it was in that state already.
    pub already: bool,
}

/// The settings that a driver found before a hold, in its own keys; they are put back at unfence. A key that begins with
/// `HoldState::SEEN` is not put back: its value was so before the first off of this generation, and is found anew in the next one.
pub type HoldFound = BTreeMap<String, String>;

/// What a hold, or its undoing, did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldReport {
    /// What is engaged now, in words (`restore policy always-off`).
    pub engaged: Vec<String>,
    /// What could not be done and why, in words; empty if nothing.
    pub detail: String,
}

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
    /// Its turn at what it shares with other devices did not come: it was asked nothing.
    NoTurn,
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
            ErrorKind::NoTurn => "no_turn",
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
    /// The device's own refusal of the command itself; `None`: of a login, of a question that came before the command, by one who is
    /// busy, by silence. A machine that took an off, and is off, may answer so when it is told again (S2).
    pub refusal: Option<Refusal>,
    /// Waiting changes nothing: the same command is refused until a person changes something.
    pub is_final: bool,
}

/// When, and in which of its lives, a device refused a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When the first copy of the command was sent.
    pub asked_at: BootTime,
    /// When the last refusal arrived.
    pub answered_at: BootTime,
    /// The life of the device in which it refused; `None`: a device without epochs.
    pub epoch: Option<Epoch>,
}

impl DriverError {
    /// An error of that kind.
    pub fn new(kind: ErrorKind, effect: Effect, detail: impl Into<String>) -> Self {
        Self { kind, effect, detail: detail.into(), refusal: None, is_final: false }
    }

    /// The device itself answered the command, and so.
    #[must_use]
    pub fn by_refusal(self, refusal: Refusal) -> Self {
        Self { refusal: Some(refusal), ..self }
    }

    /// Waiting changes nothing where that is so.
    #[must_use]
    pub fn for_good(self, is_final: bool) -> Self {
        Self { is_final, ..self }
    }

    /// Whether it did not happen, and a person has to change what it failed for: no wait does.
    pub fn waits_for_a_person(&self) -> bool {
        let is_for_a_person =
            matches!(self.kind, ErrorKind::Authentication | ErrorKind::Forbidden | ErrorKind::Settings);
        self.effect == Effect::DidNotHappen && (self.is_final || is_for_a_person)
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
