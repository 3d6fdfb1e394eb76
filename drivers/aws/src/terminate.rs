//! Terminating an instance, where its settings say so: what cannot be stopped (instance store, one-time
//! spot).
//!
//! # Invariants
//!
//! - An instance is terminated only once EC2 was read to keep every volume that the settings do not give
//!   away: those that the instance shows, its root among them, and those that EBS has there. Shown by
//!   `an_instance_is_terminated_only_once_its_volumes_are_read_to_be_kept`.

use picket_cloud::EPOCH;
use picket_driver::{Accepted, Call, DriverError, Effect, ErrorKind};

use aws_sdk_ec2::types::{EbsInstanceBlockDeviceSpecification, InstanceBlockDeviceMappingSpecification};

use crate::cloud::{BucketAccess, Change, EbsVolume, said};
use crate::driver::AwsDriver;
use crate::instance::{self, Instance, Mapping};
use crate::power::{accepted, unnamed};
use crate::volumes;

/// The devices whose volumes would be deleted with the instance, as far as that is not told otherwise, and are not given away.
/// `Err`: what it has is not told in full, in words.
fn endangered(instance: &Instance, ebs: &[EbsVolume], deletes: &[String]) -> Result<Vec<String>, String> {
    // What was launched just now shows no volumes for a while.
    if instance.state.as_deref() == Some("pending") {
        return Err("it is pending: EC2 may not show its volumes yet".to_owned());
    }
    let all = volumes::everything(instance, ebs)?;
    instance.root(&all)?;
    let goes = |mapping: &Mapping| {
        let of_it = ebs.iter().filter(|volume| volume.id == mapping.volume);
        let mut there = of_it.flat_map(|volume| &volume.attachments).filter(|one| one.is_at(&instance.id));
        mapping.goes_with_it != Some(false) || there.any(|one| one.goes_with_it == Some(true))
    };
    let kept = all.iter().filter(|mapping| !deletes.contains(&mapping.device));
    Ok(kept.filter(|mapping| goes(mapping)).map(|mapping| mapping.device.clone()).collect())
}

impl AwsDriver {
    pub(crate) async fn terminate(&self, deletes: &[String], call: &Call) -> Result<Accepted, DriverError> {
        let seen = self.look(call).await?;
        let instance = seen.found.map_err(|why| refused(ErrorKind::Refused, why))?;
        if instance.power() == instance::PowerStatus::Terminated {
            let (asked_at, answered_at) = (seen.asked_at, seen.answered_at);
            return Ok(Accepted { asked_at, answered_at, epoch: Some(EPOCH), already: true });
        }
        let not_told = |why: String| refused(ErrorKind::Refused, format!("it is not terminated: {why}"));
        let ebs = self.attached_by_ebs(call).await?;
        let endangered_now = endangered(&instance, &ebs, deletes).map_err(not_told)?;
        if !endangered_now.is_empty() {
            self.keep(&endangered_now, call).await?;
            self.kept.lock().extend(endangered_now);
        }
        // Read back, also where nothing had to be changed: a volume may have been attached since.
        let (instance, ebs) = tokio::try_join!(self.instance(call), self.attached_by_ebs(call))?;
        let left = endangered(&instance, &ebs, deletes).map_err(not_told)?;
        if !left.is_empty() {
            let detail = format!(
                "it is not terminated: EC2 does not say that the volume at {} is kept",
                left.join(", ")
            );
            return Err(refused(ErrorKind::Refused, detail));
        }
        let (signed, id) = (self.signed_anew(None, call).await?, self.settings.instance.clone());
        let told = self
            .cloud
            .alone(
                "TerminateInstances",
                BucketAccess::Now,
                Some((signed, None, &self.unclear)),
                call,
                async move |client, config| {
                    let request =
                        client.terminate_instances().instance_ids(&id).force(true).skip_os_shutdown(true);
                    let told = request.customize().config_override(config).send().await;
                    let told = said(told)?;
                    Ok(Change::of(told.terminating_instances).remove(&id))
                },
            )
            .await;
        match told {
            Ok(Ok((Some(change), stamps))) => accepted(&change, stamps, "terminated"),
            Ok(Ok((None, _))) => Err(unnamed("TerminateInstances")),
            Ok(Err(failure)) => Err(self.says_what_stays(failure.into_error())),
            Err(error) => Err(self.says_what_stays(error)),
        }
    }

