//! Whether a device could be used for a fence now, by what its last check, or the readings since, came to.

use picket_core::device::{DeviceClass, DeviceSpec, IdentityMatch};
use picket_core::record::Phase;
use picket_driver::ErrorKind;

use crate::view::DeviceLive;

/// Whether a device could be used for a fence now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Readiness {
    /// It cannot.
    NotReady,
    /// Not asked yet.
    #[default]
    Unchecked,
    /// It can; something lowers the grade.
    Degraded,
    /// It answers, lets us in, may switch, and is the right machine.
    Ready,
}

impl Readiness {
    /// A stable word for logs, metrics and the audit.
    pub fn label(self) -> &'static str {
        match self {
            Readiness::NotReady => "not_ready",
            Readiness::Unchecked => "unchecked",
            Readiness::Degraded => "degraded",
            Readiness::Ready => "ready",
        }
    }
}

/// What kind of thing is wrong with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A call to it failed so; `None`: in a way that has no kind.
    Failed(Option<ErrorKind>),
    /// It says that it controls another machine.
    OtherMachine,
    /// As it is, a fence would not come to its end by it.
    Obstacle,
    /// What it controls is not known; lowers the grade.
    UnknownMachine,
    /// Nothing but the device itself has said what it controls; lowers the grade.
    LearnedMachine,
    /// A supply whose wiring was never verified; lowers the grade.
    Unwired,
    /// It cannot be told to stay off; the evidence will say so.
    NoHold,
    /// Something to know of it, which neither bars its use nor lowers the grade.
    Remark,
}

impl Trouble {
    /// Whether it bars that the device is used.
    pub fn bars(self) -> bool {
        matches!(self, Trouble::Failed(_) | Trouble::OtherMachine | Trouble::Obstacle)
    }

    /// Whether the device is less for it.
    fn counts(self) -> bool {
        self != Trouble::Remark
    }
}

/// One thing that is wrong with a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of thing.
    pub trouble: Trouble,
    /// What was tried and what came back, for people.
    pub text: String,
}

/// What is wrong with a device: what bars its use first, then what lowers the grade; then what is worth a word.
pub fn problems(spec: &DeviceSpec, live: &DeviceLive) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |trouble, text: &str| problems.push(Problem { trouble, text: text.to_owned() });
    if let Some((fault, _)) = &live.fault {
        add(Trouble::Failed(live.fault_kind), fault);
    }
    for obstacle in live.refused.iter().chain(live.checked.iter().flat_map(|checked| &checked.obstacles)) {
        add(Trouble::Obstacle, obstacle);
    }
    match live.identity_match {
        Some(IdentityMatch::Mismatch) => {
            let said = live.identity.as_ref().map(|identity| identity.words()).unwrap_or_default();
            let expected = match spec.identity.is_empty() {
                true => "an earlier check heard another identity of it".to_owned(),
                false => format!("the settings say {}", spec.identity.words()),
            };
            let said = format!("it says that it controls another machine: {said}; {expected}");
            add(Trouble::OtherMachine, &said);
        }
        Some(IdentityMatch::Unknown) if spec.class == DeviceClass::Host => add(
            Trouble::UnknownMachine,
            "what it controls is not known: give its identity in the settings, or let a check learn it",
        ),
        Some(IdentityMatch::Learned) if spec.class == DeviceClass::Host => add(
            Trouble::LearnedMachine,
            "its identity was learned from the device itself: graded learned; give `identity = …` in its settings, or run a drill with a \
             liveness source",
        ),
        _ => {}
    }
    if spec.class == DeviceClass::Supply && !spec.verified {
        add(Trouble::Unwired, "its wiring was never verified: a drill does that");
    }
    if spec.class == DeviceClass::Host
        && live.checked.as_ref().is_some_and(|checked| checked.holds == Some(false))
    {
        add(Trouble::NoHold, "it cannot be told to stay off");
    }
    for remark in live.checked.iter().flat_map(|checked| &checked.remarks) {
        add(Trouble::Remark, remark);
    }
    problems
}

