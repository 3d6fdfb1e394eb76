//! An instance's volumes: what EC2 has attached, and whether EBS says that one is free.
//!
//! # Invariants
//!
//! - A detach names the volume, the instance and the device, so that it takes a volume from nobody else.
//! - A volume is free once neither the instance's mapping nor the volume's attachments have it there. Other
//!   instances keep it. Shown by `a_volume_is_free_once_neither_has_it_at_the_instance`.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::{Client, config};
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, ErrorKind, Standing, Volume, VolumeAt, Volumes};

use tokio::time::Instant;

use crate::cloud::{Attachment, BucketAccess, EbsVolume, said};
use crate::driver::{AwsDriver, SHOWN_LATE};
use crate::instance::{self, Instance, Mapping};

/// The tag that is a volume's name in the console.
const NAME: &str = "Name";
const DETACH: &str = "DetachVolume";
/// Whoever does not take its turn within this waits for another one.
const HELD: Duration = Duration::from_secs(30);

impl AwsDriver {
    async fn ebs(&self, volume: &str, call: &Call) -> Result<Option<EbsVolume>, DriverError> {
        let told = self.cloud.volume(volume, call).await?;
        if let Some((_, stamps)) = &told {
            self.hear(*stamps);
        }
        Ok(told.map(|(volume, _)| volume))
    }

    async fn volume(
        &self,
        at: VolumeAt,
        told: Option<EbsVolume>,
        call: &Call,
    ) -> Result<Volume, DriverError> {
        let told = match told {
            Some(told) => Some(told),
            None => self.ebs(&at.id, call).await?,
        };
        // Its name and its tags decide whether it is to go at all.
        let Some(EbsVolume { mut tags, .. }) = told else {
            let why = format!(
                "EC2 has {} at {}, and EBS knows no such volume: by its name or a tag it may be to stay",
                at.id, at.device
            );
            return Err(unclear(why));
        };
        let name = tags.get(NAME).cloned().unwrap_or_default();
        tags.retain(|key, _| key != NAME);
        Ok(Volume { at, name, tags, stays: None })
    }

    /// How it stands, with what we told EC2 before: EC2 says how a detach ended nowhere else.
    fn after_ours(&self, volume: &VolumeAt, words: String, asked_at: BootTime) -> String {
        let detached = self.detached.lock();
        match detached.get(&volume.id).map(|taken| asked_at.since(*taken)).filter(|ago| *ago > SHOWN_LATE) {
            Some(ago) => format!("{words}, though EC2 took our detach of it {}s ago", ago.as_secs()),
            None => words,
        }
    }

    /// Whether it was its turn. It serves once.
    fn took_its_turn(&self) -> bool {
        let (mut turn, now) = (self.turn.lock(), Instant::now());
        turn.take_if(|due| *due <= now).is_some_and(|due| now <= due + HELD)
    }

    /// What EBS has attached at this instance.
    pub(crate) async fn attached_by_ebs(&self, call: &Call) -> Result<Vec<EbsVolume>, DriverError> {
        let (told, stamps) = self.cloud.attached(&self.settings.instance, call).await?;
        self.hear(stamps);
        Ok(told)
    }
}

fn unclear(why: String) -> DriverError {
    DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why)
}

/// Every volume that the instance's mapping or EBS has there. `Err`: one of them is not told in full, in words.
pub(crate) fn everything(instance: &Instance, ebs: &[EbsVolume]) -> Result<Vec<Mapping>, String> {
    let mut all = instance.volumes.clone();
    for volume in ebs {
        let mut there = volume.attachments.iter().filter(|one| one.is_at(&instance.id));
        let is_known = all.iter().any(|mapping| mapping.volume == volume.id);
        if let Some(attachment) = there.next().filter(|_| !is_known) {
            all.push(Mapping {
                device: attachment.device.clone().unwrap_or_default(),
                volume: volume.id.clone(),
                status: attachment.state.clone(),
                goes_with_it: attachment.goes_with_it,
            });
        }
    }
    if instance.is_vague || all.iter().any(Mapping::is_vague) {
        return Err(
            "EC2 has a volume attached to it, and does not say which, or where: it is asked again".to_owned()
        );
    }
    Ok(all)
}

