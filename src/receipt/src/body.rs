//! What a receipt says, as JSON: `ReceiptBody` of `picket.v1` in proto3's JSON mapping.

use picket_core::device::Grade;
use picket_core::ids::{FenceId, Generation, Incarnation, NodeId, ReceiptId};
use picket_core::receipt::Statement;
use picket_core::time::WallTime;
use serde::{Deserialize, Serialize};

/// A body that cannot be read.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the receipt's body cannot be read: {0}")]
pub struct BodyFault(String);

/// What a receipt says, in the words of the wire. Every field is written, also one that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    /// Its id.
    pub id: String,
    /// The node's name.
    pub node: String,
    /// The machine's system UUID, 32 lowercase hexadecimal digits; empty: not known.
    #[serde(default)]
    pub system_uuid: String,
    /// The life of the store in which it was issued.
    pub incarnation: String,
    /// The fence.
    pub fence_id: String,
    /// The generation, in decimal digits: JSON's numbers do not hold 64 bits everywhere.
    pub generation: String,
    /// How good the evidence is: `GRADE_OBSERVED`, ...
    pub grade: String,
    /// When the node was last read Off before it was issued.
    pub off_at: String,
    /// When it was issued.
    pub issued_at: String,
    /// When it ends, on the gateway's wall clock.
    pub expires_at: String,
    /// For whom; empty: anybody.
    #[serde(default)]
    pub audience: String,
    /// The gateway is simulated, and no real machine is off; a gateway of before this was written says nothing.
    #[serde(default)]
    pub simulated: bool,
}

const GRADES: [(Grade, &str); 5] = [
    (Grade::Attested, "GRADE_ATTESTED"),
    (Grade::Claimed, "GRADE_CLAIMED"),
    (Grade::Learned, "GRADE_LEARNED"),
    (Grade::Hypervisor, "GRADE_HYPERVISOR"),
    (Grade::Observed, "GRADE_OBSERVED"),
];

impl From<&Statement> for Body {
    fn from(said: &Statement) -> Self {
        let grade = GRADES.iter().find(|(grade, _)| *grade == said.grade);
        Self {
            id: said.id.to_string(),
            node: said.node.to_string(),
            system_uuid: said.system_uuid.clone(),
            incarnation: said.incarnation.to_string(),
            fence_id: said.fence.to_string(),
            generation: said.generation.to_string(),
            grade: grade.map_or("GRADE_UNSPECIFIED", |(_, word)| word).to_owned(),
            off_at: said.off_at.to_string(),
            issued_at: said.issued_at.to_string(),
            expires_at: said.expires_at.to_string(),
            audience: said.audience.clone(),
            simulated: said.simulated,
        }
    }
}

impl Body {
    /// The bytes that are signed.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Strings and a flag alone: there is nothing in it that could not be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the bytes that were signed. Fields that a later version added are passed over.
    pub fn read(bytes: &[u8]) -> Result<Self, BodyFault> {
        let body: Self = serde_json::from_slice(bytes).map_err(|error| BodyFault(error.to_string()))?;
        body.statement()?;
        Ok(body)
    }

    /// The same in the words of the rules.
    pub fn statement(&self) -> Result<Statement, BodyFault> {
        let wrong = |field: &str, text: &str| BodyFault(format!("{field} is {text:?}"));
        let at = |field: &str, text: &str| WallTime::parse(text).ok_or_else(|| wrong(field, text));
        let grade = GRADES.iter().find(|(_, word)| *word == self.grade);
        Ok(Statement {
            id: self.id.parse::<ReceiptId>().map_err(|_| wrong("id", &self.id))?,
            node: NodeId::new(&self.node).map_err(|error| BodyFault(error.to_string()))?,
            system_uuid: self.system_uuid.clone(),
            incarnation: self
                .incarnation
                .parse::<Incarnation>()
                .map_err(|_| wrong("incarnation", &self.incarnation))?,
            fence: self.fence_id.parse::<FenceId>().map_err(|_| wrong("fenceId", &self.fence_id))?,
            generation: self
                .generation
                .parse()
                .map(Generation)
                .map_err(|_| wrong("generation", &self.generation))?,
            grade: grade.map(|(grade, _)| *grade).ok_or_else(|| wrong("grade", &self.grade))?,
            off_at: at("offAt", &self.off_at)?,
            issued_at: at("issuedAt", &self.issued_at)?,
            expires_at: at("expiresAt", &self.expires_at)?,
            audience: self.audience.clone(),
            simulated: self.simulated,
        })
    }
}
