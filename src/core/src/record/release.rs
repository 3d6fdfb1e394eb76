//! What is stored of one release of a fence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{EffectId, ReleaseId};
use crate::time::WallTime;

/// How far one release is. *Requested → accepted → observed complete.*
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseStage {
    /// Not asked for yet.
    Pending,
    /// An attempt was stored and perhaps sent.
    Requested,
    /// The far side took it and works on it.
    Accepted,
    /// The far side was seen to have finished.
    Complete,
    /// A person gave it up, by name.
    Abandoned,
}

impl ReleaseStage {
    /// Nothing more is to be done.
    pub fn is_over(self) -> bool {
        matches!(self, ReleaseStage::Complete | ReleaseStage::Abandoned)
    }
}

/// What a part of a release lets go: one volume, at its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Part {
    /// The volume, as whoever attaches it identifies it.
    pub volume: String,
    /// Where the node has it, as a detach names it; empty: a detach names no place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Its name, for people; empty: it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.volume)?;
        let words: Vec<&str> =
            [self.name.as_str(), self.device.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
        if words.is_empty() { Ok(()) } else { write!(f, " ({})", words.join(", ")) }
    }
}

/// One release of a fence, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseState {
    /// Its name in the settings. Of a part: that, and its own. Parts stand before the release of which they are.
    pub id: ReleaseId,
    /// How long an attempt of it may still take effect after its sender stopped (S8).
    pub max_in_flight: Option<Duration>,
    /// What its attempts set up lets volumes go for as long as it stands; nothing is switched on for so long after it was seen to be
    /// gone. `None`: they set up nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lingers: Option<Duration>,
    /// What stands of it was only asked for, by that attempt first: its answer ends it, and nobody acts on it once it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<EffectId>,
    /// Its far side may know the node by its name alone: the evidence is graded lower (K1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_name: bool,
    /// How far it is.
    pub stage: ReleaseStage,
    /// Attempts so far.
    pub attempts: u32,
    /// An attempt from before a breach was never seen to have finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// Its deadline is over, and this one, which stands behind it, acts first (S23). It has its turn again after that, before all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_on: Option<ReleaseId>,
    /// Since when it is its turn; its deadline counts from here, whichever process goes on with it. `None`: it was not its turn yet, or it has
    /// all of its time again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<WallTime>,
    /// What somebody else set up at its far side bars it, and the way back, as was answered last (K7).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub barred: bool,
    /// What was said last: an error, a far side's word, who abandoned it and why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Whom its far side has for the node, in its own words, as it was met first: somebody else by that name is another machine (K1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What it is a part of its release for; `None`: it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

impl ReleaseState {
    /// One of which nothing was done.
    pub fn pending(id: ReleaseId, max_in_flight: Option<Duration>) -> Self {
        Self {
            id,
            max_in_flight,
            lingers: None,
            asked_by: None,
            by_name: false,
            stage: ReleaseStage::Pending,
            attempts: 0,
            unfinished: false,
            passed_on: None,
            since: None,
            barred: false,
            detail: String::new(),
            subject: None,
            part: None,
        }
    }
}
