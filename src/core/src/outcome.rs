//! How a request ends, and why.

use serde::{Deserialize, Serialize};

/// Why something is blocked or wants a person. Stable words; the text beside them is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// All levels were tried and none held.
    LevelsSpent,
    /// The fence's deadline passed.
    Deadline,
    /// A release did not complete in time.
    ReleaseDeadline,
    /// Host devices contradict each other, or a host is on although all its supplies are off.
    Contradiction,
    /// The BMC restarted within the fence and its Off cannot be believed.
    BmcRestarted,
    /// A device says that it controls another machine.
    IdentityMismatch,
    /// An effect is open that nothing bounds.
    UnboundedEffect,
    /// The evidence reached is below the least grade that was asked for.
    GradeTooLow,
    /// The gateway stands on this machine (S17).
    OwnHost,
    /// The fence would cost the store its quorum (S17).
    Quorum,
    /// A budget would be exceeded (S14).
    Budget,
    /// Fencing is paused.
    Paused,
    /// The node was unfenced without an own On (stand-down), and no host device reads On.
    StandDownUnseen,
    /// The node left the settings, or its devices are elsewhere in them, while it was not back.
    Orphaned,
    /// The node was fenced too short a time ago (S14).
    CoolDown,
    /// Too much of the fleet looks dead at once: the observer is suspect (S14).
    Brake,
    /// The request waited for longer than a queued request lives (S14), or its node has another machine by now (S13).
    Expired,
    /// The request was withdrawn while it waited.
    Withdrawn,
    /// By the name under which it lets go, another machine is found than when the fence began (K1).
    Replaced,
    /// It was found on, fenced again, and found on once more, and who manages machines takes it away (K8): it would be fought over.
    BeingDeleted,
    /// The store was restored from a backup that says that the node was kept off, and no device says Off (S21).
    Restored,
}

impl Reason {
    /// Its label as people read it: `levels spent`.
    pub fn words(self) -> String {
        self.label().replace('_', " ")
    }

    /// A stable word for logs, metrics and scripts.
    pub fn label(self) -> &'static str {
        match self {
            Reason::LevelsSpent => "levels_spent",
            Reason::Deadline => "deadline",
            Reason::ReleaseDeadline => "release_deadline",
            Reason::Contradiction => "contradiction",
            Reason::BmcRestarted => "bmc_restarted",
            Reason::IdentityMismatch => "identity_mismatch",
            Reason::UnboundedEffect => "unbounded_effect",
            Reason::GradeTooLow => "grade_too_low",
            Reason::OwnHost => "self",
            Reason::Quorum => "quorum",
            Reason::Budget => "budget",
            Reason::Paused => "paused",
            Reason::StandDownUnseen => "stand_down_unseen",
            Reason::Orphaned => "orphaned",
            Reason::CoolDown => "cool_down",
            Reason::Brake => "brake",
            Reason::Expired => "expired",
            Reason::Withdrawn => "withdrawn",
            Reason::Replaced => "replaced",
            Reason::BeingDeleted => "being_deleted",
            Reason::Restored => "restored",
        }
    }

    /// With these words the moment begins that says why a person must decide; what happened follows.
    pub fn asks(self) -> String {
        format!("{ASKS}{}): ", self.words())
    }
}

/// So each moment begins that says why a person must decide.
pub const ASKS: &str = "needs an operator (";

/// How a request ended. The same words as on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Proven off; released only where it says so.
    Fenced {
        /// Whether every release was seen complete or abandoned.
        released: bool,
    },
    /// It was already proven off by the present leader, with a fresh Off.
    AlreadyFenced {
        /// Whether every release was seen complete or abandoned.
        released: bool,
    },
    /// The node recovered before anything was sent.
    AbortedRecovered,
    /// The fence that this key opened has ended since.
    Superseded,
    /// Nothing was sent.
    Blocked(Reason),
    /// A person must decide; the node is kept off.
    NeedsOperator(Reason),
    /// The on was sent and the node was not seen on.
    PowerOnFailed,
    /// A person said that it was alive.
    StoodDown,
    /// The node is back: seen on, holds gone.
    Unfenced,
    /// The hold was dropped; others still keep the node off.
    StillHeld,
    /// A person said that the hardware is gone for good.
    Retired,
}

impl Outcome {
    /// The fence ended before an off was sent: nothing was switched off. It binds no key (S20) and counts in no window (S14).
    pub fn sent_nothing(&self) -> bool {
        matches!(self, Outcome::AbortedRecovered | Outcome::Blocked(_))
    }

    /// A stable word for logs, metrics and scripts.
    pub fn label(&self) -> &'static str {
        match self {
            Outcome::Fenced { .. } => "fenced",
            Outcome::AlreadyFenced { .. } => "already_fenced",
            Outcome::AbortedRecovered => "aborted_recovered",
            Outcome::Superseded => "superseded",
            Outcome::Blocked(_) => "blocked",
            Outcome::NeedsOperator(_) => "needs_operator",
            Outcome::PowerOnFailed => "power_on_failed",
            Outcome::StoodDown => "stood_down",
            Outcome::Unfenced => "unfenced",
            Outcome::StillHeld => "still_held",
            Outcome::Retired => "retired",
        }
    }
}
