//! The kind `ipmi` of the settings.

use std::sync::Arc;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::driver::IpmiDriver;
use crate::settings::Settings;

/// Makes drivers from settings. The keys stand in docs/reference/settings.md.
#[derive(Clone, Copy, Debug)]
pub struct IpmiKind;

impl IpmiKind {
    /// A driver, with its packet counter; what [`DriverKind::make`] does, not hidden behind the trait.
    ///
    /// # Errors
    /// All faults of the settings at once.
    pub fn device(
        &self,
        settings: &Map<String, Value>,
        context: &Context,
    ) -> Result<IpmiDriver, Vec<SettingFault>> {
        Ok(IpmiDriver::new(Settings::check(settings)?, context))
    }
}

impl DriverKind for IpmiKind {
    fn name(&self) -> &'static str {
        "ipmi"
    }

    fn make(
        &self,
        settings: &Map<String, Value>,
        context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        Ok(Arc::new(self.device(settings, context)?))
    }
}
