//! How the gateway makes devices from settings: one [`DriverKind`] a driver, one line each in the gateway.

use std::sync::Arc;

use picket_core::time::Clock;

use crate::driver::PowerDriver;

/// A fault in a device's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    /// The key within the device's table (`password_file`); empty for the whole table.
    pub key: String,
    /// What is wrong and what would be right. Never a secret.
    pub message: String,
}

impl SettingFault {
    /// A fault at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

/// Fills a buffer with unpredictable bytes; a test passes a seeded one.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// What a driver gets besides its settings: clocks and randomness are passed in.
#[derive(Clone)]
pub struct Context {
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Random,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// One kind of driver.
pub trait DriverKind: Send + Sync + std::fmt::Debug {
    /// Its name in the settings (`ipmi`).
    fn name(&self) -> &'static str;

    /// Whether its devices switch machines of a simulation. What such a device says proves nothing real: no gateway has it beside
    /// a real one (S1).
    fn is_simulated(&self) -> bool {
        false
    }

    /// Checks the settings of one device, all faults at once, and makes the device. Does no network I/O;
    /// reads secrets from where the settings say.
    fn make(
        &self,
        settings: &serde_json::Map<String, serde_json::Value>,
        context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>>;
}
