//! Words that core and the wire share.

use picket_core::device::{DeviceClass, Grade, IdentityMatch};
use picket_core::ledger::EffectKind;
use picket_core::outcome::Reason;
use picket_core::power::Power;
use picket_core::record::{Bringing, Cause, Phase, ReleaseStage};
use picket_engine::ErrorKind;
use picket_proto::v1;

/// A phase.
pub(crate) fn phase(phase: &Phase) -> v1::Phase {
    match phase {
        Phase::Normal => v1::Phase::Normal,
        Phase::Fencing => v1::Phase::Fencing,
        Phase::Fenced => v1::Phase::Fenced,
        Phase::Released => v1::Phase::Released,
        Phase::Unfencing => v1::Phase::Unfencing,
        Phase::PowerOnFailed => v1::Phase::PowerOnFailed,
        Phase::NeedsOperator(_) => v1::Phase::NeedsOperator,
        Phase::Retired => v1::Phase::Retired,
    }
}

/// A phase by its stored label; unspecified for one that another version wrote.
pub(crate) fn phase_of(label: &str) -> v1::Phase {
    v1::Phase::from_str_name(&format!("PHASE_{}", label.to_ascii_uppercase()))
        .unwrap_or(v1::Phase::Unspecified)
}

/// The word of a phase in an error's metadata (`NEEDS_OPERATOR`), by its stored label.
pub(crate) fn phase_word(label: &str) -> String {
    label.to_ascii_uppercase()
}

/// What a reading says.
pub(crate) fn power(power: Power) -> v1::Power {
    match power {
        Power::On => v1::Power::On,
        Power::Off => v1::Power::Off,
        Power::Unknown => v1::Power::Unknown,
    }
}

/// A class of devices.
pub(crate) fn class(class: DeviceClass) -> v1::DeviceClass {
    match class {
        DeviceClass::Host => v1::DeviceClass::Host,
        DeviceClass::Supply => v1::DeviceClass::Supply,
        DeviceClass::Parent => v1::DeviceClass::Parent,
    }
}

/// A grade of evidence.
pub(crate) fn grade(grade: Grade) -> v1::Grade {
    match grade {
        Grade::Attested => v1::Grade::Attested,
        Grade::Claimed => v1::Grade::Claimed,
        Grade::Learned => v1::Grade::Learned,
        Grade::Hypervisor => v1::Grade::Hypervisor,
        Grade::Observed => v1::Grade::Observed,
    }
}

/// The grade that a caller asks for; `None`: what the settings say.
pub(crate) fn grade_of(grade: v1::Grade) -> Option<Grade> {
    match grade {
        v1::Grade::Unspecified => None,
        v1::Grade::Attested => Some(Grade::Attested),
        v1::Grade::Claimed => Some(Grade::Claimed),
        v1::Grade::Learned => Some(Grade::Learned),
        v1::Grade::Hypervisor => Some(Grade::Hypervisor),
        v1::Grade::Observed => Some(Grade::Observed),
    }
}

/// A grade for people.
pub(crate) fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Attested => "attested",
        Grade::Claimed => "claimed",
        Grade::Learned => "learned",
        Grade::Hypervisor => "hypervisor",
        Grade::Observed => "observed",
    }
}

/// What comparing identities says.
pub(crate) fn identity_match(compared: IdentityMatch) -> v1::IdentityMatch {
    match compared {
        IdentityMatch::Match => v1::IdentityMatch::Match,
        IdentityMatch::Learned => v1::IdentityMatch::Learned,
        IdentityMatch::Unknown => v1::IdentityMatch::Unknown,
        IdentityMatch::Mismatch => v1::IdentityMatch::Mismatch,
    }
}

/// Why something is blocked, or wants a person.
pub(crate) fn reason(reason: Reason) -> v1::Reason {
    match reason {
        Reason::LevelsSpent => v1::Reason::LevelsSpent,
        Reason::Deadline => v1::Reason::Deadline,
        Reason::ReleaseDeadline => v1::Reason::ReleaseDeadline,
        Reason::Contradiction => v1::Reason::Contradiction,
        Reason::BmcRestarted => v1::Reason::BmcRestarted,
        Reason::IdentityMismatch => v1::Reason::IdentityMismatch,
        Reason::UnboundedEffect => v1::Reason::UnboundedEffect,
        Reason::GradeTooLow => v1::Reason::GradeTooLow,
        Reason::OwnHost => v1::Reason::Self_,
        Reason::Quorum => v1::Reason::Quorum,
        Reason::Budget => v1::Reason::Budget,
        Reason::Paused => v1::Reason::Paused,
        Reason::StandDownUnseen => v1::Reason::StandDownUnseen,
        Reason::Orphaned => v1::Reason::Orphaned,
        Reason::CoolDown => v1::Reason::CoolDown,
        Reason::Brake => v1::Reason::Brake,
        Reason::Expired => v1::Reason::Expired,
        Reason::Withdrawn => v1::Reason::Withdrawn,
        Reason::Replaced => v1::Reason::Replaced,
        Reason::BeingDeleted => v1::Reason::BeingDeleted,
        Reason::Restored => v1::Reason::Restored,
    }
}

