//! What a release is about, what its far side answers, and why something did not succeed.

use picket_core::device::Identity;
use picket_core::ids::{FenceId, Generation, NodeId, ReleaseId};
use picket_core::record::Part;

/// Of which node something stands at the far side, or is left there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whose {
    /// The node.
    pub node: NodeId,
    /// What its host devices say of themselves, as in [`Subject`].
    pub identities: Vec<Identity>,
    /// Whom the far side had for it when it was met first in this fence, or in the last one of a node that is retired; `None`: nobody was met,
    /// or no fence runs.
    pub met: Option<String>,
}

/// Whose leavings are taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Whose.
    pub whose: Whose,
    /// The node's generation, by whoever asks.
    pub generation: Generation,
    /// The node is retired, and does not come back.
    pub gone: bool,
    /// In its last fence an off was sent: what keeps others away goes only once the node was seen to be back, whatever became of its releases.
    pub off: bool,
    /// Whom the far side had for it when it was met first in its last fence, as the history has it: of a node that is back, and where the releaser
    /// recalls it.
    pub met_last: Option<String>,
}

/// Of which fence a release is, and about whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The node.
    pub node: NodeId,
    /// The fence.
    pub fence: FenceId,
    /// The generation.
    pub generation: Generation,
    /// How often evidence began from zero in it: the machine may have run in between.
    pub round: u32,
    /// The release.
    pub release: ReleaseId,
    /// What the far side said when it accepted (a status URL).
    pub accepted: String,
    /// What the node's host devices say of themselves, as the settings have it or as it was learned (S13). Empty: nobody knows.
    pub identities: Vec<Identity>,
    /// Whom the far side had for the node when it was met first in this fence; `None`: nobody was met.
    pub met: Option<String>,
}

/// What was found attached, and which of it is to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What is to be let go.
    pub parts: Vec<Part>,
    /// What stays, and why, in words.
    pub stays: Vec<(Part, String)>,
}

/// How far the far side is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It took the request and works on it: it is to be looked at.
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
    pub fn into_unknown(self) -> Self {
        match self {
            replaced @ ReleaseError::Replaced(_) => replaced,
            ReleaseError::DidNotHappen(why) | ReleaseError::Barred(why) | ReleaseError::Unknown(why) => {
                ReleaseError::Unknown(why)
            }
        }
    }
}
