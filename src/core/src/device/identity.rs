//! Whose machine a device controls, as it says itself (S13).

use serde::{Deserialize, Serialize};

/// What a device says it controls. Empty: it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// UUID as 32 lowercase hex digits in the order of the device's bytes; compared in both byte orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Serial number, instance id or any other unique name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
}

/// The UUID in AMI's firmware before a board gets its own, in the order of SMBIOS.
const AMI: &str = "03000200040005000006000700080009";

/// A serial number of more bytes is none.
const LONGEST_SERIAL: usize = 256;

/// What stands for a serial number where a board was never given one.
const PLACEHOLDERS: [&str; 12] = [
    "to be filled by o.e.m.",
    "to be filled by oem",
    "default string",
    "system serial number",
    "serial number",
    "not specified",
    "not available",
    "not applicable",
    "none",
    "n/a",
    "unknown",
    "0123456789",
];

/// What comparing two identities says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityMatch {
    /// At least one field is known on both sides, and all such are equal.
    Match,
    /// The same, but what was expected was learned from the device itself, and nothing else has said it since (S13).
    Learned,
    /// No field is known on both sides.
    Unknown,
    /// A field is known on both sides and differs.
    Mismatch,
}

impl IdentityMatch {
    /// Whether the device says what was expected, wherever that comes from.
    pub fn is_as_expected(self) -> bool {
        matches!(self, IdentityMatch::Match | IdentityMatch::Learned)
    }

    /// Never better than [`IdentityMatch::Learned`].
    #[must_use]
    pub fn learned(self) -> Self {
        if self == IdentityMatch::Match { IdentityMatch::Learned } else { self }
    }
}

/// What a device must say of itself, and where that comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// What it must say. Empty: nobody knows.
    pub identity: Identity,
    /// It was learned from the device itself, and nothing else has said it since.
    pub is_learned: bool,
}

impl Expected {
    /// What comparing says; never [`IdentityMatch::Match`] where only the device itself said before what it says now.
    pub fn compare(&self, said: &Identity) -> IdentityMatch {
        let compared = self.identity.compare(said);
        if self.is_learned { compared.learned() } else { compared }
    }

    /// Whether nobody knows what it must say.
    pub fn is_empty(&self) -> bool {
        self.identity.is_empty()
    }
}

impl Identity {
    /// A UUID in any usual spelling, as [`Identity::uuid`] wants it; `None` for one that says nothing
    /// (all zeros, all ones, or what AMI's firmware has before a board gets its own) or that is no UUID.
    pub fn usable_uuid(text: &str) -> Option<String> {
        let hex: String = text
            .chars()
            .filter(|c| !matches!(c, '-' | '{' | '}' | ':' | ' '))
            .collect::<String>()
            .to_ascii_lowercase();
        let is_uuid = hex.len() == 32 && hex.chars().all(|c| c.is_ascii_hexdigit());
        let says_nothing = hex.chars().all(|c| c == '0') || hex.chars().all(|c| c == 'f');
        let is_placeholder = [AMI.to_owned(), Self::swapped(AMI), Self::reversed(AMI)].contains(&hex);
        (is_uuid && !says_nothing && !is_placeholder).then_some(hex)
    }

    /// A serial number, without blanks around it; `None` for what boards say that were never given one, and for what is longer than any
    /// (SMBIOS strings end after 64 characters on most firmware, and a node's record has it several times).
    pub fn usable_serial(text: &str) -> Option<String> {
        let text = text.trim();
        if text.len() > LONGEST_SERIAL {
            return None;
        }
        let is_placeholder = PLACEHOLDERS.iter().any(|none| text.eq_ignore_ascii_case(none));
        (!text.is_empty() && !is_placeholder && text.chars().any(|c| c != '0')).then(|| text.to_owned())
    }

    /// The UUID with its first three fields in the other byte order (SMBIOS 7.2.1 stores them little-endian).
    fn swapped(uuid: &str) -> String {
        let order = [6, 4, 2, 0, 10, 8, 14, 12, 16, 18, 20, 22, 24, 26, 28, 30];
        order.iter().filter_map(|&i| uuid.get(i..i + 2)).collect()
    }

    /// The 16 bytes wholly reversed (a GUID as IPMI 2.0 table 20-10 sends it: least significant byte first).
    fn reversed(uuid: &str) -> String {
        (0..16).rev().filter_map(|i| uuid.get(2 * i..2 * i + 2)).collect()
    }

