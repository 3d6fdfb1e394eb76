//! What the judge must know of a device.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::DeviceId;

/// How soon a provider's interface that did not answer is asked again, at most: where it answers, it is polled at its own interval.
const SILENT_CLOUDS_PACE: Duration = Duration::from_secs(1);

/// How it is said of a device whose identity nothing but itself has said (S13).
pub const LEARNED_FROM_ITSELF: &str = "its identity was learned from the device itself";

/// What On and Off of a device speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// A BMC, a cloud instance: On and Off speak of the node.
    Host,
    /// A PDU outlet: Off of all of them proves, On says nothing of the node.
    Supply,
    /// The hypervisor on which the node runs, itself a node.
    Parent,
}

impl DeviceClass {
    /// Whether there is a session with it that can be lost. A parent's life is the proof of another node.
    pub fn has_sessions(self) -> bool {
        self != DeviceClass::Parent
    }
}

/// How good evidence is, best first. `Ord`: a better grade is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// A person vouches (S12). Never reached by lowering.
    Attested,
    /// Trusted, not verified.
    Claimed,
    /// A host device was seen off whose identity was learned from that device itself: it may be another machine's, which a cloud that is
    /// asked by the settings' instance id cannot be (S13).
    Learned,
    /// A cloud or a parent says so.
    Hypervisor,
    /// A host device, or a verified supply, was seen off.
    Observed,
}

impl Grade {
    /// One step lower; lowering stops at [`Grade::Claimed`]. [`Grade::Learned`] is never reached so: it names one reason.
    #[must_use]
    pub fn lowered(self) -> Self {
        match self {
            Grade::Observed => Grade::Hypervisor,
            Grade::Hypervisor | Grade::Learned | Grade::Claimed => Grade::Claimed,
            Grade::Attested => Grade::Attested,
        }
    }
}

/// How long a command may still take effect after its sender stopped (S8). *The far side* keeps that bound.
/// `None`: nothing bounds it; while such an effect is open no power-on is sent.
///
/// Where a session bounds it, an off lives for one idle limit of that session, and an on for two. A process that stood still
/// after its permit may send just before the session is over, which renews the session; a copy that the network kept may then
/// land until the session ends again. An on that lands so late would start a node whose volumes were let go, and the undoing of
/// a hold would take away what a later fence has proven by; an off costs a node that runs again, and no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaxInFlight {
    /// Of an off, and of a hold.
    pub off: Option<Duration>,
    /// Of an on, and of the undoing of a hold.
    pub on: Option<Duration>,
}

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

    /// A serial number, without blanks around it; `None` for what boards say that were never given one.
    pub fn usable_serial(text: &str) -> Option<String> {
        let text = text.trim();
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

/// One device of a topology, as frozen into the record of a fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpec {
    /// Its name within the node.
    pub id: DeviceId,
    /// What its On and Off speak of.
    pub class: DeviceClass,
    /// The best grade that its Off can have.
    pub grade: Grade,
    /// Whether it tells one of its lives from the next. Without: always the long window, and an epoch that it tells all the same shows
    /// a loss and nothing else.
    pub has_epochs: bool,
    /// The longest power cycle that somebody else may have under way: the long window of S2.
    pub longest_cycle: Duration,
    /// The longest one call to it may take.
    pub call: Duration,
    /// Least time between two readings that count.
    pub dwell: Duration,
    /// How many readings in a row must say Off.
    pub readings: u32,
    /// S8.
    pub max_in_flight: MaxInFlight,
    /// After its session was lost within a fence its Off may count again by a long dwell alone, graded claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_after_restart: Option<Duration>,
    /// A supply's wiring was verified by a drill or by its load.
    #[serde(default)]
    pub verified: bool,
    /// What it must say it is (S13); empty: unknown, which lowers the grade.
    #[serde(default)]
    pub identity: Identity,
}

impl DeviceSpec {
    /// Whether it is a provider's interface, and not a machine's own: it is slower, and asked less often.
    pub fn is_cloud(&self) -> bool {
        self.class == DeviceClass::Host && self.grade == Grade::Hypervisor
    }

    /// How soon it is asked again while it does not say what is waited for: a provider's interface that `answers` at its own interval,
    /// one that does not within a second, and what is a machine's own within `pace`.
    pub fn asked_again(&self, answers: bool, pace: Duration) -> Duration {
        match (self.is_cloud(), answers) {
            (false, _) => self.dwell.min(pace),
            (true, true) => self.dwell,
            (true, false) => self.dwell.min(SILENT_CLOUDS_PACE),
        }
    }

