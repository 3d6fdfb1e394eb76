//! What is stored of a receipt (S19): it answers whoever asks later whether the receipt holds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::NodeRecord;
use crate::device::Grade;
use crate::ids::{EffectId, FenceId, Generation, ReceiptId};
use crate::time::WallTime;

/// Why a receipt ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its holder handed it back.
    Returned,
    /// Its holder renewed it by this one.
    Renewed(ReceiptId),
}

/// What is stored of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Its id.
    pub id: ReceiptId,
    /// The ledger's entry.
    pub effect: EffectId,
    /// The fence.
    pub fence: FenceId,
    /// The generation.
    pub generation: Generation,
    /// The fence's round in which the node had been proven off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// To whom: they alone renew it or hand it back.
    pub by: String,
    /// For whom, in their words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub audience: String,
    /// The machine, where its UUID is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system_uuid: String,
    /// How good the evidence was.
    pub grade: Grade,
    /// The node's devices switch no real machine (S1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// When it was last read Off before.
    pub off_at: WallTime,
    /// When it was issued.
    pub issued_at: WallTime,
    /// When it ends.
    pub expires_at: WallTime,
    /// Why it ended before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Where a receipt stands, whatever its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It holds until it expires.
    Stands,
    /// It was ended before its time.
    Ended(Ended),
    /// It holds no more, and why. Still no on is sent before it expires.
    Void(&'static str),
}

impl Issued {
    /// How long it lives, from its issue.
    pub fn life(&self) -> Duration {
        Duration::from_millis(self.expires_at.millis().saturating_sub(self.issued_at.millis()))
    }

    /// Where it stands in `record`, whatever its time.
    pub fn standing(&self, record: &NodeRecord) -> Standing {
        if let Some(ended) = self.ended {
            return Standing::Ended(ended);
        }
        let of_record =
            |generation: Generation| generation == record.generation && generation == self.generation;
        let fence =
            record.fence.as_ref().filter(|fence| fence.id == self.fence && of_record(fence.generation));
        match fence {
            None => Standing::Void("its fence has ended: the node was found on, or is being brought back"),
            // A person's word takes the place of the proof.
            Some(fence)
                if fence.evidence.is_none() || fence.round != self.round || fence.attestation.is_some() =>
            {
                Standing::Void("what proved the node off does not hold any more")
            }
            Some(_) => Standing::Stands,
        }
    }
}
