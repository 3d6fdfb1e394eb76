//! Compute Engine, by Google's own discovery document.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_tests::peers::{ComputeEngine, GceInstance, GceMake, GceTreatment};

use crate::Wrong;
use crate::parts::Counts;

pub struct Place {
    gce: ComputeEngine,
    key: PathBuf,
    /// By their numbers.
    made: Mutex<BTreeMap<String, GceInstance>>,
}

impl Place {
    pub async fn start() -> Result<Self, Wrong> {
        use std::os::unix::fs::PermissionsExt;
        let gce = ComputeEngine::start().await?;
        let key = gce.service_account_file(&gce.user(&["*"]).await?)?;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { gce, key, made: Mutex::default() })
    }

    fn instance(&self, id: &str) -> Result<GceInstance, Wrong> {
        let made = self.made.lock();
        Ok(made.get(id).cloned().ok_or("it was not made here")?)
    }
}

#[async_trait]
impl super::Place for Place {
    fn about(&self) -> &'static str {
        "by Google's discovery document; as many requests a minute as Google documents for a project and region"
    }

    fn agent(&self) -> &'static str {
        "fence_gce"
    }

    async fn instances(&self, count: usize) -> Result<Vec<String>, Wrong> {
        let made = self.gce.instances(count, &GceMake::default()).await?;
        // Of a guest that obeys, so that the agent, which asks it, comes to an end too.
        let obeys = GceTreatment {
            stopping: Some(1.0),
            graceful: Some(1.0),
            acpi: Some(0.0),
            ..GceTreatment::default()
        };
        for one in &made {
            self.gce.treat(&one.id, &obeys).await?;
        }
        let ids = made.iter().map(|one| one.id.clone()).collect();
        let mut known = self.made.lock();
        known.extend(made.into_iter().map(|one| (one.id.clone(), one)));
        Ok(ids)
    }

    fn device(&self, instance: &str) -> String {
        let zone = self.instance(instance).map(|one| one.zone).unwrap_or_default();
        format!(
            "driver = \"gcp\"\ninstance = {instance:?}\nproject = {:?}\nzone = {zone:?}\nendpoint = {:?}\n\
             credentials_file = {:?}",
            self.gce.project(),
            self.gce.endpoint(),
            self.key
        )
    }

    async fn fence_by_agent(&self, instance: &str) -> Result<(), Wrong> {
        let (code, said) = self.gce.fence_gce(&self.key, "off", &self.instance(instance)?).await?;
        if code == 0 { Ok(()) } else { Err(said.into()) }
    }

    async fn fill_limits(&self) -> Result<(), Wrong> {
        Ok(self.gce.limits().await?)
    }

    async fn counts(&self) -> Result<Counts, Wrong> {
        let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for asked in self.gce.journal().await? {
            let count = counts.entry(asked.method).or_default();
            count[0] += 1;
            count[1] += u64::from(matches!(asked.status, 403 | 429));
        }
        Ok(Counts(counts))
    }

    async fn still_on(&self, instances: &[String]) -> Result<Vec<String>, Wrong> {
        let mut on = Vec::new();
        for instance in instances {
            if self.gce.state(instance).await? != "TERMINATED" {
                on.push(instance.clone());
            }
        }
        Ok(on)
    }
}
