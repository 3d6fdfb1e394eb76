//! What a receiver is told: one JSON document, the same for a webhook and a program.
//!
//! # Invariants
//!
//! - The document outlives this version: fields are added, never renamed and never taken away. A receiver
//!   ignores what it does not know. Shown by `the_document_is_what_receivers_know`.

use picket_answers::release::{ReleaseError, Subject};
use picket_core::device::{Grade, IdentityMatch};
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_core::record::Evidence;
use serde::Serialize;

/// The document's version.
pub const VERSION: u32 = 1;

/// What is asked of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Let the node's volumes go, once for this key.
    Release,
    /// Tell how far that is; change nothing.
    Status,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// [`VERSION`].
    pub version: u32,
    /// What is asked.
    pub ask: Ask,
    /// `<fence>/<generation>/<release>`: the same in every attempt of one release.
    pub key: String,
    /// The node whose volumes are to be let go.
    pub node: String,
    /// The fence.
    pub fence: String,
    /// The node's generation; a request with an older one than was seen is void.
    pub generation: u64,
    /// The release, by its name in the settings.
    pub release: String,
    /// The leadership that permits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// The ledger's number of this attempt, for logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<u64>,
    /// After this moment nothing may be begun any more on the strength of this request. RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<String>,
    /// The same, in milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after_unix_ms: Option<u64>,
    /// Why the node is held to be off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Told>,
    /// With [`Ask::Status`]: what the receiver gave as `reference` when it accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// Evidence, as told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// `observed`, `hypervisor`, `claimed` or `attested`, best first.
    pub grade: &'static str,
    /// What lowered the grade.
    pub lowered_by: Vec<String>,
    /// Which level of the node's topology held, from 1; 0 for a person's word.
    pub level: usize,
    /// When the first Off of the confirming run was answered. RFC 3339, UTC.
    pub off_since: String,
    /// When it was confirmed. RFC 3339, UTC.
    pub confirmed_at: String,
    /// The devices that said so.
    pub devices: Vec<ToldDevice>,
}

/// One device's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToldDevice {
    /// Its name within the node.
    pub device: String,
    /// Its own words.
    pub said: String,
    /// Readings in a row that said Off.
    pub readings: u32,
    /// From the first of them to the last, in milliseconds.
    pub lasted_ms: u64,
    /// What keeps it off; empty: nothing.
    pub hold: Vec<String>,
    /// `match` or `unknown`: whether it says that it controls this node. (A mismatch is never evidence.)
    pub identity: &'static str,
}

fn key(fence: &str, generation: u64, release: &str) -> String {
    format!("{fence}/{generation}/{release}")
}

impl Message {
    /// The request of one attempt. An order and a permit that do not belong together make none.
    pub fn of(order: &ReleaseOrder, permit: &ReleasePermit<'_>) -> Result<Self, ReleaseError> {
        if order.node() != permit.node() || order.generation() != permit.generation() {
            let (order, permit) = ((order.node(), order.generation()), (permit.node(), permit.generation()));
            let detail =
                format!("the order is for {order:?} and the permit for {permit:?}: a defect of the gateway");
            return Err(ReleaseError::DidNotHappen(detail));
        }
        let (fence, generation) = (permit.fence().to_string(), permit.generation().0);
        Ok(Self {
            version: VERSION,
            ask: Ask::Release,
            key: key(&fence, generation, order.release().as_str()),
            node: permit.node().to_string(),
            fence,
            generation,
            release: order.release().to_string(),
            term: Some(permit.term().0),
            effect: Some(order.effect().0),
            not_after: Some(permit.not_after().to_string()),
            not_after_unix_ms: Some(permit.not_after().millis()),
            evidence: Some(Told::of(permit.evidence())),
            reference: None,
        })
    }

    /// The question how far an accepted release is.
    pub fn status(subject: &Subject) -> Self {
        let (fence, generation) = (subject.fence.to_string(), subject.generation.0);
        Self {
            version: VERSION,
            ask: Ask::Status,
            key: key(&fence, generation, subject.release.as_str()),
            node: subject.node.to_string(),
            fence,
            generation,
            release: subject.release.to_string(),
            term: None,
            effect: None,
            not_after: None,
            not_after_unix_ms: None,
            evidence: None,
            reference: Some(subject.accepted.clone()).filter(|reference| !reference.is_empty()),
        }
    }

