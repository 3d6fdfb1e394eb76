//! An instance's volumes: what EC2 has attached, and whether EBS says that one is free.
//!
//! **Invariant.** A detach names the volume, the instance and the device, so that it takes a volume from nobody else. **Invariant.** One
//! is free once neither the instance's mapping nor the volume's attachments have it there; whoever else has it keeps it.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_driver::{Call, DriverError, Effect, ErrorKind, Standing, Volume, VolumeAt, Volumes};

use crate::cloud::{EbsVolume, LIFE, said};
use crate::driver::AwsDriver;
use crate::instance::{self, Instance, Mapping};

/// The tag that is a volume's name in the console.
const NAME: &str = "Name";

impl AwsDriver {
    async fn ebs(&self, volume: &str, call: &Call) -> Result<Option<EbsVolume>, DriverError> {
        let told = self.cloud.volume(volume, call).await?;
        if let Some((_, stamps)) = &told {
            self.hear(*stamps);
        }
        Ok(told.map(|(volume, _)| volume))
    }

    async fn volume(&self, mapping: Mapping, root: Option<&str>, call: &Call) -> Result<Volume, DriverError> {
        let mut tags = self.ebs(&mapping.volume, call).await?.unwrap_or_default().tags;
        let stays = (root == Some(mapping.device.as_str())).then(|| "it is the root volume".to_owned());
        let name = tags.get(NAME).cloned().unwrap_or_default();
        tags.retain(|key, _| key != NAME);
        Ok(Volume { at: VolumeAt { id: mapping.volume, device: mapping.device }, name, tags, stays })
    }

    /// The instance, or what is known of one that is gone for good: that it has nothing.
    async fn holder(&self, call: &Call) -> Result<Instance, DriverError> {
        let instance = self.instance(call).await?;
        let gone = instance.power() == instance::Said::Terminated;
        Ok(if gone { Instance { volumes: Vec::new(), ..instance } } else { instance })
    }
}

#[async_trait]
impl Volumes for AwsDriver {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(LIFE)
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        let Instance { volumes, root_device, .. } = self.holder(call).await?;
        try_join_all(volumes.into_iter().map(|mapping| self.volume(mapping, root_device.as_deref(), call)))
            .await
    }

    async fn detach(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        forced: bool,
        call: &Call,
    ) -> Result<(), DriverError> {
        let signed = self.signed(order.life(), permit.checked_at(), call)?;
        let (instance, at) = (self.settings.instance.clone(), volume.clone());
        let order = Some((signed, Some(permit.not_after()), &self.unclear));
        let told = self
            .cloud
            .alone("DetachVolume", order, call, async move |client, config| {
                let request = client.detach_volume().volume_id(at.id).instance_id(instance).device(at.device);
                let request = if forced { request.force(true) } else { request };
                let told = request.customize().config_override(config).send().await;
                said(told).map(drop)
            })
            .await;
        let failure = match told? {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        // It is not attached there: somebody else detached it, or we did before.
        let may_be_gone = ["InvalidAttachment.NotFound", "IncorrectState"].contains(&failure.code.as_str());
        if may_be_gone
            && matches!(self.standing(volume, call).await, Ok(Standing::Free(_) | Standing::Going(_)))
        {
            return Ok(());
        }
        Err(failure.into_error())
    }

    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError> {
        let (seen, ebs) = tokio::try_join!(self.look(call), self.ebs(&volume.id, call))?;
        match seen.found {
            Ok(instance) => Ok(standing(&instance, ebs.as_ref(), &volume.id)),
            Err(why) => Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why)),
        }
    }
}

