//! The kind `agent` of the settings.

use std::sync::Arc;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::described::Described;
use crate::driver::AgentDriver;
use crate::fitted::Fitted;

/// Makes drivers from settings. The keys stand in docs/reference/settings.md.
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
