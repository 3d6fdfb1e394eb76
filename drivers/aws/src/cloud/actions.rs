//! What is asked and told, in the SDK's words.

use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_ec2::{Client, config, types};

use super::batch::Action;
use super::{Told, said};
use crate::instance::{Instance, OURS, TAG};

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
    pub(crate) state: Option<String>,
    pub(crate) tags: std::collections::BTreeMap<String, String>,
    pub(crate) attachments: Vec<Attachment>,
}

/// Where a volume is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) instance: Option<String>,
    pub(crate) state: Option<String>,
}

impl From<types::Volume> for EbsVolume {
    fn from(told: types::Volume) -> Self {
        let tag = |tag: types::Tag| Some((tag.key?, tag.value.unwrap_or_default()));
        let attachment = |attachment: types::VolumeAttachment| Attachment {
            instance: attachment.instance_id,
            state: attachment.state.map(|state| state.as_str().to_owned()),
        };
        Self {
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
    type Said = Instance;
    const NAME: &'static str = "DescribeInstances";

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> Told<HashMap<String, Instance>> {
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
    type Said = EbsVolume;
    const NAME: &'static str = "DescribeVolumes";

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> Told<HashMap<String, EbsVolume>> {
        let request = client.describe_volumes().set_volume_ids(Some(ids));
        let told = request.customize().config_override(config).send().await;
        let told = said(told)?;
        let of_one = |mut volume: types::Volume| Some((volume.volume_id.take()?, EbsVolume::from(volume)));
        Ok(told.volumes.unwrap_or_default().into_iter().filter_map(of_one).collect())
    }
}

/// `StopInstances`, by force and without asking the system of the instance.
pub(crate) struct Stop;

#[async_trait]
impl Action for Stop {
    type Said = Change;
    const NAME: &'static str = "StopInstances";

    async fn send(
        client: &Client,
        ids: Vec<String>,
        config: config::Builder,
    ) -> Told<HashMap<String, Change>> {
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
    type Said = ();
    const NAME: &'static str = "CreateTags";

    async fn send(client: &Client, ids: Vec<String>, config: config::Builder) -> Told<HashMap<String, ()>> {
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
    type Said = ();
    const NAME: &'static str = "DeleteTags";

    async fn send(client: &Client, ids: Vec<String>, config: config::Builder) -> Told<HashMap<String, ()>> {
        let tag = types::Tag::builder().key(TAG).value(OURS).build();
        let request = client.delete_tags().set_resources(Some(ids.clone())).tags(tag);
        let told = request.customize().config_override(config).send().await;
        said(told).map(|_| ids.into_iter().map(|id| (id, ())).collect())
    }
}
