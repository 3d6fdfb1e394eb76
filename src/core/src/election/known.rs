//! Who takes part in an election, as far as a gateway knows.

use crate::ids::Term;
use crate::time::WallTime;

/// A gateway that takes part in the election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name in its settings.
    pub gateway: String,
    /// Where callers reach it (`https://g1:7070`).
    pub endpoints: Vec<String>,
    /// Its version.
    pub version: String,
    /// Why it does not stand, in words; `None`: it stands.
    pub aside: Option<String>,
}

/// Who leads, as this gateway last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// This one does, or did when the election's store was last heard.
    Leader(Member, Term),
    /// Nobody, since then.
    Nobody(WallTime),
    /// The election's store does not answer, since then; why, in words.
    Away(WallTime, String),
}
