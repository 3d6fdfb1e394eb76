//! The kind `openstack` of the settings.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use picket_driver::{Context, DriverKind, PowerDriver, SettingFault};
use serde_json::{Map, Value};

use crate::cloud::{self, Cloud};
use crate::driver::OpenstackDriver;
use crate::settings::Settings;

/// What says who asks whom: a file, a cloud's name in it, and a region.
type Asked = (PathBuf, String, Option<String>);

/// Makes drivers from settings. Those of one user in one region share a token. The keys stand in docs/reference/settings.md.
#[derive(Debug, Default)]
pub struct OpenstackKind {
    clouds: Mutex<HashMap<Asked, Weak<Cloud>>>,
}

impl OpenstackKind {
    fn cloud(&self, settings: &Settings) -> Result<Arc<Cloud>, Vec<String>> {
        let asked = (settings.clouds_file.clone(), settings.cloud.clone(), settings.region.clone());
        let mut clouds = self.clouds.lock().unwrap_or_else(PoisonError::into_inner);
        clouds.retain(|_, cloud| cloud.strong_count() > 0);
        // What stands in the file now: a reload finds another password, and who has the old one goes on with it.
        let made = cloud::read(&asked.0, &asked.1, asked.2.as_deref())?;
        if let Some(cloud) = clouds.get(&asked).and_then(Weak::upgrade).filter(|cloud| cloud.is_of(&made)) {
            return Ok(cloud);
        }
        let cloud = Arc::new(Cloud::new(made).map_err(|why| vec![why])?);
        clouds.insert(asked, Arc::downgrade(&cloud));
        Ok(cloud)
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
