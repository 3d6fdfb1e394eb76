//! The system: its power, its hold, and what changes them.

use std::time::Duration;

use picket_core::power::Power;
use picket_core::time::BootTime;
use picket_driver_sim::{
    Act, Fault, HoldSettings, Request as Asked, Response, RestorePolicy, Trouble, Verb, World,
};
use serde_json::{Value, json};

use super::{Answer, Caller, Handled, RedfishBmc, Request};

/// What may be asked for. There is no graceful one: a machine without a system cannot obey it.
pub(super) const RESET_TYPES: [&str; 4] = ["On", "ForceOff", "ForceRestart", "PowerCycle"];
/// A `PowerState` that is none.
const NONSENSE: &str = "Dreaming";
/// How long somebody's power cycle stays off.
const CYCLE: Duration = Duration::from_secs(2);
/// How long a BMC restarts that is told to.
const RESTART: Duration = Duration::from_secs(20);

/// Where the restore policy stands, and its words.
struct PolicyLocation {
    /// From outside.
    path: &'static [&'static str],
    always_off: &'static str,
    last_state: &'static str,
    always_on: &'static str,
}

/// DSP2046, ComputerSystem.
const STANDARD: PolicyLocation = PolicyLocation {
    path: &["PowerRestorePolicy"],
    always_off: "AlwaysOff",
    last_state: "LastState",
    always_on: "AlwaysOn",
};
/// HPE's resource definitions of iLO 5.
const ILO: PolicyLocation = PolicyLocation {
    path: &["Oem", "Hpe", "PowerAutoOn"],
    always_off: "RemainOff",
    last_state: "Restore",
    always_on: "PowerOn",
};

impl PolicyLocation {
    /// That policy where it stands.
    fn say(&self, policy: RestorePolicy) -> Value {
        let word = match policy {
            RestorePolicy::AlwaysOff => self.always_off,
            RestorePolicy::LastState => self.last_state,
            RestorePolicy::AlwaysOn => self.always_on,
        };
        self.path.iter().rev().fold(json!(word), |within, name| json!({ *name: within }))
    }

    /// The policy that was said, and nothing besides; `None`: there is no such one.
    fn read(&self, said: &Value) -> Option<RestorePolicy> {
        let all = [RestorePolicy::AlwaysOff, RestorePolicy::LastState, RestorePolicy::AlwaysOn];
        all.into_iter().find(|policy| self.say(*policy) == *said)
    }
}

impl RedfishBmc {
    /// The system as a resource.
    pub(super) fn system(&self, now: BootTime, world: &mut World, caller: Caller) -> Result<Value, Trouble> {
        let Response::Power(power) = self.ask(now, world, caller, &Asked::Read)? else {
            return Err(Trouble::Refused);
        };
        let power = match (power, world.under_way(&self.options.machine)) {
            (Power::Unknown, _) if world.suffers(&self.options.device, &Fault::SaysNonsense) => {
                json!(NONSENSE)
            }
            (Power::On, _) => json!("On"),
            (Power::Off, _) => json!("Off"),
            (Power::Unknown, Some(Verb::Off)) => json!("PoweringOff"),
            (Power::Unknown, Some(Verb::On)) => json!("PoweringOn"),
            (Power::Unknown, None) => Value::Null,
        };
        let mut system = json!({
            "@odata.id": "/redfish/v1/Systems/1",
            "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
            "Id": "1", "Name": self.options.machine, "SystemType": "Physical",
            "Manufacturer": "Picket", "Model": "simulated",
            "PowerState": power,
            "Status": {"State": "Enabled", "Health": "OK"},
            "Links": {"ManagedBy": [{"@odata.id": "/redfish/v1/Managers/1"}]},
            "Actions": {"#ComputerSystem.Reset": {
                "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": self.offered,
                "@Redfish.ActionInfo": "/redfish/v1/Systems/1/ResetActionInfo",
            }},
        });
        match self.ask(now, world, caller, &Asked::Identify) {
            Ok(Response::Identity(identity)) => {
                system["UUID"] = json!(identity.uuid.map(|uuid| dashed(&uuid)));
                system["SerialNumber"] = json!(identity.serial);
            }
            // It leaves the question open.
            Err(Trouble::Silence) => {}
            Ok(_) => return Err(Trouble::Refused),
            Err(trouble) => return Err(trouble),
        }
        // Otherwise it has no such property.
        let Some(place) = self.place(world) else {
            system["Bios"] = json!({"@odata.id": "/redfish/v1/Systems/1/Bios"});
            return Ok(system);
        };
        if let Ok(Response::Hold(held)) = self.ask(now, world, caller, &Asked::InspectHold) {
            system[place.path[0]] = place.say(held.restore)[place.path[0]].take();
        }
        Ok(system)
    }