/// What both say of a volume: it is free once neither has it at that instance.
fn standing(instance: &Instance, ebs: Option<&EbsVolume>, volume: &str) -> Standing {
    let terminated = instance.power() == instance::Said::Terminated;
    let mapped = instance.volumes.iter().find(|mapping| !terminated && mapping.volume == volume);
    let Some(ebs) = ebs else {
        return match mapped {
            Some(_) => Standing::Going("EBS has no such volume, and the instance still has it".to_owned()),
            None => Standing::Free("there is no such volume".to_owned()),
        };
    };
    let is_there = |state: &Option<String>| state.as_deref() != Some("detached");
    let mut there = ebs.attachments.iter().filter(|attachment| is_there(&attachment.state));
    // An attachment that does not say whose it is may be this one's.
    let ours = there.clone().find(|one| one.instance.as_deref().is_none_or(|id| id == instance.id));
    let others =
        there.by_ref().filter(|one| one.instance.as_deref().is_some_and(|id| id != instance.id)).count();
    let state = ebs.state.as_deref().unwrap_or("its state is not told");
    let words =
        ours.and_then(|one| one.state.as_deref()).or(mapped.and_then(|mapping| mapping.status.as_deref()));
    match (ours.is_some() || mapped.is_some(), state) {
        (true, _) if words == Some("detaching") => Standing::Going("detaching".to_owned()),
        // The instance did not let it go yet.
        (true, _) if words == Some("busy") => Standing::Going("busy".to_owned()),
        (true, _) => Standing::Attached(words.unwrap_or(state).to_owned()),
        (false, "available") => Standing::Free("available".to_owned()),
        (false, "in-use") if others > 0 => Standing::Free(format!("in use by {others} other")),
        (false, "deleting" | "deleted") => Standing::Free(state.to_owned()),
        (false, _) => Standing::Going(format!("not attached here any more, and {state}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::Attachment;

    const US: &str = "i-01234567";

    fn ebs(state: &str, attachments: &[(&str, &str)]) -> EbsVolume {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let attachment =
            |(instance, state): &(&str, &str)| Attachment { instance: text(instance), state: text(state) };
        EbsVolume {
            state: text(state),
            attachments: attachments.iter().map(attachment).collect(),
            ..EbsVolume::default()
        }
    }

    #[test]
    fn a_volume_is_free_once_neither_has_it_at_the_instance() {
        let mapping = |status: &str| Mapping {
            device: "/dev/sdf".to_owned(),
            volume: "vol-1".to_owned(),
            status: Some(status.to_owned()),
            goes_with_it: None,
        };
        let other = "i-89abcdef";
        for (mapped, told, wanted) in [
            (Some("attached"), Some(ebs("in-use", &[(US, "attached")])), "attached"),
            (Some("attached"), Some(ebs("in-use", &[(US, "detaching")])), "going"),
            (None, Some(ebs("in-use", &[(US, "busy")])), "going"),
            (None, Some(ebs("in-use", &[(US, "attached")])), "attached"),
            (None, Some(ebs("in-use", &[("", "attached")])), "attached"),
            (Some("attached"), Some(ebs("available", &[])), "attached"),
            (Some("detaching"), Some(ebs("available", &[])), "going"),
            (None, Some(ebs("available", &[])), "free"),
            (None, Some(ebs("available", &[(US, "detached")])), "free"),
            (None, Some(ebs("in-use", &[(other, "attached")])), "free"),
            (None, Some(ebs("in-use", &[(other, "attached"), (US, "attached")])), "attached"),
            (None, Some(ebs("in-use", &[])), "going"),
            (None, Some(ebs("error", &[])), "going"),
            (None, Some(ebs("", &[])), "going"),
            (None, Some(ebs("a word of tomorrow", &[])), "going"),
            (None, Some(ebs("deleted", &[])), "free"),
            (None, None, "free"),
            (Some("attached"), None, "going"),
        ] {
            let volumes = mapped.map(mapping).into_iter().collect();
            let instance = Instance { id: US.to_owned(), volumes, ..Instance::default() };
            let told = standing(&instance, told.as_ref(), "vol-1");
            let word = match told {
                Standing::Attached(_) => "attached",
                Standing::Going(_) => "going",
                Standing::Free(_) => "free",
            };
            assert_eq!(word, wanted, "{mapped:?}: {told:?}");
        }
    }
}
