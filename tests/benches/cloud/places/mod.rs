//! The clouds, each as its peer has it.

mod ec2;
mod gce;
mod nova;

use async_trait::async_trait;

use crate::Wrong;
use crate::options::Cloud;
use crate::parts::Counts;

/// One cloud with its limits.
#[async_trait]
pub trait Place {
    /// What stands for it here, and by which limits.
    fn about(&self) -> &'static str;

    /// What fences its instances elsewhere.
    fn agent(&self) -> &'static str;

    /// So many new instances that run, and stop within a second.
    async fn instances(&self, count: usize) -> Result<Vec<String>, Wrong>;

    /// How many are fenced at a time, of all that are asked for.
    fn at_once(&self) -> usize {
        100_000
    }

    /// More of the settings, where its size wants others than what the gateway comes with.
    fn rules(&self) -> &'static str {
        ""
    }

    /// The lines of a device.
    fn device(&self, instance: &str) -> String;

    /// The agent fences one.
    async fn fence_by_agent(&self, instance: &str) -> Result<(), Wrong>;

    /// From now on limits count, from full buckets on.
    async fn fill_limits(&self) -> Result<(), Wrong>;

    /// What was asked until now.
    async fn counts(&self) -> Result<Counts, Wrong>;

    /// Which of them run in truth.
    async fn still_on(&self, instances: &[String]) -> Result<Vec<String>, Wrong>;
}

/// Starts it.
pub async fn start(cloud: Cloud) -> Result<Box<dyn Place>, Wrong> {
    Ok(match cloud {
        Cloud::Aws => Box::new(ec2::Place::start().await?),
        Cloud::Gcp => Box::new(gce::Place::start().await?),
        Cloud::Openstack => Box::new(nova::Place::start().await?),
    })
}
