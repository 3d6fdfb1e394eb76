//! The kind `redfish` of the settings.

use std::sync::Arc;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::driver::RedfishDriver;
use crate::pool::Pool;
use crate::settings::Settings;

/// Makes drivers from settings. The keys stand in docs/reference/settings.md.
#[derive(Clone, Debug, Default)]
pub struct RedfishKind {
    pool: Pool,
}

impl RedfishKind {
    /// The same, with so many connections that are kept over all devices beside those that carried a command; 512 by default.
    pub fn keeping(connections: usize) -> Self {
        Self { pool: Pool::of(connections) }
    }

    /// A driver; what [`DriverKind::make`] does, not hidden behind the trait.
    ///
    /// # Errors
    /// All faults of the settings at once.
    pub fn device(&self, settings: &Map<String, Value>) -> Result<RedfishDriver, Vec<SettingFault>> {
        RedfishDriver::new(Settings::check(settings)?, &self.pool)
    }
}

impl DriverKind for RedfishKind {
    fn name(&self) -> &'static str {
        "redfish"
    }

    fn make(
        &self,
        settings: &Map<String, Value>,
        _context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        Ok(Arc::new(self.device(settings)?))
    }
}
