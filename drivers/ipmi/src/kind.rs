//! The kind `ipmi` of the settings.

use std::sync::Arc;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::driver::IpmiDriver;
use crate::settings::Settings;

/// Makes drivers from settings.
///
/// | key | what | default |
/// | --- | --- | --- |
/// | `host` | address or name of the BMC | needed |
/// | `port` | UDP port | 623 |
/// | `username` | at most 16 bytes | needed |
/// | `password_file`, `password_env`, `password_credential` | where the password is, at most 20 bytes: one of the three | needed |
/// | `kg_file` | the BMC key K_G, as text or as 0x and hexadecimal digits, at most 20 bytes | none |
/// | `cipher_suites` | `[17]`; `[17, 3]` or `[3]` for a BMC without 17 | `[17]` |
/// | `privilege` | `operator`; `administrator` where the power button is to be locked | `operator` |
/// | `idle_limit` | after how long the BMC ends a silent session, not less than it truly takes: a command whose sender stopped may land until then | `60s` |
/// | `hold` | whether the BMC is told to stay off while fenced | `true` |
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
