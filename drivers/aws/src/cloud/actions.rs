//! What is asked and told, in the SDK's words.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::{Client, config, types};

use super::batch::Action;
use super::{SdkResult, said};
use crate::instance::{Instance, OURS, TAG};

/// Questions of many are held together for as long as a poll bears.
const GRID: Duration = Duration::from_millis(500);

/// How an instance's state was changed by a command, as its answer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) before: Option<String>,
    pub(crate) now: Option<String>,
}

impl Change {
    /// Of each instance that an answer names.
    pub(crate) fn of(changes: Option<Vec<types::InstanceStateChange>>) -> HashMap<String, Change> {
        let name = |state: Option<types::InstanceState>| {
            state.and_then(|state| state.name).map(|name| name.as_str().to_owned())
        };
        let of_one = |change: types::InstanceStateChange| {
            Some((
                change.instance_id?,
                Change { before: name(change.previous_state), now: name(change.current_state) },
            ))
        };
        changes.unwrap_or_default().into_iter().filter_map(of_one).collect()
    }
}

/// A volume of EBS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EbsVolume {
    pub(crate) id: String,
    pub(crate) state: Option<String>,
    pub(crate) tags: std::collections::BTreeMap<String, String>,
    pub(crate) attachments: Vec<Attachment>,
}

/// Where a volume is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) instance: Option<String>,
    pub(crate) device: Option<String>,
    pub(crate) state: Option<String>,
    /// Whether the volume is deleted with the instance; `None`: not said.
    pub(crate) goes_with_it: Option<bool>,
}

impl Attachment {
    /// Whether it is of that instance, as far as is told, and not over.
    pub(crate) fn is_at(&self, instance: &str) -> bool {
        self.state.as_deref() != Some("detached") && self.instance.as_deref().is_none_or(|id| id == instance)
    }
}

impl From<types::Volume> for EbsVolume {
    fn from(told: types::Volume) -> Self {
        let tag = |tag: types::Tag| Some((tag.key?, tag.value.unwrap_or_default()));
        let attachment = |attachment: types::VolumeAttachment| Attachment {
            instance: attachment.instance_id,
            device: attachment.device,
            goes_with_it: attachment.delete_on_termination,
            state: attachment.state.map(|state| state.as_str().to_owned()),
        };
        Self {
            id: told.volume_id.unwrap_or_default(),
            state: told.state.map(|state| state.as_str().to_owned()),
            tags: told.tags.unwrap_or_default().into_iter().filter_map(tag).collect(),
            attachments: told.attachments.unwrap_or_default().into_iter().map(attachment).collect(),
        }
    }
}

/// `DescribeInstances`.
pub(crate) struct Describe;

#[async_trait]
impl Action for Describe {
    type Answer = Instance;
    const NAME: &'static str = "DescribeInstances";
    const GRID: Duration = GRID;

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> SdkResult<HashMap<String, Instance>> {
        let request = client.describe_instances().set_instance_ids(Some(ids));
        let told = request.customize().config_override(config).send().await;
        let told = said(told)?;
        let reservations = told.reservations.unwrap_or_default();
        let instances =
            reservations.into_iter().flat_map(|reservation| reservation.instances.unwrap_or_default());
        Ok(instances.map(Instance::from).map(|instance| (instance.id.clone(), instance)).collect())
    }
}

/// `DescribeVolumes`.
pub(crate) struct DescribeVolumes;

#[async_trait]
impl Action for DescribeVolumes {
    type Answer = EbsVolume;
    const NAME: &'static str = "DescribeVolumes";
    const GRID: Duration = GRID;

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> SdkResult<HashMap<String, EbsVolume>> {
        let request = client.describe_volumes().set_volume_ids(Some(ids));
        let told = request.customize().config_override(config).send().await;
        let told = said(told)?;
        let volumes = told.volumes.unwrap_or_default().into_iter().map(EbsVolume::from);
        Ok(volumes.map(|volume| (volume.id.clone(), volume)).collect())
    }
}

/// `DescribeVolumes` by the instances at which they are attached: as EBS has it.
pub(crate) struct DescribeAttached;

#[async_trait]
impl Action for DescribeAttached {
    /// `Err`: not all of it came.
    type Answer = Result<Vec<EbsVolume>, String>;
    const NAME: &'static str = "DescribeVolumes";
    const GRID: Duration = GRID;
    /// The most values of one filter.
    const MOST: usize = 200;

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> SdkResult<HashMap<String, Self::Answer>> {
        let filter =
            types::Filter::builder().name("attachment.instance-id").set_values(Some(ids.clone())).build();
        let told = client.describe_volumes().filters(filter).customize().config_override(config).send().await;
        let told = said(told)?;
        if told.next_token.is_some_and(|token| !token.is_empty()) {
            let cut = Err("DescribeVolumes: the answer has a second page, which nobody asked for".to_owned());
            return Ok(ids.into_iter().map(|id| (id, cut.clone())).collect());
        }
        let volumes: Vec<_> = told.volumes.unwrap_or_default().into_iter().map(EbsVolume::from).collect();
        let at = |id: &String| -> Vec<_> {
            let is_at = |volume: &&EbsVolume| volume.attachments.iter().any(|one| one.is_at(id));
            volumes.iter().filter(is_at).cloned().collect()
        };
        Ok(ids.into_iter().map(|id| (id.clone(), Ok(at(&id)))).collect())
    }
}

/// `StopInstances`, by force and without asking the system of the instance.
pub(crate) struct Stop;

#[async_trait]
impl Action for Stop {
    type Answer = Change;
    const NAME: &'static str = "StopInstances";

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> SdkResult<HashMap<String, Change>> {
        let request = client.stop_instances().set_instance_ids(Some(ids)).force(true).skip_os_shutdown(true);
        let told = request.customize().config_override(config).send().await;
        let told = said(told)?;
        Ok(Change::of(told.stopping_instances))
    }
}

/// `CreateTags`: ours.
pub(crate) struct Tag;

#[async_trait]
impl Action for Tag {
    type Answer = ();
    const NAME: &'static str = "CreateTags";

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> SdkResult<HashMap<String, ()>> {
        let tag = types::Tag::builder().key(TAG).value(OURS).build();
        let request = client.create_tags().set_resources(Some(ids.clone())).tags(tag);
        let told = request.customize().config_override(config).send().await;
        said(told).map(|_| ids.into_iter().map(|id| (id, ())).collect())
    }
}

/// `DeleteTags`: ours, and nobody else's.
pub(crate) struct Untag;

#[async_trait]
impl Action for Untag {
    type Answer = ();
    const NAME: &'static str = "DeleteTags";

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> SdkResult<HashMap<String, ()>> {
        let tag = types::Tag::builder().key(TAG).value(OURS).build();
        let request = client.delete_tags().set_resources(Some(ids.clone())).tags(tag);
        let told = request.customize().config_override(config).send().await;
        said(told).map(|_| ids.into_iter().map(|id| (id, ())).collect())
    }
}
