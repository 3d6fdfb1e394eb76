//! Terminating an instance, where its settings say so: what cannot be stopped (instance store, one-time spot).
//!
//! **Invariant.** It is terminated only once EC2 was read to keep every volume that the settings do not give away.

use picket_driver::{Accepted, Call, DriverError, Effect, ErrorKind};

use aws_sdk_ec2::types::{EbsInstanceBlockDeviceSpecification, InstanceBlockDeviceMappingSpecification};

use crate::cloud::{Change, said};
use crate::driver::AwsDriver;
use crate::instance::{self, Instance};
use crate::power::{EPOCH, accepted, unnamed};

/// The devices whose volumes would be deleted with the instance, as far as that is not told otherwise, and are not given away.
fn endangered(instance: &Instance, deletes: &[String]) -> Vec<String> {
    let kept = instance.volumes.iter().filter(|volume| !deletes.contains(&volume.device));
    kept.filter(|volume| volume.goes_with_it != Some(false)).map(|volume| volume.device.clone()).collect()
}

impl AwsDriver {
    pub(crate) async fn terminate(&self, deletes: &[String], call: &Call) -> Result<Accepted, DriverError> {
        let seen = self.look(call).await?;
        let instance = seen.found.map_err(|why| refused(ErrorKind::Refused, why))?;
        if instance.power() == instance::Said::Terminated {
            let (asked_at, answered_at) = (seen.asked_at, seen.answered_at);
            return Ok(Accepted { asked_at, answered_at, epoch: Some(EPOCH), already: true });
        }
        let endangered_now = endangered(&instance, deletes);
        if !endangered_now.is_empty() {
            self.keep(&endangered_now, call).await?;
        }
        // Read back, also where nothing had to be changed: a volume may have been attached since.
        let left = endangered(&self.instance(call).await?, deletes);
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
            Ok(Err(failure)) => Err(failure.into_error()),
            Err(error) => Err(error),
        }
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
    use crate::instance::Mapping;

    #[test]
    fn what_is_not_told_to_be_kept_is_endangered() {
        let volume = |device: &str, goes_with_it| Mapping {
            device: device.to_owned(),
            volume: "vol-1".to_owned(),
            status: None,
            goes_with_it,
        };
        let volumes = vec![
            volume("/dev/xvda", Some(true)),
            volume("/dev/sdf", Some(true)),
            volume("/dev/sdg", Some(false)),
            volume("/dev/sdh", None),
        ];
        let instance = Instance { volumes, ..Instance::default() };
        assert_eq!(endangered(&instance, &[]), ["/dev/xvda", "/dev/sdf", "/dev/sdh"]);
        assert_eq!(endangered(&instance, &["/dev/xvda".to_owned()]), ["/dev/sdf", "/dev/sdh"]);
    }
}
