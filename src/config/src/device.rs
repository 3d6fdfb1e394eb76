//! The settings of one device of one node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity, MaxInFlight};
use picket_core::ids::DeviceId;
use picket_core::rules::Rules;
use picket_core::time::written;
use serde_json::{Map, Value};

use crate::entry::{Entry, Raw};
use crate::fault::{Fault, Place};
use crate::secret;
use crate::table::Table;

/// A device: what is common to all drivers, and the table that its driver checks.
#[derive(Clone, Debug)]
pub struct DeviceSettings {
    /// Its name within the node.
    pub id: DeviceId,
    /// `driver`: the kind of driver.
    pub driver: String,
    /// What is left of its table, for the driver: everything but the keys below. Holds no secret.
    pub settings: Map<String, Value>,
    /// `call`: how long one call may take, 0.1 s to 5 min. Default: what the driver says.
    pub call: Option<Duration>,
    /// `dwell`: least time between two readings that count, 0.5 s to 60 s. Default: the rules'.
    pub dwell: Duration,
    /// The same of a cloud's device: where it has no `dwell` of its own, no less than the rules' `cloud_poll`.
    poll: Duration,
    /// `readings`: how many in a row must say Off, at least 2. Default: the rules'.
    pub readings: u32,
    /// `longest_cycle`: the longest power cycle that somebody else may have under way, 5 s to 10 min. Default: the rules'.
    pub longest_cycle: Duration,
    /// `trust_after_restart`: after its session was lost within a fence, Off counts again once it held this long,
    /// graded claimed. `true`: the rules' `trust_dwell`; or a duration of at least 30 s. Default: never.
    pub trust_after_restart: Option<Duration>,
    /// `at_once`: how many calls go side by side to what the device shares with others (a PDU, a chassis), 1 to 64. Default: what
    /// the driver says.
    pub at_once: Option<u32>,
    /// `pause`: from the beginning of one call there to that of the next, at least; 0 s to 10 s. Default: none.
    pub pause: Option<Duration>,
    /// `retry`: the first pause before what failed is tried again within a fence, 0.1 s to 60 s; it doubles, up to 2 s or this.
    /// Default: 0.25 s.
    pub retry: Option<Duration>,
    /// `verified`: a supply's wiring was verified. Default: false, which lowers the grade.
    pub verified: bool,
    /// `identity`: what it must say it is; for a host device, else the node's.
    pub identity: Identity,
    /// Whether the identity is the device's own, rather than the node's.
    own_identity: bool,
    place: Place,
    pub(crate) places: Arc<Places>,
}

/// Where each key of a device's table stands.
pub(crate) type Places = BTreeMap<String, Place>;

/// What a driver says of a device without asking it.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    /// What its On and Off speak of.
    pub class: DeviceClass,
    /// The best grade that its Off can have.
    pub grade: Grade,
    /// Whether it tells one of its lives from the next.
    pub has_epochs: bool,
    /// S8.
    pub max_in_flight: MaxInFlight,
    /// How long one call may take unless the settings say otherwise.
    pub call: Duration,
}

impl DeviceSettings {
    /// A fault at `key` of this device's table, as its driver names it; empty for the table as a whole.
    pub fn fault(&self, key: &str, message: impl Into<String>) -> Fault {
        let first = key.split(['.', '[']).next().unwrap_or_default();
        let place = match self.places.get(first) {
            Some(place) => place.clone(),
            None if key.is_empty() => self.place.clone(),
            None => self.place.within(first),
        };
        place.fault(message)
    }

    /// Whether its table has the first part of `key`, as its driver names it.
    pub fn has(&self, key: &str) -> bool {
        key.split(['.', '[']).next().is_some_and(|first| self.places.contains_key(first))
    }

    /// The device as a topology has it.
    pub fn spec(&self, nature: Nature) -> DeviceSpec {
        // What a node says it is, no outlet can say.
        let speaks_of_the_node = nature.class != DeviceClass::Supply || self.own_identity;
        let spec = DeviceSpec {
            id: self.id.clone(),
            class: nature.class,
            grade: nature.grade,
            has_epochs: nature.has_epochs,
            longest_cycle: self.longest_cycle,
            call: self.call.unwrap_or(nature.call),
            dwell: self.dwell,
            readings: self.readings,
            max_in_flight: nature.max_in_flight,
            trust_after_restart: self.trust_after_restart,
            verified: self.verified,
            identity: if speaks_of_the_node { self.identity.clone() } else { Identity::default() },
        };
        if spec.is_cloud() { DeviceSpec { dwell: self.poll, ..spec } } else { spec }
    }

