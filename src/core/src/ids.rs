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

/// A name, or two with one `/` between them: a whole and its part.
fn checked_part(what: &'static str, text: &str) -> Result<Arc<str>, BadName> {
    match text.split_once('/') {
        None => checked(what, text),
        Some((whole, part)) => {
            checked(what, whole)?;
            checked(what, part)?;
            Ok(Arc::from(text))
        }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $stored:ident) => {
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
                $stored($what, &text).map(Self)
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
    "node name",
    checked
);
name!(
    /// A device of one node: unique within that node (`bmc`, `pdu-a`).
    DeviceId,
    "device name",
    checked
);
name!(
    /// A release, by its name in the settings; or one of its parts, which no settings name: `volumes/vol-0abc`.
    ReleaseId,
    "release name",
    checked_part
);

impl ReleaseId {
    /// The name of a release, or of a part of one, as people give it.
    pub fn named(text: &str) -> Result<Self, BadName> {
        checked_part("release name", text).map(Self)
    }

    /// Its part of that name, as whoever has it names it. What a name cannot have is replaced, and a digest of the whole text
    /// added: two parts never have one name.
    #[must_use]
    pub fn part(&self, of: &str) -> Self {
        let part = checked("release name", of).unwrap_or_else(|_| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let kept: String = of.chars().filter(|c| fits(*c)).rev().take(100).collect();
            let kept: String = kept.chars().rev().collect();
            Arc::from(format!("v{kept}-{:016x}", digest(of)))
        });
        Self(Arc::from(format!("{}/{part}", self.whole())))
    }

    /// Whether it is a part of a release.
    pub fn is_part(&self) -> bool {
        self.0.contains('/')
    }

    /// The name in the settings: of the release of which it is a part, or its own.
    #[must_use]
    pub fn whole(&self) -> Self {
        match self.0.split_once('/') {
            Some((whole, _)) => Self(Arc::from(whole)),
            None => self.clone(),
        }
    }

    /// Whether it is that release, or a part of it.
    pub fn belongs_to(&self, whole: &Self) -> bool {
        let rest = self.0.strip_prefix(&*whole.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// FNV-1a (64 bits), the same in every version of this program: it is part of what is stored.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

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
    fn a_part_of_a_release_has_a_name_of_its_own_that_no_settings_give() {
        let whole = ReleaseId::new("volumes").expect("a name");
        let part = whole.part("vol-0abc");
        assert_eq!(part.as_str(), "volumes/vol-0abc");
        assert!(part.is_part() && part.belongs_to(&whole) && whole.belongs_to(&whole) && !whole.is_part());
        assert!(!ReleaseId::new("volumes2").expect("a name").belongs_to(&whole));
        assert_eq!(part.whole(), whole);
        assert!(ReleaseId::new(part.as_str()).is_err(), "settings name no part");
        assert_eq!(ReleaseId::named(part.as_str()).expect("a person does"), part);
        assert!(ReleaseId::named("a/b/c").is_err() && ReleaseId::named("a/").is_err());
        let stored = serde_json::to_string(&part).expect("it is written");
        assert_eq!(serde_json::from_str::<ReleaseId>(&stored).expect("it is read"), part);
    }

    #[test]
    fn whatever_a_volume_is_called_its_part_has_a_name_and_no_two_have_the_same() {
        let whole = ReleaseId::new("volumes").expect("a name");
        let long = "d".repeat(400);
        let all = ["zones/a/disks/b", "zones/a/disks:b", "", "-x", "\u{e4}", &long];
        let parts: std::collections::BTreeSet<_> = all.iter().map(|volume| whole.part(volume)).collect();
        assert_eq!(parts.len(), all.len());
        for part in parts {
            assert!(ReleaseId::named(part.as_str()).is_ok(), "{part}");
        }
    }

    #[test]
    fn a_name_from_the_wire_is_checked_too() {
        assert!(serde_json::from_str::<NodeId>("\"a b\"").is_err());
    }
}
