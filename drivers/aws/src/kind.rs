//! The kind `aws` of the settings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::cloud::{Account, Cloud, LIFE};
use crate::driver::AwsDriver;
use crate::settings::Settings;

/// Makes drivers from settings. Those of one account in one region share requests and their limits. The keys stand in docs/reference/settings.md.
#[derive(Debug)]
pub struct AwsKind {
    clouds: Mutex<HashMap<Account, Weak<Cloud>>>,
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
        Self { clouds: Mutex::default(), life: life.unwrap_or(LIFE) }
    }

    fn cloud(&self, account: &Account, context: &Context) -> Result<Arc<Cloud>, SettingFault> {
        let mut clouds = self.clouds.lock().unwrap_or_else(PoisonError::into_inner);
        clouds.retain(|_, cloud| cloud.strong_count() > 0);
        if let Some(cloud) = clouds.get(account).and_then(Weak::upgrade) {
            return Ok(cloud);
        }
        let cloud = Arc::new(Cloud::new(account.clone(), context.clock.clone(), self.life)?);
        clouds.insert(account.clone(), Arc::downgrade(&cloud));
        Ok(cloud)
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
        let cloud = self.cloud(&settings.account, context).map_err(|fault| vec![fault])?;
        Ok(Arc::new(AwsDriver::new(settings, cloud)))
    }
}