    /// Reads the table of the device `id` of a node that has the identity `of_node`.
    pub(crate) fn read(
        id: &DeviceId,
        mut table: Table<'_>,
        rules: &Rules,
        of_node: &Identity,
    ) -> Option<Self> {
        if !table.has("driver") {
            table.fault("driver", "is missing: the kind of driver, for example \"ipmi\"");
        }
        let driver = table.text("driver");
        let mut own = rules.clone();
        own.readings = table.number("readings").unwrap_or(own.readings);
        let dwell = table.duration("dwell");
        own.dwell = dwell.unwrap_or(own.dwell);
        let poll = dwell.unwrap_or_else(|| own.dwell.max(rules.cloud_poll));
        own.longest_cycle = table.duration("longest_cycle").unwrap_or(own.longest_cycle);
        let call = table.duration("call");
        own.device_call = call.unwrap_or(own.device_call);
        let trust_after_restart = trust(&mut table, rules);
        own.trust_dwell = trust_after_restart.unwrap_or(own.trust_dwell);
        let of_trust = trust_after_restart.map(|_| own.trust_faults()).unwrap_or_default();
        let here = |key| match key {
            "device_call" => "call",
            "trust_dwell" => "trust_after_restart",
            key => key,
        };
        for fault in own.faults().into_iter().chain(of_trust) {
            let keys = if fault.asked_by.is_empty() { &[fault.key] } else { fault.asked_by };
            // What the rules themselves got wrong is told there.
            if let Some(key) = keys.iter().map(|key| here(key)).find(|key| table.has(key)) {
                table.fault(key, fault.message);
            }
        }
        let at_once = table.number("at_once");
        if let Some(wrong) = at_once.filter(|at_once| !(1..=64).contains(at_once)) {
            table.fault("at_once", format!("{wrong} is out of range: 1 to 64 calls side by side"));
        }
        let mut within = |key: &'static str, least: Duration, most: Duration| {
            let found = table.duration(key)?;
            if !(least..=most).contains(&found) {
                let (is, least, most) = (written(found), written(least), written(most));
                table.fault(key, format!("{is} is out of range: {least} to {most}"));
            }
            Some(found)
        };
        let pause = within("pause", Duration::ZERO, Duration::from_secs(10));
        let retry = within("retry", Duration::from_millis(100), Duration::from_secs(60));
        let verified = table.flag("verified").unwrap_or(false);
        let own_identity = table.has("identity");
        let identity = if own_identity { identity(table.table("identity")) } else { of_node.clone() };
        let places = table.rest().into_iter().map(|(key, entry)| (key, entry.place));
        let places: Places = places.chain([("driver".to_owned(), table.place_of("driver"))]).collect();
        for (key, entry) in table.rest() {
            secret::refuse(&key, &entry, table.log());
        }
        Some(Self {
            id: id.clone(),
            driver: driver?,
            settings: json(table.rest()),
            call,
            dwell: own.dwell,
            poll,
            readings: own.readings,
            longest_cycle: own.longest_cycle,
            trust_after_restart,
            at_once,
            pause,
            retry,
            verified,
            identity,
            own_identity,
            place: table.place.clone(),
            places: Arc::new(places),
        })
    }
}

/// The entries as JSON.
pub(crate) fn json(entries: BTreeMap<String, Entry>) -> Map<String, Value> {
    entries.iter().map(|(key, entry)| (key.clone(), entry.to_json())).collect()
}

fn trust(table: &mut Table<'_>, rules: &Rules) -> Option<Duration> {
    let key = "trust_after_restart";
    match table.get(key)?.raw {
        Raw::Flag(trusted) => trusted.then_some(rules.trust_dwell),
        Raw::Variable(text) if text == "true" => Some(rules.trust_dwell),
        Raw::Variable(text) if text == "false" => None,
        _ => table.duration(key),
    }
}

/// Reads what a device, or a node, must say it is.
pub(crate) fn identity(mut table: Table<'_>) -> Identity {
    let uuid = table.text("uuid").and_then(|text| {
        let usable = Identity::usable_uuid(&text);
        if usable.is_none() {
            let right = "expected a UUID of this machine's own, neither all zeros, all ones nor its firmware's placeholder";
            table
                .fault("uuid", format!("{right} (\"00112233-4455-6677-8899-aabbccddeeff\"), found {text:?}"));
        }
        usable
    });
    let serial = table.text("serial").and_then(|text| {
        let usable = Identity::usable_serial(&text);
        if usable.is_none() {
            table.fault(
                "serial",
                format!(
                    "expected this machine's own serial number, found {text:?}, which other boards say, too"
                ),
            );
        }
        usable
    });
    table.done();
    Identity { uuid, serial }
}
