//! The settings of one agent's device, checked against the list and against the agent's own metadata; all faults at once.

use std::path::PathBuf;
use std::time::Duration;

use picket_core::device::{DeviceClass, Grade};
use picket_driver::table::ReadTable;
use picket_driver::{Secret, SettingFault};
use picket_reach::program::Program;
use serde_json::{Map, Value};

use self::given_parameters::GivenParameters;
use self::reader::{DIRECTORY, Reader};
use crate::list::{self, Proof};
use crate::metadata::Metadata;

mod given_parameters;
mod naming;
mod parameters;
mod reader;
mod remarks;

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
        let told = GivenParameters { parameters: &parameters, secrets: &secrets, metadata: &metadata };
        let (place, endpoint) = naming::endpoint(&agent, known, class, &told);
        // An answer that nobody authenticates may come from anybody in its network (S1).
        let is_believed = |known: &&list::Agent| {
            list::was_read(&metadata.version) && remarks::spoken(known, &told).is_none()
        };
        let grade = known.filter(is_believed).map_or(Grade::Claimed, list::Agent::grade);
        let remarks = remarks::remarks(known, &told);
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

#[cfg(test)]
mod tests;
