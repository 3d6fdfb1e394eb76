//! Names and numbers. All numbers here only grow; what carries an old one is void.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A name that cannot be used, and what would be right.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{what} {got:?} is not valid: {expected}")]
pub struct BadName {
    what: &'static str,
    got: String,
    expected: &'static str,
}

fn checked(what: &'static str, text: &str) -> Result<Arc<str>, BadName> {
    let fits = !text.is_empty()
        && text.len() <= 253
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if fits {
        Ok(Arc::from(text))
    } else {
        Err(BadName {
            what,
            got: text.chars().take(64).collect(),
            expected: "1 to 253 letters, digits, '-', '_' or '.', the first a letter or digit",
        })
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks the name: 1 to 253 letters, digits, `-`, `_` or `.`, the first a letter or digit.
            pub fn new(text: &str) -> Result<Self, BadName> {
                checked($what, text).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(&text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0.to_string()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name!(
    /// A machine that may be fenced, by its name in the settings.
    NodeId,
    "node name"
);
name!(
    /// A device of one node: unique within that node (`bmc`, `pdu-a`).
    DeviceId,
    "device name"
);
name!(
    /// A releaser, by its name in the settings.
    ReleaseId,
    "release name"
);

macro_rules! number {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(pub u64);

        impl $type {
            /// The number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number!(
    /// Number of a leadership. Grows over restarts.
    Term
);
number!(
    /// Number of a node's fences and unfences.
    Generation
);
number!(
    /// Version of one stored record: 0 is "not stored yet", each write adds one.
    Version
);
number!(
    /// Position in the store's history of changes; a watch resumes from it.
    Revision
);
number!(
    /// One entry of a node's ledger of open effects; unique within the node.
    EffectId
);

macro_rules! uuid_id {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(Uuid);

        impl $type {
            /// A version 7 UUID (RFC 9562 §5.7): grows with the wall clock, unique by 74 random bits.
            pub fn mint(wall: crate::time::WallTime, random: [u8; 10]) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(wall.millis(), &random).into_uuid())
            }
        }

        impl From<Uuid> for $type {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$type> for Uuid {
            fn from(id: $type) -> Uuid {
                id.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_id!(
    /// One fence of one node.
    FenceId
);
uuid_id!(
    /// One life of the store; a restore starts a new one.
    Incarnation
);
uuid_id!(
    /// One receipt of one node.
    ReceiptId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_the_error_says_what_would_be_right() {
        assert!(NodeId::new("r1n01.example").is_ok());
        for bad in ["", "-a", "a b", "a/b", &"x".repeat(254)] {
            let error = NodeId::new(bad).expect_err(bad).to_string();
            assert!(error.contains("letters, digits"), "{error}");
        }
    }

    #[test]
    fn a_name_from_the_wire_is_checked_too() {
        assert!(serde_json::from_str::<NodeId>("\"a b\"").is_err());
    }
}