/// How far a release is.
pub(crate) fn stage(stage: ReleaseStage) -> v1::ReleaseStage {
    match stage {
        ReleaseStage::Pending => v1::ReleaseStage::Pending,
        ReleaseStage::Requested => v1::ReleaseStage::Requested,
        ReleaseStage::Accepted => v1::ReleaseStage::Accepted,
        ReleaseStage::Complete => v1::ReleaseStage::Complete,
        ReleaseStage::Abandoned => v1::ReleaseStage::Abandoned,
    }
}

/// What an unfence does.
pub(crate) fn bringing(bringing: Bringing) -> v1::Bringing {
    match bringing {
        Bringing::PowerOn => v1::Bringing::PowerOn,
        Bringing::Abort => v1::Bringing::Abort,
        Bringing::StandDown => v1::Bringing::StandDown,
    }
}

/// Why a fence was opened.
pub(crate) fn cause(cause: Cause) -> v1::FenceCause {
    match cause {
        Cause::Asked => v1::FenceCause::Asked,
        Cause::Breach => v1::FenceCause::Breach,
        Cause::Drill => v1::FenceCause::Drill,
        Cause::Restored => v1::FenceCause::Restored,
    }
}

/// What an effect does, and to what.
pub(crate) fn effect(kind: &EffectKind) -> (v1::EffectKind, String) {
    match kind {
        EffectKind::Off(device) => (v1::EffectKind::Off, device.to_string()),
        EffectKind::On(device) => (v1::EffectKind::On, device.to_string()),
        EffectKind::Hold(device) => (v1::EffectKind::Hold, device.to_string()),
        EffectKind::Unhold(device) => (v1::EffectKind::Unhold, device.to_string()),
        EffectKind::Release(release) => (v1::EffectKind::Release, release.to_string()),
        EffectKind::Standing(release) => (v1::EffectKind::Standing, release.to_string()),
        EffectKind::Receipt(id) => (v1::EffectKind::Receipt, id.clone()),
    }
}

/// What is wrong with a device, by the error of its last call.
pub(crate) fn problem(kind: ErrorKind) -> v1::DeviceProblemKind {
    match kind {
        ErrorKind::Unreachable => v1::DeviceProblemKind::Unreachable,
        ErrorKind::TimedOut => v1::DeviceProblemKind::TimedOut,
        ErrorKind::Authentication => v1::DeviceProblemKind::Authentication,
        ErrorKind::Forbidden => v1::DeviceProblemKind::Forbidden,
        ErrorKind::Throttled | ErrorKind::NoTurn => v1::DeviceProblemKind::Throttled,
        ErrorKind::Unsupported => v1::DeviceProblemKind::Unsupported,
        ErrorKind::Protocol => v1::DeviceProblemKind::Protocol,
        ErrorKind::Refused => v1::DeviceProblemKind::Refused,
        ErrorKind::IdentityMismatch => v1::DeviceProblemKind::IdentityMismatch,
        ErrorKind::Settings => v1::DeviceProblemKind::Settings,
        // The gateway's own state, and no fault of the device.
        ErrorKind::NotLeader => v1::DeviceProblemKind::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_label_and_its_phase_are_one() {
        for known in [
            Phase::Normal,
            Phase::Fencing,
            Phase::Fenced,
            Phase::Released,
            Phase::Unfencing,
            Phase::PowerOnFailed,
            Phase::NeedsOperator(Reason::Deadline),
            Phase::Retired,
        ] {
            assert_eq!(phase_of(known.label()), phase(&known), "{known:?}");
        }
        assert_eq!(phase_of("invented"), v1::Phase::Unspecified);
    }

    #[test]
    fn a_grade_comes_back_as_it_went() {
        for known in [Grade::Attested, Grade::Claimed, Grade::Learned, Grade::Hypervisor, Grade::Observed] {
            assert_eq!(grade_of(grade(known)), Some(known));
        }
        assert_eq!(grade_of(v1::Grade::Unspecified), None);
    }

    #[test]
    fn a_client_that_compares_numbers_takes_no_grade_for_better_than_it_is() {
        let number = |known: Grade| i32::from(grade(known));
        let order = [Grade::Attested, Grade::Claimed, Grade::Hypervisor, Grade::Observed];
        assert!(order.windows(2).all(|two| number(two[0]) < number(two[1])));
        assert!(
            number(Grade::Learned) < number(Grade::Attested),
            "who does not know it takes it for the least"
        );
    }

    #[test]
    fn a_reason_has_the_same_word_on_both_sides() {
        for known in [
            Reason::LevelsSpent,
            Reason::Deadline,
            Reason::ReleaseDeadline,
            Reason::Contradiction,
            Reason::BmcRestarted,
            Reason::IdentityMismatch,
            Reason::UnboundedEffect,
            Reason::GradeTooLow,
            Reason::OwnHost,
            Reason::Quorum,
            Reason::Budget,
            Reason::Paused,
            Reason::StandDownUnseen,
            Reason::Orphaned,
            Reason::CoolDown,
            Reason::Brake,
            Reason::Expired,
            Reason::Withdrawn,
            Reason::Replaced,
            Reason::BeingDeleted,
        ] {
            let word = format!("REASON_{}", known.label().to_ascii_uppercase());
            assert_eq!(reason(known).as_str_name(), word);
        }
    }
}
