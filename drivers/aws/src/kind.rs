//! The kind `aws` of the settings.

use std::sync::Arc;
use std::time::Duration;

use picket_cloud::Accounts;
use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::cloud::{Account, Cloud, LIFE};
use crate::driver::AwsDriver;
use crate::settings::Settings;

/// Makes drivers from settings. Those of one account in one region share requests and their limits. The keys stand in docs/reference/settings.md.
#[derive(Debug)]
pub struct AwsKind {
    clouds: Accounts<Account, Cloud>,
    life: Duration,
}

impl Default for AwsKind {
    fn default() -> Self {
        Self::before(None)
    }
}

impl AwsKind {
    /// Of an EC2 that takes a command no later than that after the time of its signature: a test's, which has made sure of it. AWS
    /// itself, as `None` says, promises no less than is waited then, and no setting says otherwise.
    pub fn before(life: Option<Duration>) -> Self {
        Self { clouds: Accounts::default(), life: life.unwrap_or(LIFE) }
    }
}

impl DriverKind for AwsKind {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn make(
        &self,
        settings: &Map<String, Value>,
        context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        let settings = Settings::check(settings)?;
        let make = |account: &Account| Cloud::new(account.clone(), context.clock.clone(), self.life);
        let cloud = self.clouds.get(settings.account.clone(), make).map_err(|fault| vec![fault])?;
        Ok(Arc::new(AwsDriver::new(settings, cloud)))
    }
}