    /// Whether nothing but its silence, or a session that it refuses, shows that it restarted (S2). A supply's restart is judged by its
    /// outlets, and a parent's life is the proof of another node.
    pub fn hides_its_restarts(&self) -> bool {
        self.class == DeviceClass::Host && !self.has_epochs
    }

    /// The best grade that its Off can have where comparing identities says this, and what lowers it.
    pub fn best_grade(&self, identity: IdentityMatch) -> (Grade, Vec<String>) {
        let mut grade = self.grade;
        let mut why = Vec::new();
        let id = &self.id;
        match (self.class, identity) {
            (DeviceClass::Supply, _) if !self.verified => {
                grade = grade.lowered();
                why.push(format!("{id}: its wiring was not verified"));
            }
            (DeviceClass::Supply, _) | (_, IdentityMatch::Match) => {}
            (_, IdentityMatch::Learned) => {
                grade = grade.min(Grade::Learned);
                why.push(format!("{id}: {LEARNED_FROM_ITSELF}"));
            }
            // Less than a learned one: that at least would show a later exchange.
            (_, IdentityMatch::Unknown | IdentityMatch::Mismatch) => {
                grade = grade.min(Grade::Claimed);
                why.push(format!("{id}: its identity is not known"));
            }
        }
        if !self.has_epochs {
            grade = grade.lowered();
            why.push(format!("{id}: it does not tell its restarts"));
        }
        (grade, why)
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
    fn a_cloud_is_asked_at_its_own_interval() {
        let ms = Duration::from_millis;
        let rules = crate::rules::Rules::default();
        let device = |grade, dwell| DeviceSpec {
            id: DeviceId::new("x").expect("a good name"),
            class: DeviceClass::Host,
            grade,
            has_epochs: true,
            longest_cycle: rules.longest_cycle,
            call: rules.device_call,
            dwell,
            readings: rules.readings,
            max_in_flight: MaxInFlight { off: None, on: None },
            trust_after_restart: None,
            verified: false,
            identity: Identity::default(),
        };
        let (cloud, bmc) = (device(Grade::Hypervisor, ms(2_000)), device(Grade::Observed, ms(2_000)));
        let asked = [true, false]
            .map(|answers| (cloud.asked_again(answers, ms(500)), bmc.asked_again(answers, ms(500))));
        assert_eq!(asked, [(ms(2_000), ms(500)), (ms(1_000), ms(500))]);
    }

    #[test]
    fn lowering_stops_at_claimed() {
        assert_eq!(Grade::Observed.lowered().lowered().lowered(), Grade::Claimed);
        assert!(Grade::Attested < Grade::Claimed && Grade::Claimed < Grade::Observed);
        assert_eq!(Grade::Learned.lowered(), Grade::Claimed);
        assert_eq!(Grade::Attested.lowered(), Grade::Attested);
    }

    #[test]
    fn a_learned_identity_is_graded_between_a_cloud_s_word_and_an_unknown_machine() {
        let order = [Grade::Attested, Grade::Claimed, Grade::Learned, Grade::Hypervisor, Grade::Observed];
        assert!(order.is_sorted() && order[1..].windows(2).all(|two| two[0] < two[1]));
        let host = crate::support::host("bmc");
        let without_epochs = DeviceSpec { has_epochs: false, ..host.clone() };
        let cloud = DeviceSpec { grade: Grade::Hypervisor, ..host.clone() };
        let trusted = DeviceSpec { grade: Grade::Claimed, ..host.clone() };
        let graded = |spec: &DeviceSpec, said| spec.best_grade(said).0;
        for (said, of_host, of_others) in [
            (IdentityMatch::Match, Grade::Observed, [Grade::Hypervisor, Grade::Hypervisor, Grade::Claimed]),
            (IdentityMatch::Learned, Grade::Learned, [Grade::Claimed, Grade::Learned, Grade::Claimed]),
            (IdentityMatch::Unknown, Grade::Claimed, [Grade::Claimed; 3]),
        ] {
            assert_eq!(graded(&host, said), of_host, "{said:?}");
            let others = [&without_epochs, &cloud, &trusted].map(|spec| graded(spec, said));
            assert_eq!(others, of_others, "{said:?}");
        }
        let (_, why) = host.best_grade(IdentityMatch::Learned);
        assert_eq!(why, ["bmc: its identity was learned from the device itself"]);
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