    /// As bytes.
    pub(crate) fn json(&self) -> Result<Vec<u8>, ReleaseError> {
        serde_json::to_vec(self)
            .map_err(|error| ReleaseError::DidNotHappen(format!("cannot be written: {error}")))
    }
}

impl Told {
    fn of(evidence: &Evidence) -> Self {
        Self {
            grade: match evidence.grade {
                Grade::Observed => "observed",
                Grade::Hypervisor => "hypervisor",
                Grade::Learned => "learned",
                Grade::Claimed => "claimed",
                Grade::Attested => "attested",
            },
            lowered_by: evidence.lowered_by.clone(),
            level: evidence.level,
            off_since: evidence.off_since.to_string(),
            confirmed_at: evidence.confirmed_at.to_string(),
            devices: evidence
                .devices
                .iter()
                .map(|device| ToldDevice {
                    device: device.device.to_string(),
                    said: device.said.clone(),
                    readings: device.readings,
                    lasted_ms: u64::try_from(device.lasted.as_millis()).unwrap_or(u64::MAX),
                    hold: device.hold.clone(),
                    identity: match device.identity {
                        IdentityMatch::Match => "match",
                        IdentityMatch::Learned => "learned",
                        IdentityMatch::Unknown => "unknown",
                        IdentityMatch::Mismatch => "mismatch",
                    },
                })
                .collect(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use picket_core::ids::{DeviceId, FenceId, Generation, NodeId, ReleaseId};
    use picket_core::record::DeviceEvidence;
    use picket_core::time::WallTime;

    use super::*;

    const FENCE: &str = "019aa7c8-4a0a-7000-8000-000000000001";

    /// A request as an attempt makes it, with time left.
    pub(crate) fn sample() -> Message {
        let not_after = WallTime::from_millis(4_102_444_800_000);
        Message {
            not_after: Some(not_after.to_string()),
            not_after_unix_ms: Some(not_after.millis()),
            ..golden()
        }
    }

    /// The same, as it was written down.
    pub(crate) fn golden() -> Message {
        let evidence = Evidence {
            grade: Grade::Hypervisor,
            lowered_by: vec!["identity unknown".to_owned()],
            level: 1,
            off_since: WallTime::from_millis(1_795_250_372_042),
            confirmed_at: WallTime::from_millis(1_795_250_373_100),
            devices: vec![DeviceEvidence {
                device: DeviceId::new("bmc").expect("a name"),
                said: "chassis status 0x60".to_owned(),
                readings: 2,
                lasted: Duration::from_millis(1_020),
                hold: vec!["restore policy always-off".to_owned()],
                long_window: None,
                identity: IdentityMatch::Unknown,
            }],
        };
        Message {
            term: Some(3),
            effect: Some(41),
            not_after: Some(WallTime::from_millis(1_795_250_433_100).to_string()),
            not_after_unix_ms: Some(1_795_250_433_100),
            evidence: Some(Told::of(&evidence)),
            ask: Ask::Release,
            ..Message::status(&subject(""))
        }
    }

    pub(crate) fn subject(accepted: &str) -> Subject {
        Subject {
            node: NodeId::new("r1n07").expect("a name"),
            fence: FENCE.parse::<FenceId>().expect("a fence's id"),
            generation: Generation(7),
            round: 0,
            release: ReleaseId::new("san").expect("a name"),
            accepted: accepted.to_owned(),
            identities: Vec::new(),
            met: None,
        }
    }

    /// Receivers were written against these words: a change here breaks them.
    #[test]
    fn the_document_is_what_receivers_know() {
        let told = serde_json::to_value(golden()).expect("a document");
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/release-v1.json")).expect("the golden");
        assert_eq!(told, golden, "{told:#}");
        let told = serde_json::to_value(Message::status(&subject("job 12"))).expect("a document");
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/status-v1.json")).expect("the golden");
        assert_eq!(told, golden, "{told:#}");
    }
}