    /// `None`: no change of the system sets it.
    fn place(&self, world: &World) -> Option<&'static PolicyLocation> {
        let suffers = |fault| world.suffers(&self.options.device, &fault);
        match (suffers(Fault::HoldsAsIdrac), suffers(Fault::HoldsAsIlo)) {
            (true, _) => None,
            (false, true) => Some(&ILO),
            (false, false) => Some(&STANDARD),
        }
    }

    /// The restore policy is what can be set.
    pub(super) fn patch_system(
        &mut self,
        now: BootTime,
        world: &mut World,
        caller: Caller,
        request: &Request,
    ) -> Handled {
        let system = match self.system(now, world, caller) {
            Ok(system) => system,
            Err(trouble) => return Answer::trouble(trouble),
        };
        let version = request.headers.get("if-match").map(String::as_str);
        if let Some(status) = self.version(world).refuses(version, &system) {
            return Ok(Answer::error(status, "PreconditionFailed", "The resource has changed."));
        }
        let said: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some(properties) = said.as_object().filter(|said| !said.is_empty()) else {
            return Ok(Answer::error(400, "MalformedJSON", "The body is no object with properties."));
        };
        let place = self.place(world);
        let is_known = |key: &str| place.is_some_and(|place| key == place.path[0]);
        if let Some(other) = properties.keys().find(|key| !is_known(key)) {
            let words = format!("The property {other} is unknown, or cannot be set.");
            return Ok(Answer::error(400, "PropertyUnknown", words));
        }
        let Some(restore) = place.and_then(|place| place.read(&said)) else {
            let words = "No such value, or no such property within it.";
            return Ok(Answer::error(400, "PropertyValueNotInList", words));
        };
        let held = match self.ask(now, world, caller, &Asked::InspectHold) {
            Ok(Response::Hold(held)) => HoldSettings { restore, ..held },
            Ok(_) => return Answer::trouble(Trouble::Refused),
            Err(trouble) => return Answer::trouble(trouble),
        };
        match self.ask(now, world, caller, &Asked::SetHold(held)) {
            Ok(_) => Ok(Answer::empty(204)),
            Err(trouble) => Answer::trouble(trouble),
        }
    }

    /// `ComputerSystem.Reset`.
    pub(super) fn reset(&mut self, now: BootTime, world: &mut World, caller: Caller, body: &[u8]) -> Handled {
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        let machine = self.options.machine.clone();
        let verb = match said["ResetType"].as_str() {
            Some(other) if !self.offered.contains(&other) => {
                let words = format!("The value {other} for ResetType is not in the list.");
                return Ok(Answer::error(400, "ActionParameterValueNotInList", words));
            }
            Some("On") => Verb::On,
            Some("ForceOff") => Verb::Off,
            // Somebody's restart, or cycle.
            Some(_) => {
                if !world.truth(&machine, now) {
                    return Ok(Answer::error(409, "NoOperation", "It is off."));
                }
                if said["ResetType"] == "PowerCycle" {
                    world.happen(now, Act::ForeignCycle { machine, off_for: CYCLE });
                }
                return Ok(Answer::empty(204));
            }
            None => {
                return Ok(Answer::error(400, "ActionParameterMissing", "ResetType is missing."));
            }
        };
        match self.ask(now, world, caller, &Asked::Command(verb)) {
            Ok(_) if self.options.tasks => Ok(self.accepted(now)),
            Ok(_) if verb == Verb::Off => {
                Ok(Answer { late: world.late_off(&self.options.device), ..Answer::empty(204) })
            }
            Ok(_) => Ok(Answer::empty(204)),
            Err(trouble) => Answer::trouble(trouble),
        }
    }

    /// `Manager.Reset`.
    pub(super) fn restart(&mut self, now: BootTime, world: &mut World) -> Answer {
        let device = self.options.device.clone();
        world.happen(now, Act::RestartBmc { device, down: RESTART, estranged: false });
        Answer::empty(204)
    }
}

/// A UUID as people write it.
fn dashed(uuid: &str) -> String {
    match [uuid.get(..8), uuid.get(8..12), uuid.get(12..16), uuid.get(16..20), uuid.get(20..)] {
        [Some(a), Some(b), Some(c), Some(d), Some(e)] if uuid.len() == 32 => format!("{a}-{b}-{c}-{d}-{e}"),
        _ => uuid.to_owned(),
    }
}
