//! The kind `agent` of the settings.

use std::sync::Arc;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::current_settings::CurrentSettings;
use crate::driver::AgentDriver;
use crate::metadata_cache::MetadataCache;

/// Makes drivers from settings. The keys stand in docs/reference/settings.md.
///
/// Agents are asked for their metadata when a device is made, and again when their program was replaced.
#[derive(Debug, Default)]
pub struct AgentKind {
    described: Arc<MetadataCache>,
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
        Ok(Arc::new(AgentDriver::new(CurrentSettings::new(settings, &self.described)?)))
    }
}
