//! The kind `agent` of the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use picket_reach::process;
use picket_reach::program::Program;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::driver::AgentDriver;
use crate::metadata::{self, Metadata};
use crate::settings::Settings;

/// How long an agent may take to say what it is: as long as a call of it, as it may be on a machine that starts.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes drivers from settings.
///
/// | key | what | default |
/// | --- | --- | --- |
/// | `agent` | the agent's program, as docs/agents.md lists it | needed |
/// | `trust_agent` | the same name, for an agent that is not on that list | none |
/// | `class` | `host` or `supply`, of an agent that is not on the list, and of `fence_powerman` | the list's |
/// | `directory` | where the program is | `/usr/sbin` |
/// | `parameters` | what the agent is told, as its metadata has it | none |
/// | `<parameter>_file`, `<parameter>_env`, `<parameter>_credential` | where a secret of the agent's is (`password_file`) | none |
/// | `env` | names of variables that the agent inherits besides `PATH` | none |
/// | `max_life` | how long what a killed agent had sent may still take effect, 1 s to 24 h | nothing bounds it |
///
/// Agents are asked for their metadata when a device is made, once for each program as it stands on the disk.
#[derive(Debug, Default)]
pub struct AgentKind {
    described: Mutex<BTreeMap<PathBuf, (Stamp, Metadata)>>,
}

/// By what a program that was replaced is told from the one before.
type Stamp = (u64, Option<SystemTime>);

impl AgentKind {
    fn describe(&self, path: &Path, program: &Program) -> Result<Metadata, String> {
        let file = std::fs::metadata(path)
            .map_err(|error| format!("{} cannot be found: {error}", path.display()))?;
        let stamp = (file.len(), file.modified().ok());
        let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, metadata)) = described.get(path)
            && *known == stamp
        {
            return Ok(metadata.clone());
        }
        let metadata = ask(program)
            .map_err(|why| format!("{} does not say what it takes (-o metadata): {why}", path.display()))?;
        described.insert(path.to_owned(), (stamp, metadata.clone()));
        Ok(metadata)
    }
}

/// Runs `<agent> -o metadata`, and asks it for its version, from a thread of its own that lives as long as the run: making a driver does not wait for a runtime,
/// and may itself stand in one.
fn ask(program: &Program) -> Result<Metadata, String> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let said = |args: &[&str]| {
            let command = program.with(args).command();
            runtime.block_on(async {
                process::run(command, b"", Instant::now() + PATIENCE, || Ok(()))
                    .await
                    .map_err(|error| error.to_string())
            })
        };
        let ran = said(&["-o", "metadata"])?;
        let metadata = match ran.status {
            None => return Err(format!("it did not end within {} s", PATIENCE.as_secs())),
            Some(_) if ran.stdout.cut => return Err("it says more than a fence agent does".to_owned()),
            Some(_) => Metadata::read(&String::from_utf8_lossy(&ran.stdout.bytes)).map_err(|why| {
                let said = picket_reach::excerpt(&ran.stderr.bytes);
                if said.is_empty() { why } else { format!("{why} ({said})") }
            })?,
        };
        // One that does not tell its version is none that was read.
        let version = said(&["--version"])?;
        Ok(Metadata {
            version: metadata::version(&String::from_utf8_lossy(&version.stdout.bytes)),
            ..metadata
        })
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|_| Err("asking it failed".to_owned())))
}

impl DriverKind for AgentKind {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn make(
        &self,
        settings: &Map<String, Value>,
        _context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        let settings = Settings::check(settings, &|path, program| self.describe(path, program))?;
        Ok(Arc::new(AgentDriver::new(settings)))
    }
}
