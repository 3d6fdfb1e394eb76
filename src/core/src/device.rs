//! What the judge must know of a device.

mod identity;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::identity::{Expected, Identity, IdentityMatch};
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
}
