//! What stands in the election's keys.

use std::time::Duration;

use picket_core::election::Member;
use picket_core::ids::Term;
use serde::{Deserialize, Serialize};

use crate::connection::Version;

/// A gateway that takes part in the election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// This gateway, with a name that no other one of the fleet has, and its version as `major.minor.patch`.
    pub me: Member,
    /// The least version that may lead once this one has led; never lowered in the store.
    pub least_version: Option<Version>,
    /// Stands also where the last leader had other settings.
    pub take_over_settings: bool,
    /// How long a leader that fell silent counts as one, in whole seconds, 3 at least.
    pub lease: Duration,
}

/// The leader's key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaderValue {
    pub(crate) term: Term,
    pub(crate) gateway: String,
    pub(crate) endpoints: Vec<String>,
    pub(crate) version: String,
    /// Of this one attempt.
    pub(crate) campaign: String,
}

/// A member's key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberValue {
    pub(crate) endpoints: Vec<String>,
    pub(crate) version: String,
    /// Of the settings that it has.
    #[serde(default)]
    pub(crate) digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) aside: Option<String>,
}

impl LeaderValue {
    /// What cannot be read is a leader all the same: of whom nothing is known.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(crate) fn member(&self, known: Option<&MemberValue>) -> Member {
        Member {
            gateway: self.gateway.clone(),
            endpoints: self.endpoints.clone(),
            version: self.version.clone(),
            aside: known.and_then(|member| member.aside.clone()),
        }
    }
}

impl MemberValue {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(crate) fn member(&self, gateway: &str) -> Member {
        Member {
            gateway: gateway.to_owned(),
            endpoints: self.endpoints.clone(),
            version: self.version.clone(),
            aside: self.aside.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_versions_may_say_more_and_nonsense_is_somebody_unknown() {
        let read = LeaderValue::read(
            br#"{"term":7,"gateway":"g1","endpoints":[],"version":"0.9.0","campaign":"c","x":1}"#,
        );
        assert_eq!((read.term, read.gateway.as_str()), (Term(7), "g1"));
        assert_eq!(LeaderValue::read(b"?"), LeaderValue::default());
        let member = MemberValue::read(br#"{"endpoints":["https://g1:7070"],"version":"1.0.0","more":[]}"#);
        assert_eq!(member.member("g1").endpoints, ["https://g1:7070"]);
    }
}
