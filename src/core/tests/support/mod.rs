//! What the tests inside and beside this crate share: small specs, a clock set by hand, a store of one node,
//! a [`Player`] that walks a record through the real machine, and a [`Bench`] on which devices answer to the judge.

// Each test binary uses a part of it, and a fixture that cannot be made ends its test.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

mod bench;
mod player;
mod store;

use std::time::Duration;

pub use bench::Bench;
pub use player::Player;
pub use store::{OneNode, Trouble};

use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity, MaxInFlight};
use picket_core::event::{BoundKey, Event, FenceRequest, Holder, JoinRequest, Person, PlannedRelease};
use picket_core::ids::{DeviceId, FenceId, NodeId, ReleaseId};
use picket_core::record::Then;
use picket_core::time::{BootTime, WallTime};
use picket_core::topology::{Level, Topology};

pub fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn boot(millis: u64) -> BootTime {
    BootTime::from_boot(ms(millis))
}

pub fn node() -> NodeId {
    NodeId::new("n1").unwrap()
}

pub fn device(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}

pub fn release(name: &str) -> ReleaseId {
    ReleaseId::named(name).unwrap()
}

pub fn fence_id(number: u8) -> FenceId {
    FenceId::mint(WallTime::from_millis(u64::from(number)), [number; 10])
}

pub fn person() -> Person {
    Person { name: "ops".to_owned(), reason: "looked at it".to_owned() }
}

/// A BMC with sessions: two readings, a second apart; its longest power cycle is 15 s.
pub fn host(name: &str) -> DeviceSpec {
    DeviceSpec {
        id: device(name),
        class: DeviceClass::Host,
        grade: Grade::Observed,
        has_epochs: true,
        longest_cycle: s(15),
        call: s(5),
        dwell: s(1),
        readings: 2,
        max_in_flight: MaxInFlight { off: Some(s(60)), on: Some(s(60)) },
        trust_after_restart: None,
        verified: false,
        identity: Identity { uuid: None, serial: Some(format!("serial of {name}")) },
    }
}

/// A PDU's outlet: no sessions, wiring verified.
pub fn supply(name: &str) -> DeviceSpec {
    DeviceSpec { class: DeviceClass::Supply, has_epochs: false, verified: true, ..host(name) }
}

pub fn topology(levels: &[&[DeviceSpec]]) -> Topology {
    Topology::new(levels.iter().map(|level| Level { devices: level.to_vec() }).collect()).unwrap()
}

pub fn holder(name: &str, then: Then) -> Holder {
    Holder {
        name: name.to_owned(),
        by: format!("{name}@example"),
        reason: "it is dead".to_owned(),
        then,
        by_person: false,
        asker: None,
    }
}

/// A fence of which nothing is special.
pub fn join(holder: Holder, key: Option<BoundKey>) -> Event<'static> {
    Event::Join(Box::new(JoinRequest { holder, key, deadline: None }))
}

pub fn request(number: u8, levels: &[&[DeviceSpec]], releases: &[&str]) -> FenceRequest {
    // An out-of-service taint stands for as long as it is there.
    let planned = |name: &&str| PlannedRelease {
        id: release(name),
        max_in_flight: Some(s(60)),
        lingers: (*name == "oos").then(|| s(30)),
        by_name: false,
    };
    FenceRequest {
        id: fence_id(number),
        holder: holder("ops", Then::StayOff),
        deadline: s(600),
        min_grade: Grade::Claimed,
        topology: topology(levels),
        releases: releases.iter().map(planned).collect(),
        key: None,
        set_aside: None,
    }
}
