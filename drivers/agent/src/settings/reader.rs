//! Reading the table of a device: which agent, and whether it may be one.

use std::path::PathBuf;
use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_driver::SettingFault;
use picket_driver::table::ReadTable;
use picket_reach::program::Program;
use serde_json::{Map, Value};

use crate::list::{self, Proof};

const KEYS: [&str; 7] = ["agent", "trust_agent", "class", "directory", "parameters", "env", "max_life"];
const SOURCES: [&str; 3] = ["_file", "_env", "_credential"];
/// Where distributions put agents.
pub(super) const DIRECTORY: &str = "/usr/sbin";
const LIVES: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// The table while it is read.
pub(super) struct Reader<'a> {
    pub(super) table: &'a Map<String, Value>,
    pub(super) faults: Vec<SettingFault>,
}

impl ReadTable for Reader<'_> {
    fn table(&self) -> &Map<String, Value> {
        self.table
    }

    fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(SettingFault::new(key, message));
    }
}

impl Reader<'_> {
    /// Faults for unknown keys; else which parameters come from elsewhere, with their keys.
    pub(super) fn unknown_keys(&mut self) -> Vec<(String, String)> {
        let mut sources = Vec::new();
        for key in self.table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let parameter =
                SOURCES.iter().find_map(|end| key.strip_suffix(end)).filter(|name| !name.is_empty());
            match parameter {
                Some(parameter) => sources.push((parameter.to_owned(), key.clone())),
                None => self.faults.push(SettingFault::new(
                    key.clone(),
                    format!(
                        "unknown key (what the agent takes stands in parameters; a secret x of it is named by x_file, x_env or \
                         x_credential); known are {}",
                        KEYS.join(", ")
                    ),
                )),
            }
        }
        sources
    }

    pub(super) fn agent(&mut self) -> Option<String> {
        if !self.table.contains_key("agent") {
            self.fault("agent", "is missing: the agent's program, for example \"fence_eaton_snmp\" (docs/agents-list.md lists them)");
        }
        let agent = self.text("agent")?;
        let is_name = agent.starts_with("fence_")
            && agent.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        if !is_name {
            self.fault("agent", format!("{agent:?} is no agent's name: those begin with fence_; where it is goes to the key directory"));
            return None;
        }
        Some(agent)
    }

    /// Whether the list, or else the operator by name, lets it be a device.
    pub(super) fn may_be_used(&mut self, agent: &str) -> bool {
        let trusted = self.text("trust_agent");
        match (list::find(agent), trusted) {
            (Some(known), _) if known.proof == Proof::Never => {
                self.fault(
                    "agent",
                    format!("{agent} never proves that power is off: it {}", it_does(known.why)),
                );
                false
            }
            (Some(_), None) => true,
            (Some(_), Some(_)) => {
                let message = format!("{agent} is on the reviewed list: leave trust_agent out");
                self.fault("trust_agent", message);
                false
            }
            (None, Some(trusted)) if trusted == agent => true,
            (None, Some(trusted)) => {
                self.fault(
                    "trust_agent",
                    format!("names {trusted:?}, and the agent is {agent:?}: they must be the same"),
                );
                false
            }
            (None, None) => {
                let message = format!(
                    "{agent} is not on the reviewed list (docs/agents-list.md): nobody read what its off and status mean. Where you did, and \
                     its off cuts power and its status says off of nothing else, write trust_agent = {agent:?} and its class; its Off \
                     counts as claimed"
                );
                self.fault("agent", message);
                false
            }
        }
    }

    /// `used`: it may be a device. Of what may not, a class that is missing is no fault besides.
    pub(super) fn class(&mut self, known: Option<&list::Agent>, used: bool) -> Option<DeviceClass> {
        let said = match self.text("class").as_deref() {
            None => None,
            Some("host") => Some(DeviceClass::Host),
            Some("supply") => Some(DeviceClass::Supply),
            Some(other) => {
                self.fault("class", format!("expected \"host\" (it speaks of the machine) or \"supply\" (an outlet), found {other:?}"));
                return None;
            }
        };
        match (known.and_then(list::Agent::class), said) {
            (Some(is), Some(said)) if is != said => {
                let right = if is == DeviceClass::Supply { "supply" } else { "host" };
                self.fault("class", format!("that agent's devices are of the class {right:?}: leave it out"));
                None
            }
            (Some(is), _) => Some(is),
            (None, Some(said)) => Some(said),
            (None, None) => {
                if used && !self.table.contains_key("class") {
                    self.fault(
                        "class",
                        "is missing: \"host\" if the agent speaks of the machine, \"supply\" of an outlet",
                    );
                }
                None
            }
        }
    }

    pub(super) fn max_life(&mut self) -> Option<Duration> {
        let right = "how long what a killed agent had sent may still take effect, from \"1s\" to \"24h\"";
        self.time("max_life", LIVES, right)
    }

    pub(super) fn env(&mut self) -> Vec<String> {
        let Some(value) = self.table.get("env") else { return Vec::new() };
        let names: Option<Vec<String>> = value
            .as_array()
            .and_then(|list| list.iter().map(|one| one.as_str().map(str::to_owned)).collect());
        let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        match names.filter(|names| names.iter().all(is_name)) {
            Some(names) => names,
            None => {
                self.fault(
                    "env",
                    "expected a list of names of variables that the agent inherits besides PATH",
                );
                Vec::new()
            }
        }
    }

    pub(super) fn program(&mut self, agent: &str, directory: &str, env: &[String]) -> Option<Program> {
        let path = PathBuf::from(directory).join(agent);
        Program::at(path, env)
            .map_err(|why| {
                let message = format!("{why}; agents come with the package fence-agents, and elsewhere than in {DIRECTORY} by the key directory");
                self.fault("agent", message);
            })
            .ok()
    }
}

/// "closes a port …" → "closes a port …"; "a person's word …" → "is a person's word …".
fn it_does(why: &str) -> String {
    if why.starts_with("a ") { format!("is {why}") } else { why.to_owned() }
}
