//! Why an event changes nothing.

/// Why an event changes nothing.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refused {
    /// Not in this phase.
    #[error("{wanted} is not possible in phase {}: {hint}", .phase.replace('_', " "))]
    Phase {
        /// What was wanted.
        wanted: &'static str,
        /// The present phase.
        phase: &'static str,
        /// What would be right.
        hint: &'static str,
    },
    /// Holds keep the node off.
    #[error("still held by {}", .0.join(", "))]
    Held(Vec<String>),
    /// No such hold.
    #[error("{holder:?} holds nothing here; {}", there_is(.holds, "holds: ", "nobody does"))]
    NoSuchHold {
        /// What was asked for.
        holder: String,
        /// What there is.
        holds: Vec<String>,
    },
    /// An open effect bars it.
    #[error("an open effect bars it: {}", .0.join(", "))]
    OpenEffects(Vec<String>),
    /// A release is neither complete nor abandoned.
    #[error("not released yet: {}; let it complete, or abandon it by name", .0.join(", "))]
    NotReleased(Vec<String>),
    /// More of a release is attached than may be let go part by part.
    #[error(
        "release {0} would have {1} parts, and no more than {2} may be: let some of it go by hand, or let the settings exclude it"
    )]
    TooManyParts(String, usize, usize),
    /// The topology or the plan has no such thing.
    #[error("there is no {what} {name:?} here; {}", there_is(.known, "there is: ", "the node has none"))]
    NoSuch {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// Which there are.
        known: Vec<String>,
    },
    /// As many receipts are open as may be.
    #[error("{0} receipts are open, and no more may be: renew one, hand one back, or wait until one expires")]
    TooManyReceipts(usize),
    /// As many holds keep the node off as may be.
    #[error("{} under {} names, and no more may be: drop one of {}", held_by(.by.as_deref()), .holds.len(), .holds.join(", "))]
    TooManyHolds {
        /// The caller who has as many as one may have. `None`: all callers together have.
        by: Option<String>,
        /// The names of these holds.
        holds: Vec<String>,
    },
    /// A receipt that was issued to somebody else.
    #[error("receipt {receipt} was issued to {of:?}, and nobody else hands it back or renews it")]
    NotTheirs {
        /// Which.
        receipt: String,
        /// To whom.
        of: String,
    },
    /// A proof that does not belong to this fence, generation or leadership, or that an open effect bars.
    #[error("the proof does not hold here: {0}")]
    ForeignProof(&'static str),
    /// A host device says On.
    #[error(
        "{device} says that the node is on ({said}): nobody vouches against that; pull its plug, or mend {device}, until no device \
         says on"
    )]
    SaysOn {
        /// The device.
        device: String,
        /// Its own words.
        said: String,
    },
    /// A drill by supplies of which nobody knows what they feed, of a node with volumes.
    #[error(
        "nobody knows yet what {} feed, and a drill would let the node's volumes go: drill it with `releases = []`, and give it \
         its releases after that",
        .0.join(", ")
    )]
    WiringUnknown(Vec<String>),
    /// An off was sent already: the fence runs to its end.
    #[error("an off was sent already: the fence runs to its end")]
    OffSent,
}

/// What there is, or that there is nothing.
fn there_is(names: &[String], some: &str, none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { format!("{some}{}", names.join(", ")) }
}

fn held_by(caller: Option<&str>) -> String {
    caller.map_or("the node is held".to_owned(), |caller| format!("{caller:?} holds the node"))
}
