//! The kind `openstack` of the settings.

use std::sync::Arc;

use picket_cloud::Accounts;
use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::cloud::{self, Cloud, CloudSettings};
use crate::driver::OpenstackDriver;
use crate::settings::Settings;

/// Makes drivers from settings. Those of one user in one region share a token. The keys stand in docs/reference/settings.md.
#[derive(Debug, Default)]
pub struct OpenstackKind {
    clouds: Accounts<CloudSettings, Cloud>,
}

impl OpenstackKind {
    fn cloud(&self, settings: &Settings) -> Result<Arc<Cloud>, Vec<String>> {
        // What stands in the file now: a reload finds another password, and who has the old one goes on with it.
        let found = cloud::read(&settings.clouds_file, &settings.cloud, settings.region.as_deref())?;
        self.clouds.get(found, |found| Cloud::new(found.clone()).map_err(|why| vec![why]))
    }
}

impl DriverKind for OpenstackKind {
    fn name(&self) -> &'static str {
        "openstack"
    }

    fn make(
        &self,
        settings: &Map<String, Value>,
        _context: &Context,
    ) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        let settings = Settings::check(settings)?;
        let wrong =
            |why: Vec<String>| why.into_iter().map(|why| SettingFault::new("cloud", why)).collect::<Vec<_>>();
        let cloud = self.cloud(&settings).map_err(wrong)?;
        Ok(Arc::new(OpenstackDriver::new(settings, cloud)))
    }
}
