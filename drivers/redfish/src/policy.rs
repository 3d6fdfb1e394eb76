//! Where a board says what it does when power comes back after a cut, and by which word it stays off then
//! (S11).
//!
//! # Invariants
//!
//! - A place stands here only if its value is read where it is set, and is set at once. A setting that
//!   waits for a reboot or a job, as those of a BIOS do, keeps nothing off. [`bios`](crate::bios) tells of
//!   those. Shown by `each_place_is_changed_where_it_is_read`.

use picket_driver::HoldFound;
use serde_json::{Map, Value};

use crate::service::Object;

/// One place, and its words.
#[derive(Debug)]
pub struct Policy {
    /// The objects of the system in which it stands, from outside.
    within: &'static [&'static str],
    /// The property itself.
    property: &'static str,
    /// The value with which the machine stays off.
    pub keeps_off: &'static str,
    /// Another property, which the service clears where this one keeps the machine off, and which is put back with it.
    cleared: Option<&'static str>,
    /// The hold, in words, where it stands.
    pub holds: &'static str,
    /// Whether the value, read after a restart of the manager, shows that the machine was kept off through it (S2).
    pub outlives: bool,
}

/// All places, in the order in which they are looked for.
const POLICIES: [Policy; 3] = [
    // DSP2046, ComputerSystem.
    Policy {
        within: &[],
        property: "PowerRestorePolicy",
        keeps_off: "AlwaysOff",
        cleared: None,
        holds: "restore policy always-off",
        outlives: true,
    },
    ilo(&["Oem", "Hpe"]),
    ilo(&["Oem", "Hp"]),
];

/// HPE's resource definitions of iLO 5, 6 and 7 (`Oem.Hpe`), and of iLO 4 (`Oem.Hp`).
const fn ilo(within: &'static [&'static str]) -> Policy {
    Policy {
        within,
        property: "PowerAutoOn",
        keeps_off: "RemainOff",
        cleared: Some("PowerOnDelay"),
        holds: "auto power-on remain-off",
        // HPE's guide of iLO 4 says that a change may wait for the next reboot: what reads so need not have kept it off.
        outlives: false,
    }
}

impl Policy {
    /// The place in which the system says a value.
    pub fn of(system: &Object) -> Option<&'static Self> {
        POLICIES.iter().find(|policy| policy.value(system, policy.property).is_some())
    }

    /// The place in which this was found.
    pub fn found_in(found: &HoldFound) -> Option<&'static Self> {
        POLICIES.iter().find(|policy| found.contains_key(&policy.name()))
    }

    /// Its name, which is also its path: `Oem.Hpe.PowerAutoOn`.
    pub fn name(&self) -> String {
        self.named(self.property)
    }

    fn named(&self, property: &str) -> String {
        self.within.iter().copied().chain([property]).collect::<Vec<_>>().join(".")
    }

    fn value(&self, system: &Object, property: &str) -> Option<String> {
        let mut object = system;
        for part in self.within {
            object = object.get(*part)?.as_object()?;
        }
        object.get(property)?.as_str().map(str::to_owned)
    }

    fn properties(&self) -> impl Iterator<Item = &'static str> {
        [self.property].into_iter().chain(self.cleared)
    }

    /// All that a hold changes, as the system says it.
    pub fn read(&self, system: &Object) -> HoldFound {
        let said = |property| Some((self.named(property), self.value(system, property)?));
        self.properties().filter_map(said).collect()
    }

    /// What keeps the machine off.
    pub fn off(&self) -> HoldFound {
        [(self.name(), self.keeps_off.to_owned())].into()
    }

    /// What is put back: of what was found what is this place's. Where the machine was kept off by it before, the rest was clear.
    pub fn back(&self, found: &HoldFound) -> HoldFound {
        let was_off = self.keeps(found);
        let properties = self.properties().filter(|one| !was_off || *one == self.property);
        let was = |property| found.get_key_value(&self.named(property));
        properties.filter_map(was).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether the machine stays off by that.
    pub fn keeps(&self, found: &HoldFound) -> bool {
        found.get(&self.name()).is_some_and(|value| value == self.keeps_off)
    }

    /// The change that makes it so.
    pub fn change(&self, wanted: &HoldFound) -> Value {
        let set =
            |property: &str| Some((property.to_owned(), wanted.get(&self.named(property))?.as_str().into()));
        let set: Map<String, Value> = self.properties().filter_map(set).collect();
        let wrap = |inner, part: &&str| Value::Object([((*part).to_owned(), inner)].into_iter().collect());
        self.within.iter().rev().fold(Value::Object(set), wrap)
    }
}

/// The names of all places, for people.
pub fn names() -> Vec<String> {
    POLICIES.iter().map(Policy::name).collect()
}

/// Whether that hold, once it reads engaged after a restart of the manager, kept the machine off through it.
pub fn outlives(holds: &str) -> bool {
    POLICIES.iter().any(|policy| policy.holds == holds && policy.outlives)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn system(value: Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn each_place_is_changed_where_it_is_read() {
        for policy in &POLICIES {
            let off = system(policy.change(&policy.off()));
            let place = Policy::of(&off).expect("there");
            assert_eq!((place.name(), place.read(&off)), (policy.name(), policy.off()));
            assert!(place.keeps(&place.read(&off)), "{off:?}");
            assert_eq!(Policy::found_in(&place.read(&off)).map(Policy::name), Some(policy.name()));
        }
    }

    #[test]
    fn no_value_is_no_place() {
        for said in [
            json!({}),
            json!({ "PowerRestorePolicy": null }),
            json!({ "PowerRestorePolicy": 1, "Oem": null }),
            json!({ "Oem": { "Hpe": { "PowerAutoOn": null }, "Hp": [] } }),
            json!({ "Oem": { "PowerAutoOn": "RemainOff" } }),
        ] {
            assert!(Policy::of(&system(said.clone())).is_none(), "{said}");
        }
    }

    #[test]
    fn the_standard_s_own_place_comes_first() {
        let both = system(
            json!({ "Oem": { "Hpe": { "PowerAutoOn": "PowerOn" } }, "PowerRestorePolicy": "AlwaysOn" }),
        );
        assert_eq!(Policy::of(&both).map(Policy::name).as_deref(), Some("PowerRestorePolicy"));
    }

    #[test]
    fn what_was_clear_already_is_not_put_back() {
        let policy = &POLICIES[1];
        let found = |mode: &str| -> HoldFound {
            let delay = ("Oem.Hpe.PowerOnDelay".to_owned(), "30Sec".to_owned());
            [("Oem.Hpe.PowerAutoOn".to_owned(), mode.to_owned()), delay].into()
        };
        let all = json!({ "Oem": { "Hpe": { "PowerAutoOn": "Restore", "PowerOnDelay": "30Sec" } } });
        assert_eq!(policy.change(&policy.back(&found("Restore"))), all);
        let alone = json!({ "Oem": { "Hpe": { "PowerAutoOn": "RemainOff" } } });
        assert_eq!(policy.change(&policy.back(&found("RemainOff"))), alone);
    }
}
