//! Why a node is held to be off, for people and history. It proves nothing by itself any more.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::{Grade, IdentityMatch};
use crate::ids::{DeviceId, Generation};
use crate::time::WallTime;

/// A person's word that the node is off (S12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// Who.
    pub by: String,
    /// Why they know.
    pub reason: String,
    /// When.
    pub at: WallTime,
    /// The generation for which it holds.
    pub generation: Generation,
}

/// One device's part in a proof, for people and history. It proves nothing by itself any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEvidence {
    /// The device.
    pub device: DeviceId,
    /// Its own words at the last reading.
    pub said: String,
    /// Readings in a row that said Off.
    pub readings: u32,
    /// From the first of them to the last.
    pub lasted: Duration,
    /// What was engaged to keep it off.
    pub hold: Vec<String>,
    /// Whether the long window was asked for, and why (`already off`, `no epochs`, `resumed`, ...).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_window: Option<String>,
    /// What comparing identities said.
    pub identity: IdentityMatch,
}

/// Why the node is held to be off, as told to callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// How good it is.
    pub grade: Grade,
    /// What lowered the grade.
    pub lowered_by: Vec<String>,
    /// Which level held, from 1; 0 for a person's word.
    pub level: usize,
    /// When the first Off of the confirming run was answered.
    pub off_since: WallTime,
    /// When it was confirmed.
    pub confirmed_at: WallTime,
    /// The devices of the level.
    pub devices: Vec<DeviceEvidence>,
}
