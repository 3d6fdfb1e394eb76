//! The settings of one agent's device, checked against the list and against the agent's own metadata; all faults at once.

use std::path::PathBuf;
use std::time::Duration;

use picket_core::device::{DeviceClass, Grade};
use picket_driver::table::ReadTable;
use picket_driver::{Secret, SettingFault};
use picket_reach::program::Program;
use serde_json::{Map, Value};

use self::reader::{DIRECTORY, Reader};
use crate::list::{self, Proof, Shows};
use crate::metadata::{Metadata, same};

mod parameters;
mod reader;

/// The checked settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent's name.
    pub agent: String,
    /// Its program.
    pub program: Program,
    /// Where that is.
    pub path: PathBuf,
    /// What its On and Off speak of.
    pub class: DeviceClass,
    /// The best grade that its Off can have.
    pub grade: Grade,
    /// Why its Off does not prove without another device.
    pub never_alone: Option<String>,
    /// What whoever runs it ought to know, and is no fault.
    pub remarks: Vec<String>,
    /// Parameters that may be seen.
    pub parameters: Vec<(String, String)>,
    /// Parameters that may not.
    pub secrets: Vec<(String, Secret)>,
    /// How long a command of a killed agent may still take effect, as the operator vouches (S8).
    pub max_life: Option<Duration>,
    /// Whether it repeats an on by itself unless it is told not to.
    pub repeats: bool,
    /// What no two devices may share.
    pub endpoint: String,
    /// What it may share with others: where it is, without what is switched there. `None`: no address says so.
    pub place: Option<String>,
}

/// Reads the metadata of the agent that this program is.
pub type Describe<'a> = &'a dyn Fn(&std::path::Path, &Program) -> Result<Metadata, String>;

impl Settings {
    /// Checks the settings and reads the secrets; all faults at once.
    pub fn check(table: &Map<String, Value>, describe: Describe<'_>) -> Result<Self, Vec<SettingFault>> {
        let mut reader = Reader { table, faults: Vec::new() };
        let sources = reader.unknown_keys();
        let agent = reader.agent();
        let max_life = reader.max_life();
        let env = reader.env();
        let directory = reader.text("directory").unwrap_or_else(|| DIRECTORY.to_owned());
        let known = agent.as_deref().and_then(list::find);
        let trusted = agent.as_deref().is_some_and(|agent| reader.may_be_used(agent));
        let class = reader.class(known, trusted);
        let given = reader.parameters();
        let program =
            agent.as_deref().filter(|_| trusted).and_then(|agent| reader.program(agent, &directory, &env));
        let metadata = program.as_ref().and_then(|program| {
            let path = PathBuf::from(&directory).join(agent.as_deref()?);
            describe(&path, program).map_err(|why| reader.fault("agent", why)).ok()
        });
        let secrets = reader.secrets(&sources, known, metadata.as_ref());
        let parameters = reader.checked(&given, &secrets, known, metadata.as_ref());
        let (Some(agent), Some(program), Some(class), Some(metadata), true) =
            (agent, program, class, metadata, reader.faults.is_empty())
        else {
            return Err(reader.faults);
        };
        let path = PathBuf::from(&directory).join(&agent);
        let repeats = metadata.parameters.contains_key("retry_on");
        let (place, endpoint) = endpoint(&agent, &parameters, &metadata);
        let was_read = list::was_read(&metadata.version);
        let grade = known.filter(|_| was_read).map_or(Grade::Claimed, list::Agent::grade);
        let remarks = remarks(known, &metadata.version, &parameters, &secrets);
        let never_alone = known.filter(|known| known.proof == Proof::TowardsOff);
        let never_alone = never_alone.map(|known| format!("{}: {}", known.name, known.why));
        Ok(Self {
            agent,
            program,
            path,
            class,
            grade,
            never_alone,
            remarks,
            parameters,
            secrets,
            max_life,
            repeats,
            endpoint,
            place,
        })
    }
}

/// What is no fault and worth a word: secrets that others see, and an agent that is not the one that was read.
fn remarks(
    agent: Option<&list::Agent>,
    version: &str,
    parameters: &[(String, String)],
    secrets: &[(String, Secret)],
) -> Vec<String> {
    let Some(agent) = agent else { return Vec::new() };
    let mut remarks = Vec::new();
    let scripts = parameters.iter().map(|(name, _)| name.as_str()).filter(|name| is_script(name));
    let names: Vec<&str> = secrets.iter().map(|(name, _)| name.as_str()).chain(scripts).collect();
    let shown = match agent.shows() {
        Shows::Arguments => Some(
            "into the arguments of a program that it runs, where every user of this machine can read that while it runs",
        ),
        Shows::Environment => Some(
            "into the environment of a program that it runs, where this user and root can read that while it runs",
        ),
        Shows::Nothing => None,
    };
    if let Some(where_to) = shown.filter(|_| !names.is_empty()) {
        remarks.push(format!(
            "{} puts what it is told as {} {where_to} (docs/agents.md, Secrets, says what can be done)",
            agent.name,
            names.join(" and "),
        ));
    }
    if !list::was_read(version) {
        let version = if version.is_empty() { "tells no version" } else { version };
        remarks.push(format!(
            "{} here is another than the one that was read ({version}, and {} was read): its Off counts as claimed",
            agent.name,
            list::READ_IN,
        ));
    }
    remarks
}

/// Whether a program is named by it whose output is a secret.
fn is_script(parameter: &str) -> bool {
    same(parameter).ends_with("_script")
}

/// Which device it is, by whatever agent: where it is and what is switched there.
fn endpoint(agent: &str, parameters: &[(String, String)], metadata: &Metadata) -> (Option<String>, String) {
    let of = |names: &[&str]| {
        let found = names.iter().find_map(|name| parameters.iter().find(|(known, _)| same(known) == **name));
        found.map(|(_, value)| value.to_ascii_lowercase())
    };
    let parts = [
        &["plug", "port"][..],
        &["uuid"],
        &["switch"],
        &["managed"],
        &["suborg"],
        &["target"],
        &["systems_uri"],
    ];
    let parts: Vec<String> = parts.iter().filter_map(|names| of(names)).collect();
    match of(&["ip", "ipaddr"]) {
        Some(host) => {
            // Its own default and the same number given are one device.
            let usual = || metadata.parameters.get("ipport")?.default.clone();
            let port = of(&["ipport"]).or_else(usual).map(|port| format!(":{port}")).unwrap_or_default();
            let place = format!("{host}{port}");
            let endpoint = std::iter::once(format!("agent {place}")).chain(parts).collect::<Vec<_>>();
            (Some(place), endpoint.join(" "))
        }
        None => {
            let all: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (None, format!("{agent} {}", all.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests;
