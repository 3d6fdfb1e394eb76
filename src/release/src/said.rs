//! What a releaser says: how far the far side is, what was found there, and why something did not succeed.

use picket_core::device::Identity;

/// How far the far side is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It took the request and works on it; ask [`crate::Releaser::observe`].
    Accepted(String),
    /// It was seen to have finished.
    Complete(String),
    /// It knows nothing of the request: a new attempt is due.
    NotThere(String),
}

/// What the next attempt goes by, as the far side had it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Whom it has for the node, in its own words.
    pub met: Option<String>,
    /// What an attempt takes away itself, and others too for as long as they act upon what it sets up; in words.
    pub beside: Option<String>,
    /// What an attempt sets up stands there.
    pub stands: bool,
}

/// What was found before a node is switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetOn {
    /// What an attempt sets up stands there: it is taken away first, and waited for.
    pub stands: bool,
    /// What else is to be told, in words; it does not bar the on.
    pub found: Option<String>,
}

/// What the far side says of a machine of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// What its cloud calls it.
    pub provider_id: Option<String>,
    /// What it says of itself.
    pub identity: Identity,
}

impl Progress {
    /// In words.
    pub fn words(&self) -> &str {
        match self {
            Progress::Accepted(words) | Progress::Complete(words) | Progress::NotThere(words) => words,
        }
    }
}

/// Why an attempt or a look did not succeed. The text never holds a secret.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReleaseError {
    /// Nothing happened: refused, not reached, not started.
    #[error("{0}")]
    DidNotHappen(String),
    /// Nothing happened: what stands there is somebody else's, and is taken away by nobody but them (K7).
    #[error("{0}")]
    Barred(String),
    /// Nothing happened, and nothing will: what it would let go is another machine's by now, or was in between (K1). A person decides.
    #[error("{0}")]
    Replaced(String),
    /// It may have happened, or may yet. Of a look: nothing is known.
    #[error("{0} (the effect is unknown)")]
    Unknown(String),
}

impl ReleaseError {
    /// What went wrong, where no effect is meant.
    pub fn into_words(self) -> String {
        match self {
            ReleaseError::DidNotHappen(why)
            | ReleaseError::Barred(why)
            | ReleaseError::Replaced(why)
            | ReleaseError::Unknown(why) => why,
        }
    }

    /// The same words, of a look: nothing is known.
    pub(crate) fn into_unknown(self) -> Self {
        match self {
            replaced @ ReleaseError::Replaced(_) => replaced,
            ReleaseError::DidNotHappen(why) | ReleaseError::Barred(why) | ReleaseError::Unknown(why) => {
                ReleaseError::Unknown(why)
            }
        }
    }
}