    /// What was changed before it stays so, and stands in no record but in these words.
    fn says_what_stays(&self, error: DriverError) -> DriverError {
        let kept = self.kept.lock();
        if kept.is_empty() {
            return error;
        }
        let devices = kept.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let detail = format!(
            "{} (the volumes at {devices} were told to be kept when it is terminated, and stay so)",
            error.detail
        );
        DriverError { detail, ..error }
    }

    /// Tells EC2 to keep the volumes at these devices.
    async fn keep(&self, devices: &[String], call: &Call) -> Result<(), DriverError> {
        let keep = EbsInstanceBlockDeviceSpecification::builder().delete_on_termination(false).build();
        let mapping = |device: &String| {
            InstanceBlockDeviceMappingSpecification::builder().device_name(device).ebs(keep.clone()).build()
        };
        let mappings: Vec<_> = devices.iter().map(mapping).collect();
        let (signed, id) = (self.signed_anew(None, call).await?, self.settings.instance.clone());
        let told = self
            .cloud
            .alone(
                "ModifyInstanceAttribute",
                BucketAccess::Now,
                Some((signed, None, &self.unclear)),
                call,
                async move |client, config| {
                    let request = client
                        .modify_instance_attribute()
                        .instance_id(id)
                        .set_block_device_mappings(Some(mappings));
                    let told = request.customize().config_override(config).send().await;
                    said(told).map(drop)
                },
            )
            .await;
        // Of the off nothing was sent: that volumes are kept harms nobody, whenever it comes.
        let failed = |error: DriverError| DriverError { effect: Effect::DidNotHappen, ..error };
        told.map_err(failed)?.map(drop).map_err(|failure| failed(failure.into_error()))
    }
}

fn refused(kind: ErrorKind, detail: impl Into<String>) -> DriverError {
    DriverError::new(kind, Effect::DidNotHappen, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::Attachment;

    #[test]
    fn what_is_not_told_to_be_kept_is_endangered() {
        let volume = |device: &str, goes_with_it| Mapping {
            device: device.to_owned(),
            volume: format!("{device}-volume"),
            status: None,
            goes_with_it,
        };
        let volumes = vec![
            volume("/dev/xvda", Some(true)),
            volume("/dev/sdf", Some(true)),
            volume("/dev/sdg", Some(false)),
            volume("/dev/sdh", None),
        ];
        let root_device = Some("/dev/xvda".to_owned());
        let instance = Instance { volumes, root_device, root_is_ebs: true, ..Instance::default() };
        assert_eq!(endangered(&instance, &[], &[]).expect("told"), ["/dev/xvda", "/dev/sdf", "/dev/sdh"]);
        let given = ["/dev/xvda".to_owned()];
        assert_eq!(endangered(&instance, &[], &given).expect("told"), ["/dev/sdf", "/dev/sdh"]);
        // What EBS says of a volume counts as much, and of one that the instance does not show.
        let attachment = |device: &str| Attachment {
            device: Some(device.to_owned()),
            goes_with_it: Some(true),
            ..Attachment::default()
        };
        let ebs = |id: &str, device: &str| EbsVolume {
            id: id.to_owned(),
            attachments: vec![attachment(device)],
            ..EbsVolume::default()
        };
        let told =
            endangered(&instance, &[ebs("/dev/sdg-volume", "/dev/sdg"), ebs("vol-9", "/dev/sdi")], &given);
        assert_eq!(told.expect("told"), ["/dev/sdf", "/dev/sdg", "/dev/sdh", "/dev/sdi"]);
    }

    /// An instance that shows none of its volumes would take all of them with it.
    #[test]
    fn what_does_not_show_its_volumes_is_not_terminated() {
        let root_device = Some("/dev/xvda".to_owned());
        let running = Instance {
            state: Some("running".to_owned()),
            root_device,
            root_is_ebs: true,
            ..Instance::default()
        };
        let pending = Instance { state: Some("pending".to_owned()), root_is_ebs: false, ..running.clone() };
        let vague = Instance { is_vague: true, root_is_ebs: false, ..running.clone() };
        for instance in [&running, &pending, &vague] {
            assert!(endangered(instance, &[], &[]).is_err(), "{instance:?}");
        }
        let stored = Instance { root_is_ebs: false, ..running };
        assert_eq!(endangered(&stored, &[], &[]), Ok(Vec::new()), "its root is no volume");
    }
}
