//! The kind `gcp` of the settings.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_cloud::Accounts;
use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::cloud::{Account, Cloud, Rates};
use crate::command_history::InstanceHistory;
use crate::driver::GcpDriver;
use crate::settings::Settings;

/// Whose requests Google counts together: the project's, by the endpoint at which it is asked.
type Counted = (String, Option<String>);

/// Makes drivers from settings. Those of one project and one account share tokens, requests and limits. The keys stand in docs/reference/settings.md.
#[derive(Debug, Default)]
pub struct GcpKind {
    clouds: Accounts<Account, Cloud>,
    /// What each project's limits leave, whoever asks.
    rates: Mutex<HashMap<Counted, Arc<Rates>>>,
    /// What was told each instance, by its number.
    kept: Mutex<HashMap<String, InstanceHistory>>,
}

impl GcpKind {
    fn rates(&self, account: &Account) -> Arc<Rates> {
        let project = (account.project.clone(), account.endpoint.clone());
        let mut rates = self.rates.lock();
        rates.entry(project).or_default().clone()
    }

    fn kept(&self, id: &str, context: &Context) -> InstanceHistory {
        let mut kept = self.kept.lock();
        let new = || {
            let mut salt = [0; 16];
            (context.random)(&mut salt);
            InstanceHistory::new(salt)
        };
        kept.entry(id.to_owned()).or_insert_with(new).clone()
    }
}

impl DriverKind for GcpKind {
    fn name(&self) -> &'static str {
        "gcp"
    }

    fn make(
        &self,
        settings: &Map<String, Value>,
        context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        let settings = Settings::check(settings)?;
        let make = |account: &Account| Cloud::new(account.clone(), self.rates(account));
        let cloud = self.clouds.get(settings.account.clone(), make).map_err(|fault| vec![fault])?;
        let kept = self.kept(&settings.id, context);
        Ok(Arc::new(GcpDriver::new(settings, cloud, kept)))
    }
}
