//! That a record came out of a backup (S21).

use serde::{Deserialize, Serialize};

use crate::ids::Incarnation;
use crate::time::WallTime;

/// That the record came out of a backup and no device has said since whether the node is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// When it was restored.
    pub at: WallTime,
    /// When the backup was taken.
    pub taken_at: WallTime,
    /// The life of the store from which it was taken.
    pub from: Incarnation,
    /// What phase the backup says.
    pub phase: String,
    /// What the old life may still have had under way stands in the ledger, to be waited out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
}
