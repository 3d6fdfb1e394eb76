//! Who takes part in an election, as far as a gateway knows.

use std::collections::BTreeMap;

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

/// By which settings of nodes, devices, rules and roles each gateway works, as far as one knows: digests, each empty where it is not
/// known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// This gateway's own.
    pub own: String,
    /// Those by which was led last: who has others does not stand.
    pub led_by: String,
    /// The others', by their names.
    pub others: BTreeMap<String, String>,
}

impl Digests {
    /// Whether this gateway's settings are surely not those by which was led last.
    pub fn differ(&self) -> bool {
        !self.own.is_empty() && !self.led_by.is_empty() && self.own != self.led_by
    }
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
