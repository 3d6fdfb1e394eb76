//! The kind `redfish` of the settings.

use std::sync::Arc;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::driver::RedfishDriver;
use crate::pool::Pool;
use crate::settings::Settings;

/// Makes drivers from settings.
///
/// | key | what | default |
/// | --- | --- | --- |
/// | `host` | address or name of the BMC | needed |
/// | `port` | TCP port | 443 |
/// | `system` | the id of the computer system | the only one |
/// | `username` | who logs in | needed |
/// | `password_file`, `password_env`, `password_credential` | where the password is: one of the three | needed |
/// | `authentication` | `session`; `session_or_basic`, `basic` | `session` |
/// | `session_timeout` | after how long the service ends an idle session, not less than it truly takes: a command whose sender stopped may land until then | `30m` |
/// | `max_life` | with basic authentication: how late a command may land, in your words | nothing bounds it |
/// | `ca_file` | the CAs that vouch for the service's certificate, or that certificate itself | the system's |
/// | `certificate_sha256` | the service's certificate, and no other | none |
/// | `accept_any_certificate` | whoever answers is believed; what it says is claimed, not observed | `false` |
/// | `last_reset_time` | whether the manager's LastResetTime shows its restarts; without, Off must hold for the long window | where the manager says it, and two checks agreed |
/// | `hold` | whether the service is told to keep the machine off while fenced | `true` |
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
