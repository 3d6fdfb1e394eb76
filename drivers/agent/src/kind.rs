//! The kind `agent` of the settings.

use std::sync::Arc;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::described::Described;
use crate::driver::AgentDriver;
use crate::fitted::Fitted;

/// Makes drivers from settings.
///
/// | key | what | default |
/// | --- | --- | --- |
/// | `agent` | the agent's program, as docs/agents-list.md lists it | needed |
/// | `trust_agent` | the same name, for an agent that is not on that list | none |
/// | `class` | `host` or `supply`, of an agent that is not on the list, and of `fence_powerman` | the list's |
/// | `directory` | where the program is | `/usr/sbin` |
/// | `parameters` | what the agent is told, as its metadata has it | none |
/// | `<parameter>_file`, `<parameter>_env`, `<parameter>_credential` | where a secret of the agent's is (`password_file`) | none |
/// | `env` | names of variables that the agent inherits besides `PATH` | none |
/// | `max_life` | how long what a killed agent had sent may still take effect, 1 s to 24 h | nothing bounds it |
///
/// Agents are asked for their metadata when a device is made, and again when their program was replaced.
#[derive(Debug, Default)]
pub struct AgentKind {
    described: Arc<Described>,
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
        Ok(Arc::new(AgentDriver::new(Fitted::new(settings, &self.described)?)))
    }
}
