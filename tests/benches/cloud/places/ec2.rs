//! EC2, as moto has it.

use std::path::PathBuf;

use async_trait::async_trait;
use picket_tests::peers::{AccessKey, Ec2, Treatment};

use crate::Wrong;
use crate::beside::run;
use crate::parts::Counts;

/// Of a guest that obeys, so that the agent, which asks it, comes to an end too.
const OBEYS: Treatment =
    Treatment { stopping: 1.0, alive: true, stops: None, word: None, pending: 0.0, detaching: 0.0 };

pub struct Place {
    ec2: Ec2,
    key: AccessKey,
    files: [PathBuf; 2],
}

impl Place {
    pub async fn start() -> Result<Self, Wrong> {
        let ec2 = Ec2::start().await?;
        // The agent lists instances by their state, too.
        let key = ec2.picket().await?;
        let files = ec2.files("bench", &key)?;
        Ok(Self { ec2, key, files })
    }
}

#[async_trait]
impl super::Place for Place {
    fn about(&self) -> &'static str {
        "moto; buckets as AWS documents them (Describe* 100 and 20 a second, commands 50 and 5, stopped instances 1,000 and 20)"
    }

    fn agent(&self) -> &'static str {
        "fence_aws"
    }

    async fn instances(&self, count: usize) -> Result<Vec<String>, Wrong> {
        let made = self.ec2.instances(count, &[]).await?;
        self.ec2.treat_all(&made, &OBEYS).await?;
        Ok(made)
    }

    fn device(&self, instance: &str) -> String {
        let [config, credentials] = &self.files;
        format!(
            "driver = \"aws\"\ninstance = \"aws:///eu-central-1a/{instance}\"\nendpoint = {:?}\nconfig_file = {config:?}\n\
             credentials_file = {credentials:?}\nprofile = \"default\"",
            self.ec2.endpoint()
        )
    }

    async fn fence_by_agent(&self, instance: &str) -> Result<(), Wrong> {
        let AccessKey { id, secret } = &self.key;
        let input = format!(
            "action=off\nplug={instance}\nregion=eu-central-1\naccess_key={id}\nsecret_key={secret}\n"
        );
        let endpoint = self.ec2.endpoint();
        let host = endpoint.trim_start_matches("http://").split(':').next().unwrap_or_default().to_owned();
        // It asks the metadata service who it is itself, by a proxy here.
        let variables =
            vec![("http_proxy", endpoint.clone()), ("no_proxy", host), ("AWS_ENDPOINT_URL", endpoint)];
        run((Ec2::python()?, self.agent()), input, variables).await
    }

    async fn fill_limits(&self) -> Result<(), Wrong> {
        Ok(self.ec2.limits(true).await?)
    }

    async fn counts(&self) -> Result<Counts, Wrong> {
        Ok(Counts(self.ec2.counts().await?))
    }

    async fn still_on(&self, instances: &[String]) -> Result<Vec<String>, Wrong> {
        let mut on = Vec::new();
        for instance in instances {
            if self.ec2.state(instance).await? != "stopped" {
                on.push(instance.clone());
            }
        }
        Ok(on)
    }
}
