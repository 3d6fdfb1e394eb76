//! Simulated devices from settings: one world for all of them.

use std::sync::Arc;
use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_core::time::duration;
use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::driver::{SimDriver, SimOptions};
use crate::world::{SharedWorld, World};

/// `driver = "sim"`: for trying things out, and for tests of a whole gateway. The keys stand in docs/reference/settings.md. A machine is made, and is
/// on, when it is first named.
///
/// The world dies with the process: after a restart every machine is on again.
#[derive(Debug)]
pub struct SimKind {
    world: SharedWorld,
}

impl Default for SimKind {
    fn default() -> Self {
        Self::in_world(World::new(0).shared())
    }
}

impl SimKind {
    /// All devices stand in this world.
    pub fn in_world(world: SharedWorld) -> Self {
        Self { world }
    }
}

impl DriverKind for SimKind {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn make(
        &self,
        settings: &Map<String, Value>,
        _context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        let mut faults = Vec::new();
        let mut text = |key: &str| match settings.get(key) {
            None => None,
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(other) => {
                faults.push(SettingFault::new(
                    key,
                    format!("{other} is no name: give a text that is not empty"),
                ));
                None
            }
        };
        let (machine, device, class) = (text("machine"), text("device"), text("class"));
        let runs_on = text("runs_on");
        let class = match class.as_deref() {
            None | Some("host") => DeviceClass::Host,
            Some("supply") => DeviceClass::Supply,
            Some(other) => {
                let message = format!("{other:?} is no class: give \"host\" or \"supply\"");
                faults.push(SettingFault::new("class", message));
                DeviceClass::Host
            }
        };
        let mut options = SimOptions::default();
        match settings.get("latency").map(|value| (value, value.as_str().and_then(duration))) {
            None => {}
            Some((_, Some(latency))) if latency <= Duration::from_secs(60) => options.latency = latency,
            Some((value, _)) => {
                let message =
                    format!("expected a duration from \"0ms\" to \"60s\" with its unit, found {value}");
                faults.push(SettingFault::new("latency", message));
            }
        }
        const KEYS: [&str; 5] = ["machine", "device", "class", "runs_on", "latency"];
        for key in settings.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let message = format!("unknown key; known are {}", KEYS.join(", "));
            faults.push(SettingFault::new(key.clone(), message));
        }
        if machine.is_none() && !settings.contains_key("machine") {
            faults.push(SettingFault::new("machine", "missing: name the simulated machine"));
        }
        let Some(machine) = machine.filter(|_| faults.is_empty()) else { return Err(faults) };
        let mut world = self.world.lock();
        let device = device.unwrap_or_else(|| match class {
            DeviceClass::Supply => format!("{machine}-outlet"),
            DeviceClass::Host | DeviceClass::Parent => machine.clone(),
        });
        if runs_on.as_ref() == Some(&machine) {
            let message = format!("{machine:?} cannot run on itself: name another machine");
            return Err(vec![SettingFault::new("runs_on", message)]);
        }
        world.add_machine(&machine);
        if let Some(parent) = runs_on {
            world.add_machine(&parent).set_parent(&machine, &parent);
        }
        match class {
            DeviceClass::Supply => world.add_supply(&machine, &device),
            DeviceClass::Host | DeviceClass::Parent => world.add_host(&machine, &device),
        };
        if world.class(&device) != Some(class) {
            let message = format!("{device:?} is already a device of another class: name another one");
            return Err(vec![SettingFault::new("device", message)]);
        }
        drop(world);
        Ok(Arc::new(SimDriver::new(&self.world, &device, &options)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use picket_core::time::{BootTime, Clock, WallTime};
    use serde_json::json;

    #[derive(Debug)]
    struct Still;
    impl Clock for Still {
        fn boot(&self) -> BootTime {
            BootTime::default()
        }
        fn wall(&self) -> WallTime {
            WallTime::default()
        }
    }

    fn make(settings: Value) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        let context = Context { clock: Arc::new(Still), random: Arc::new(|_: &mut [u8]| {}) };
        SimKind::default().make(settings.as_object().expect("a table"), &context)
    }

    #[test]
    fn a_machine_is_made_when_it_is_named() {
        let device =
            make(json!({"machine": "n1", "class": "supply", "latency": "5ms"})).expect("right settings");
        assert_eq!(device.traits().class, DeviceClass::Supply);
        assert_eq!(device.traits().endpoint, "sim n1-outlet");
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let faults =
            make(json!({"class": "pdu", "latency": 5, "colour": "red"})).expect_err("wrong settings");
        let keys: Vec<_> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["class", "latency", "colour", "machine"]);
    }
}