#[async_trait]
impl Volumes for AwsDriver {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(self.cloud.life)
    }

    fn forces(&self) -> bool {
        true
    }

    fn turn(&self) -> Option<Duration> {
        let mut turn = self.turn.lock();
        let _missed = turn.take_if(|due| *due + HELD < Instant::now());
        let due = *turn.get_or_insert_with(|| self.cloud.promised(DETACH));
        // Asked for after the promise: one that is there at once is of a moment that is past.
        let left = due.saturating_duration_since(Instant::now());
        self.cloud.pause(DETACH).into_iter().chain((!left.is_zero()).then_some(left)).max()
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        let instance = self.instance(call).await?;
        // What is gone for good has nothing.
        if instance.power() == instance::PowerStatus::Terminated {
            return Ok(Vec::new());
        }
        let mut ebs = self.attached_by_ebs(call).await?;
        let all = everything(&instance, &ebs).map_err(unclear)?;
        let root = match all.is_empty() {
            true => None,
            false => instance.root(&all).map_err(unclear)?.map(str::to_owned),
        };
        let mut volumes = Vec::new();
        for mapping in all {
            let told = ebs.iter().position(|one| one.id == mapping.volume).map(|at| ebs.swap_remove(at));
            let at = VolumeAt { id: mapping.volume, device: mapping.device };
            let stays = root.as_deref() == Some(at.device.as_str());
            // The root stays, whatever it is called.
            volumes.push(match stays {
                true => Volume {
                    at,
                    name: String::new(),
                    tags: BTreeMap::new(),
                    stays: Some("it is the root volume".to_owned()),
                },
                false => self.volume(at, told, call).await?,
            });
        }
        Ok(volumes)
    }

    async fn detach(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        forced: bool,
        call: &Call,
    ) -> Result<(), DriverError> {
        let call = &call.clone().under(permit.check());
        let signed = self.signed(order.life(), permit.checked_at(), call)?;
        let (instance, at) = (self.settings.instance.clone(), volume.clone());
        let order = Some((signed, Some(permit.not_after()), &self.unclear));
        let sends = async move |client: Client, config: config::Builder| {
            let request = client.detach_volume().volume_id(at.id).instance_id(instance).device(at.device);
            let request = if forced { request.force(true) } else { request };
            let told = request.customize().config_override(config).send().await;
            said(told).map(drop)
        };
        let turn = if self.took_its_turn() { BucketAccess::Promised } else { BucketAccess::Now };
        let failure = match self.cloud.alone(DETACH, turn, order, call, sends).await? {
            Ok(_) => {
                let mut detached = self.detached.lock();
                detached.insert(volume.id.clone(), call.now());
                return Ok(());
            }
            Err(failure) => failure,
        };
        // It is not attached there: somebody else detached it, or we did before.
        let may_be_gone = ["InvalidAttachment.NotFound", "IncorrectState"].contains(&failure.code.as_str());
        let excuses = |standing: Standing| match standing {
            Standing::Free(_) => true,
            // By force it was to be gone.
            Standing::Going(_) => !forced,
            Standing::Attached(_) => false,
        };
        if may_be_gone && self.standing(volume, call).await.is_ok_and(excuses) {
            return Ok(());
        }
        Err(failure.into_error())
    }

    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError> {
        let (seen, ebs) = tokio::try_join!(self.look(call), self.ebs(&volume.id, call))?;
        match seen.found {
            Ok(instance) => Ok(match standing(&instance, ebs.as_ref(), &volume.id) {
                Standing::Attached(words) => {
                    Standing::Attached(self.after_ours(volume, words, seen.asked_at))
                }
                standing => standing,
            }),
            // EC2 forgets what was terminated: then EBS alone has a word.
            Err(_) if self.has_ended() => {
                let none = Instance { id: self.settings.instance.clone(), ..Instance::default() };
                Ok(standing(&none, ebs.as_ref(), &volume.id))
            }
            Err(why) => Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, why)),
        }
    }
}

