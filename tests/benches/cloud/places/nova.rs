//! A real Nova, with its fake hypervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use async_trait::async_trait;
use picket_tests::peers::{OpenStack, Who};
use serde_json::json;
use tempfile::TempDir;

use crate::Wrong;
use crate::beside::run;
use crate::parts::Counts;

/// Two servers a second come up: so many are asked for at once.
const AT_A_TIME: usize = 50;

pub struct Place {
    cloud: OpenStack,
    home: TempDir,
}

impl Place {
    pub async fn start() -> Result<Self, Wrong> {
        use std::os::unix::fs::PermissionsExt;
        let (cloud, home) = (OpenStack::for_many().await?, tempfile::tempdir()?);
        let place = Self { cloud, home };
        std::fs::write(place.clouds(), place.cloud.clouds_yaml(&Who::Tenant))?;
        std::fs::set_permissions(place.clouds(), std::fs::Permissions::from_mode(0o600))?;
        Ok(place)
    }

    fn clouds(&self) -> PathBuf {
        self.home.path().join("clouds.yaml")
    }
}

/// What a request asks, without which server.
fn kind(method: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let is_id =
        |part: &str| part.len() >= 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_request = |part: &str| part.starts_with("req-");
    let parts = path.split('/').filter(|part| !part.is_empty() && !matches!(*part, "v2.1" | "v3"));
    let parts: Vec<&str> =
        parts.map(|part| if is_id(part) || is_request(part) { "ID" } else { part }).collect();
    format!("{method} {}", parts.join("/"))
}

#[async_trait]
impl super::Place for Place {
    fn about(&self) -> &'static str {
        "a real Nova as a tenant, its hypervisor faked by Nova; it has no limits on requests, and answers some twenty a second: 64 are \
         asked for at a time, and what is fenced is looked at every ten minutes"
    }

    /// A thousand that are asked for in one moment would wait longer for such a Nova than a fence may take.
    fn at_once(&self) -> usize {
        64
    }

    /// A look at each of a thousand every ten seconds is five times what it answers.
    fn rules(&self) -> &'static str {
        "[rules]\nwatch = \"10m\"\n"
    }

    fn agent(&self) -> &'static str {
        "fence_openstack"
    }

    async fn instances(&self, count: usize) -> Result<Vec<String>, Wrong> {
        let mut made = Vec::with_capacity(count);
        while made.len() < count {
            let some = json!({ "count": (count - made.len()).min(AT_A_TIME) });
            let some = self.cloud.ask(&Who::Owner, "create_servers", some).await?;
            made.extend(serde_json::from_value::<Vec<String>>(some)?);
        }
        Ok(made)
    }

    fn device(&self, instance: &str) -> String {
        let clouds = self.clouds();
        format!("driver = \"openstack\"\nserver = {instance:?}\ncloud = \"cloud\"\nclouds_file = {clouds:?}")
    }

    async fn fence_by_agent(&self, instance: &str) -> Result<(), Wrong> {
        let input = format!(
            "action=off\nplug={instance}\nusername=tenant\npassword=tenant-secret\nproject_name=tenant\nauth_url={}\n\
             user_domain_name=Default\nproject_domain_name=Default\n",
            self.cloud.auth_url()
        );
        run((OpenStack::python()?, self.agent()), input, Vec::new()).await
    }

    async fn fill_limits(&self) -> Result<(), Wrong> {
        Ok(())
    }

    async fn counts(&self) -> Result<Counts, Wrong> {
        // Its services ask one another, too, and the tests' own client asks.
        let of_fences = |agent: &str| {
            agent.starts_with("picket/") || agent.starts_with("fence_") || agent.contains("novaclient")
        };
        let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for asked in self.cloud.requests()?.iter().filter(|asked| of_fences(&asked.agent)) {
            counts.entry(kind(&asked.method, &asked.path)).or_default()[0] += 1;
        }
        Ok(Counts(counts))
    }

    async fn still_on(&self, instances: &[String]) -> Result<Vec<String>, Wrong> {
        let running: BTreeSet<String> = self.cloud.running()?;
        Ok(instances.iter().filter(|one| running.contains(*one)).cloned().collect())
    }
}