/// Whether the device of a node in this phase could be used now.
pub fn readiness(spec: &DeviceSpec, live: &DeviceLive, phase: &Phase) -> Readiness {
    // One that told its power alone may be another machine's, and what it says of itself may be learned before its check ends. A
    // node that is kept off was asked by whoever fenced it.
    let at_rest = *phase == Phase::Normal && spec.class == DeviceClass::Host;
    let known = !at_rest || !matches!(live.identity_match, None | Some(IdentityMatch::Unknown));
    let asked = live.checked.is_some() || live.fault.is_some() || live.power.is_some() && known;
    let problems = problems(spec, live);
    let mut troubles = problems.iter().map(|problem| problem.trouble).filter(|trouble| trouble.counts());
    match troubles.next() {
        _ if !asked => Readiness::Unchecked,
        None => Readiness::Ready,
        // What bars comes first.
        Some(trouble) if trouble.bars() => Readiness::NotReady,
        _ => Readiness::Degraded,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use picket_core::device::{Grade, Identity, MaxInFlight};
    use picket_core::ids::DeviceId;
    use picket_core::power::Power;
    use picket_core::time::WallTime;

    use super::*;
    use crate::view::Checked;

    fn spec(class: DeviceClass) -> DeviceSpec {
        let second = Duration::from_secs(1);
        DeviceSpec {
            id: DeviceId::new("bmc").expect("a good name"),
            class,
            grade: Grade::Observed,
            has_epochs: true,
            longest_cycle: second,
            call: second,
            dwell: second,
            readings: 2,
            max_in_flight: MaxInFlight { off: None, on: None },
            trust_after_restart: None,
            verified: false,
            identity: Identity::default(),
        }
    }

    fn answered() -> DeviceLive {
        let power = Some((Power::On, WallTime::from_millis(1)));
        DeviceLive { power, identity_match: Some(IdentityMatch::Match), ..DeviceLive::default() }
    }

    fn checked(holds: bool) -> Checked {
        let at = WallTime::from_millis(1);
        Checked { at, took: Duration::ZERO, holds: Some(holds), remarks: Vec::new(), obstacles: Vec::new() }
    }

    #[test]
    fn readiness_is_what_the_worst_problem_leaves() {
        let host = spec(DeviceClass::Host);
        assert_eq!(readiness(&host, &DeviceLive::default(), &Phase::Normal), Readiness::Unchecked);
        assert_eq!(readiness(&host, &answered(), &Phase::Normal), Readiness::Ready);
        let of_whom = DeviceLive { identity_match: None, ..answered() };
        assert_eq!(
            readiness(&host, &of_whom, &Phase::Normal),
            Readiness::Unchecked,
            "it told its power alone"
        );
        assert_eq!(
            readiness(&host, &of_whom, &Phase::Released),
            Readiness::Ready,
            "it is kept off, by whoever leads now"
        );
        let unknown = DeviceLive { identity_match: Some(IdentityMatch::Unknown), ..answered() };
        assert_eq!(readiness(&host, &unknown, &Phase::Normal), Readiness::Unchecked, "it may yet be learned");
        let over = DeviceLive { checked: Some(checked(true)), ..unknown.clone() };
        assert_eq!(readiness(&host, &over, &Phase::Normal), Readiness::Degraded);
        let other = DeviceLive { identity_match: Some(IdentityMatch::Mismatch), ..answered() };
        assert_eq!(readiness(&host, &other, &Phase::Normal), Readiness::NotReady);
        let fault = Some(("timed out: no answer".to_owned(), WallTime::from_millis(2)));
        let silent = DeviceLive { fault, fault_kind: Some(ErrorKind::TimedOut), ..unknown };
        assert_eq!(readiness(&host, &silent, &Phase::Normal), Readiness::NotReady);
        assert_eq!(problems(&host, &silent)[0].trouble, Trouble::Failed(Some(ErrorKind::TimedOut)));
    }

    #[test]
    fn what_keeps_a_fence_from_its_end_is_not_ready() {
        let host = spec(DeviceClass::Host);
        let refused = DeviceLive { refused: Some("forbidden: privilege".to_owned()), ..answered() };
        let obstacles = vec!["its disableApiStop is set".to_owned()];
        let barred = DeviceLive { checked: Some(Checked { obstacles, ..checked(true) }), ..answered() };
        for live in [refused, barred] {
            assert_eq!(readiness(&host, &live, &Phase::Normal), Readiness::NotReady);
            assert_eq!(problems(&host, &live)[0].trouble, Trouble::Obstacle);
        }
    }

    #[test]
    fn what_lowers_the_grade_or_knows_no_hold_can_be_used() {
        let checked = Checked { remarks: vec!["its secret is seen".to_owned()], ..checked(false) };
        let live = DeviceLive { checked: Some(checked), ..answered() };
        assert_eq!(readiness(&spec(DeviceClass::Host), &live, &Phase::Normal), Readiness::Degraded);
        let supply = spec(DeviceClass::Supply);
        assert_eq!(
            problems(&supply, &live).iter().map(|one| one.trouble).collect::<Vec<_>>(),
            [Trouble::Unwired, Trouble::Remark]
        );
        let wired = DeviceSpec { verified: true, ..supply };
        assert_eq!(problems(&wired, &live)[0].text, "its secret is seen", "it is told, and no less for it");
        assert_eq!(readiness(&wired, &live, &Phase::Normal), Readiness::Ready);
    }
}