    /// Compares what is `expected` with what a device says; UUIDs in each byte order.
    pub fn compare(&self, said: &Identity) -> IdentityMatch {
        let uuid = self.uuid.as_ref().zip(said.uuid.as_ref()).map(|(want, got)| {
            want == got
                || *want == Self::swapped(got)
                || *want == Self::reversed(got)
                || Self::swapped(want) == Self::reversed(got)
        });
        let serial = self.serial.as_ref().zip(said.serial.as_ref()).map(|(want, got)| want == got);
        match (uuid, serial) {
            (Some(false), _) | (_, Some(false)) => IdentityMatch::Mismatch,
            (None, None) => IdentityMatch::Unknown,
            _ => IdentityMatch::Match,
        }
    }

    /// In words, for people.
    pub fn words(&self) -> String {
        let uuid = self.uuid.as_ref().map(|uuid| format!("uuid {uuid}"));
        let serial = self.serial.as_ref().map(|serial| format!("serial {serial}"));
        let known: Vec<String> = uuid.into_iter().chain(serial).collect();
        if known.is_empty() { "nothing that is known".to_owned() } else { known.join(", ") }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.uuid.is_none() && self.serial.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(uuid: &str) -> Identity {
        Identity { uuid: Identity::usable_uuid(uuid), serial: None }
    }

    #[test]
    fn a_uuid_matches_in_each_byte_order_and_no_other() {
        let want = id("00112233-4455-6677-8899-aabbccddeeff");
        for same in [
            "00112233-4455-6677-8899-AABBCCDDEEFF",
            "33221100-5544-7766-8899-aabbccddeeff",
            "ffeeddcc-bbaa-9988-7766-554433221100",
        ] {
            assert_eq!(want.compare(&id(same)), IdentityMatch::Match, "{same}");
        }
        assert_eq!(want.compare(&id("10112233-4455-6677-8899-aabbccddeeff")), IdentityMatch::Mismatch);
    }

    #[test]
    fn what_a_board_says_that_was_given_none_is_unknown() {
        for empty in [
            "00000000-0000-0000-0000-000000000000",
            "ffffffffffffffffffffffffffffffff",
            "to be filled",
            "03000200-0400-0500-0006-000700080009",
            "00020003-0004-0005-0006-000700080009",
        ] {
            assert_eq!(Identity::usable_uuid(empty), None, "{empty}");
        }
        for empty in [" ", "000000", "Default string", "To be filled by O.E.M.", "N/A"] {
            assert_eq!(Identity::usable_serial(empty), None, "{empty}");
        }
        assert_eq!(Identity::usable_serial(" 5XJ0K2 ").as_deref(), Some("5XJ0K2"));
        assert!(Identity::usable_serial(&"S".repeat(256)).is_some());
        assert_eq!(Identity::usable_serial(&"S".repeat(257)), None);
        assert_eq!(id("0").compare(&id("00112233445566778899aabbccddeeff")), IdentityMatch::Unknown);
    }

    #[test]
    fn an_equal_field_outweighs_none_that_differs() {
        let says = |uuid: &str, serial: &str| Identity {
            uuid: Identity::usable_uuid(uuid),
            serial: Some(serial.to_owned()).filter(|serial| !serial.is_empty()),
        };
        let (ours, other) = ("00112233445566778899aabbccddeeff", "10112233445566778899aabbccddeeff");
        let want = says(ours, "A1");
        for (uuid, serial, comes_of_it) in [
            (ours, "A1", IdentityMatch::Match),
            (ours, "B2", IdentityMatch::Mismatch),
            (other, "A1", IdentityMatch::Mismatch),
            (other, "B2", IdentityMatch::Mismatch),
            (ours, "", IdentityMatch::Match),
            (other, "", IdentityMatch::Mismatch),
            ("", "A1", IdentityMatch::Match),
            ("", "B2", IdentityMatch::Mismatch),
            ("", "", IdentityMatch::Unknown),
        ] {
            let said = says(uuid, serial);
            assert_eq!(want.compare(&said), comes_of_it, "{}", said.words());
            assert_eq!(said.compare(&want), comes_of_it, "{} the other way round", said.words());
        }
    }

    #[test]
    fn what_only_the_device_itself_said_before_is_never_a_match() {
        let said = id("00112233-4455-6677-8899-aabbccddeeff");
        let other = id("10112233-4455-6677-8899-aabbccddeeff");
        let expected = |is_learned| Expected { identity: said.clone(), is_learned };
        assert_eq!(expected(false).compare(&said), IdentityMatch::Match);
        assert_eq!(expected(true).compare(&said), IdentityMatch::Learned);
        for is_learned in [false, true] {
            assert_eq!(expected(is_learned).compare(&other), IdentityMatch::Mismatch);
            assert_eq!(expected(is_learned).compare(&Identity::default()), IdentityMatch::Unknown);
        }
    }
}
