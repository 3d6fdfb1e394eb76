//! Devices as they are now.

use picket_core::device::{DeviceClass, DeviceSpec, Identity};
use picket_core::time::{BootTime, WallTime};
use picket_engine::{DeviceLive, NodeView, Problem, Readiness, Trouble};
use picket_proto::v1;

use super::time::{between, duration, timestamp};
use super::words;

/// What time it is, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrentTime {
    /// On the wall clock.
    pub(crate) wall: WallTime,
    /// On the boot-time clock.
    pub(crate) boot: BootTime,
}

/// Every device of a node, level by level.
pub(crate) fn devices(view: &NodeView, now: CurrentTime) -> Vec<v1::Device> {
    let unseen = DeviceLive::default();
    let topology = view.plan.levels_now(&view.stored.record);
    let levels = topology.levels().iter().enumerate();
    levels
        .flat_map(|(index, level)| level.devices.iter().map(move |spec| (index + 1, spec)))
        .map(|(level, spec)| {
            let live = view.live.devices.get(&spec.id).map_or(&unseen, |live| &**live);
            device(view, spec, live, u32::try_from(level).unwrap_or(u32::MAX), now)
        })
        .collect()
}

fn device(view: &NodeView, spec: &DeviceSpec, live: &DeviceLive, level: u32, now: CurrentTime) -> v1::Device {
    // An orphan has no drivers: where its devices were is what its fence remembers.
    let endpoint = view.plan.drivers.get(&spec.id).map(|driver| driver.traits().endpoint.clone());
    let endpoint = endpoint.or_else(|| view.plan.topology.addresses().get(&spec.id).cloned());
    let endpoint = endpoint.unwrap_or_default();
    let (driver, address) = endpoint.split_once(' ').unwrap_or((&endpoint, ""));
    let expected = view.stored.record.expected(spec).identity;
    let checked = live.checked.as_ref().map(|checked| checked.at);
    let read = live.power.map(|(_, at)| at).into_iter().chain(live.fault.as_ref().map(|(_, at)| *at));
    v1::Device {
        id: spec.id.to_string(),
        device_class: words::class(spec.class).into(),
        driver: driver.to_owned(),
        address: address.to_owned(),
        level,
        grade: words::grade(spec.grade).into(),
        has_epochs: spec.has_epochs,
        wiring_verified: spec.class == DeviceClass::Supply && spec.verified,
        expected_identity: (!expected.is_empty()).then(|| identity(&expected)),
        said_identity: live.identity.as_ref().map(identity),
        identity_match: live
            .identity_match
            .map_or(v1::IdentityMatch::Unspecified, words::identity_match)
            .into(),
        readiness: readiness(picket_engine::readiness(spec, live, &view.stored.record.phase)).into(),
        problems: picket_engine::problems(spec, live).into_iter().map(problem).collect(),
        checked_at: read.chain(checked).max().map(timestamp),
        reading: reading(spec.id.as_str(), live, now),
    }
}

/// An identity.
pub(crate) fn identity(identity: &Identity) -> v1::Identity {
    v1::Identity {
        uuid: identity.uuid.clone().unwrap_or_default(),
        serial: identity.serial.clone().unwrap_or_default(),
    }
}

/// What a device showed last; `None`: nothing yet.
pub(crate) fn reading(device: &str, live: &DeviceLive, now: CurrentTime) -> Option<v1::DeviceReading> {
    let (power, asked_at) = live.power?;
    let taken = live.reading.as_ref();
    let ago = |at: BootTime| u64::try_from(now.boot.since(at).as_millis()).unwrap_or(u64::MAX);
    let said = match (taken, &live.fault) {
        (Some(reading), _) => reading.said.clone(),
        (None, Some((fault, _))) => fault.clone(),
        (None, None) => String::new(),
    };
    Some(v1::DeviceReading {
        device: device.to_owned(),
        power: words::power(power).into(),
        asked_at: Some(timestamp(asked_at)),
        answered_at: taken.map(|reading| {
            timestamp(WallTime::from_millis(now.wall.millis().saturating_sub(ago(reading.answered_at))))
        }),
        age: Some(duration(match taken {
            Some(reading) => now.boot.since(reading.answered_at),
            None => between(asked_at, now.wall),
        })),
        epoch: taken.and_then(|reading| reading.epoch).map(|epoch| epoch.id),
        said,
    })
}

/// What bars its use comes first, then what lowers the grade or slows it.
fn problem(problem: Problem) -> v1::DeviceProblem {
    use v1::DeviceProblemKind as Kind;
    let kind = match problem.trouble {
        Trouble::Failed(kind) => kind.map_or(Kind::Unspecified, words::problem),
        Trouble::OtherMachine => Kind::IdentityMismatch,
        Trouble::Obstacle => Kind::Obstacle,
        Trouble::UnknownMachine => Kind::IdentityUnknown,
        Trouble::LearnedMachine => Kind::IdentityLearned,
        Trouble::Unwired => Kind::WiringUnverified,
        Trouble::NoHold => Kind::NoHold,
        Trouble::Remark => Kind::Remark,
    };
    v1::DeviceProblem { kind: kind.into(), text: problem.text }
}

fn readiness(is: Readiness) -> v1::Readiness {
    match is {
        Readiness::Unchecked => v1::Readiness::Unspecified,
        Readiness::Ready => v1::Readiness::Ready,
        Readiness::Degraded => v1::Readiness::Degraded,
        Readiness::NotReady => v1::Readiness::NotReady,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use picket_core::power::{Power, Reading};

    use super::*;

    fn now() -> CurrentTime {
        CurrentTime {
            wall: WallTime::from_millis(100_000),
            boot: BootTime::from_boot(Duration::from_secs(50)),
        }
    }

    #[test]
    fn a_reading_has_its_age_by_the_boot_time_clock() {
        let reading_taken = Reading {
            power: Power::Off,
            asked_at: BootTime::from_boot(Duration::from_secs(46)),
            answered_at: BootTime::from_boot(Duration::from_secs(47)),
            epoch: None,
            said: "off".to_owned(),
            lowered_by: None,
        };
        let live = DeviceLive {
            power: Some((Power::Off, WallTime::from_millis(96_000))),
            reading: Some(reading_taken),
            ..DeviceLive::default()
        };
        let told = reading("bmc", &live, now()).expect("a reading");
        assert_eq!(told.power(), v1::Power::Off);
        assert_eq!(told.age, Some(duration(Duration::from_secs(3))));
        assert_eq!(told.answered_at, Some(timestamp(WallTime::from_millis(97_000))));
        assert_eq!((told.said.as_str(), told.epoch), ("off", None));
    }

    #[test]
    fn silence_is_unknown_and_says_why() {
        let live = DeviceLive {
            power: Some((Power::Unknown, WallTime::from_millis(99_000))),
            fault: Some(("timed out: no answer".to_owned(), WallTime::from_millis(99_500))),
            ..DeviceLive::default()
        };
        let told = reading("bmc", &live, now()).expect("a reading");
        assert_eq!((told.power(), told.said.as_str()), (v1::Power::Unknown, "timed out: no answer"));
        assert_eq!(told.answered_at, None);
        assert_eq!(reading("bmc", &DeviceLive::default(), now()), None);
    }
}