/// What both say of a volume: it is free once neither has it at that instance.
fn standing(instance: &Instance, ebs: Option<&EbsVolume>, volume: &str) -> Standing {
    let terminated = instance.power() == instance::PowerStatus::Terminated;
    let mapped = instance.volumes.iter().find(|mapping| !terminated && mapping.volume == volume);
    let Some(ebs) = ebs else {
        return match mapped {
            Some(_) => Standing::Going("EBS has no such volume, and the instance still has it".to_owned()),
            None => Standing::Free("there is no such volume".to_owned()),
        };
    };
    // An attachment that does not say whose it is may be this one's.
    let ours = ebs.attachments.iter().find(|one| one.is_at(&instance.id));
    let is_others =
        |one: &&Attachment| one.instance.as_deref().is_some_and(|id| id != instance.id && one.is_at(id));
    let others = ebs.attachments.iter().filter(is_others).count();
    let state = ebs.state.as_deref().unwrap_or("its state is not told");
    let words =
        ours.and_then(|one| one.state.as_deref()).or(mapped.and_then(|mapping| mapping.status.as_deref()));
    match (ours.is_some() || mapped.is_some(), state) {
        // EBS lets a volume go before the instance does. After a second detach nobody would see the end of the first one.
        _ if mapped.is_some() && ours.is_none() => {
            Standing::Going("the volume is without this instance, and the instance still has it".to_owned())
        }
        (true, _) if words == Some("detaching") => Standing::Going("detaching".to_owned()),
        (true, _) if words == Some("busy") => {
            Standing::Going("busy: the instance did not let it go yet".to_owned())
        }
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

    const US: &str = "i-01234567";

    fn ebs(state: &str, attachments: &[(&str, &str)]) -> EbsVolume {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let attachment = |(instance, state): &(&str, &str)| Attachment {
            instance: text(instance),
            state: text(state),
            ..Attachment::default()
        };
        EbsVolume {
            state: text(state),
            attachments: attachments.iter().map(attachment).collect(),
            ..EbsVolume::default()
        }
    }

    /// The last look after the releases sees also what one of both does not show yet.
    #[test]
    fn what_either_of_them_has_there_is_seen_and_what_is_told_by_halves_is_an_error() {
        let mapping = Mapping {
            device: "/dev/sdf".to_owned(),
            volume: "vol-1".to_owned(),
            status: None,
            goes_with_it: Some(false),
        };
        let instance = Instance { id: US.to_owned(), volumes: vec![mapping], ..Instance::default() };
        let at = |id: &str, instance: &str, device: Option<&str>, state: &str| EbsVolume {
            id: id.to_owned(),
            attachments: vec![Attachment {
                instance: Some(instance.to_owned()),
                device: device.map(str::to_owned),
                state: Some(state.to_owned()),
                goes_with_it: None,
            }],
            ..EbsVolume::default()
        };
        for (told, wanted) in [
            (vec![], Some(vec!["vol-1"])),
            (vec![at("vol-1", US, Some("/dev/sdf"), "attached")], Some(vec!["vol-1"])),
            (vec![at("vol-2", US, Some("/dev/sdg"), "attaching")], Some(vec!["vol-1", "vol-2"])),
            (vec![at("vol-2", US, Some("/dev/sdg"), "detached")], Some(vec!["vol-1"])),
            (vec![at("vol-2", "i-89abcdef", Some("/dev/sdg"), "attached")], Some(vec!["vol-1"])),
            (vec![at("vol-2", US, None, "attached")], None),
            (vec![at("", US, Some("/dev/sdg"), "attached")], None),
        ] {
            let all = everything(&instance, &told);
            let ids =
                all.as_ref().ok().map(|all| all.iter().map(|one| one.volume.as_str()).collect::<Vec<_>>());
            assert_eq!(ids, wanted, "{told:?}: {all:?}");
        }
        let vague = Instance { is_vague: true, ..instance };
        assert!(everything(&vague, &[]).is_err());
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
            (Some("attached"), Some(ebs("available", &[])), "going"),
            (Some("attached"), Some(ebs("in-use", &[(other, "attached")])), "going"),
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
