//! What is stored of one release of a fence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::ReleaseId;

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

/// One release of a fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseState {
    /// Its name in the settings.
    pub id: ReleaseId,
    /// How long an attempt of it may still take effect after its sender stopped (S8).
    pub max_in_flight: Option<Duration>,
    /// How far it is.
    pub stage: ReleaseStage,
    /// Attempts so far.
    pub attempts: u32,
    /// An attempt from before a breach was never seen to have finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// What was said last: an error, a far side's word, who abandoned it and why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}
