//! What whoever runs an instance ought to know of it, found out by a check.

use std::time::Duration;

use aws_sdk_ec2::types::InstanceAttributeName;
use parking_lot::{Mutex, MutexGuard};
use picket_driver::{Call, DriverError, Effect, ErrorKind};
use picket_reach::proxy;
use tokio::time::Instant;

use crate::cloud::{BucketAccess, Failure, said};
use crate::driver::AwsDriver;
use crate::instance::Instance;

/// So long it is waited for what is not needed.
const QUICKLY: Duration = Duration::from_secs(5);

/// What the last check found.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Mutex<RemarkFindings>);

#[derive(Debug, Default)]
struct RemarkFindings {
    remarks: Vec<String>,
    obstacles: Vec<String>,
    /// That a protection bars the off: known until EC2 says otherwise.
    barred: Option<String>,
    /// That it is a spot instance which EC2 does not stop: the same.
    spot: Option<String>,
}

impl Remarks {
    fn found(&self) -> MutexGuard<'_, RemarkFindings> {
        self.0.lock()
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.found().remarks.clone()
    }

    pub(crate) fn obstacles(&self) -> Vec<String> {
        let found = self.found();
        found.obstacles.iter().chain(&found.barred).chain(&found.spot).cloned().collect()
    }
}

impl AwsDriver {
    /// Looks at what bars an off, or undoes one.
    pub(crate) async fn look_around(&self, instance: &Instance, call: &Call) {
        let mut remarks = of(instance, self.settings.terminate.as_deref());
        let (attribute, verb) = match self.settings.terminate {
            None => (InstanceAttributeName::DisableApiStop, "stop"),
            Some(_) => (InstanceAttributeName::DisableApiTermination, "terminate"),
        };
        let name = attribute.as_str().to_owned();
        // Whoever asked waits for more than this.
        let quickly = call.until(Instant::now() + QUICKLY);
        let stops = async {
            match instance.is_spot() && self.settings.terminate.is_none() {
                true => self.is_never_stopped(instance, &quickly).await,
                false => Ok(None),
            }
        };
        let (told, stops) = tokio::join!(self.is_protected(attribute, &quickly), stops);
        remarks.extend(self.cloud.place().and_then(|place| proxy::unused(&place.parse().ok()?)));
        let mut found = self.remarks.found();
        match told {
            Ok(false) => found.barred = None,
            Ok(true) => {
                found.barred = Some(format!(
                    "its {name} is set: EC2 refuses to {verb} it, and a fence of it does not come to an end; switch that attribute off"
                ));
            }
            // What was known is known still.
            Err(_) if found.barred.is_some() => {}
            Err(error) => remarks.push(format!(
                "whether its {name} is set, which would bar its fence, could not be asked: {}",
                error.detail
            )),
        }
        match stops {
            Ok(why) => found.spot = why,
            Err(_) if found.spot.is_some() => {}
            Err(error) => remarks.push(format!(
                "it is a spot instance, and whether EC2 stops it is not known: of one whose request is one-time a fence does not come to an \
                 end, unless terminate = true: {}",
                error.detail
            )),
        }
        found.remarks = remarks;
        found.obstacles = no_stop(instance, self.settings.terminate.is_some()).into_iter().collect();
    }

    async fn is_protected(&self, attribute: InstanceAttributeName, call: &Call) -> Result<bool, DriverError> {
        let id = self.settings.instance.clone();
        let told = self.cloud.alone(
            "DescribeInstanceAttribute",
            BucketAccess::Patient,
            None,
            call,
            async move |client, config| {
                let request = client.describe_instance_attribute().instance_id(id).attribute(attribute);
                let told = request.customize().config_override(config).send().await;
                let told = said(told)?;
                Ok(told.disable_api_stop.or(told.disable_api_termination).and_then(|value| value.value))
            },
        );
        let (told, _) = told.await?.map_err(Failure::of_question)?;
        told.ok_or_else(|| {
            DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, "the answer does not say")
        })
    }
}

fn of(instance: &Instance, terminates: Option<&[String]>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(deletes) = terminates {
        let what = match deletes.is_empty() {
            true => "nothing".to_owned(),
            false => format!("the volumes at {}", deletes.join(", ")),
        };
        remarks.push(format!(
            "its off TERMINATES it (terminate = true): it never comes back; deleted with it: {what}"
        ));
    }
    if let Some(group) = instance.group() {
        remarks.push(format!(
            "it is of the auto-scaling group {group:?}, which replaces what is stopped, and may terminate it: suspend its HealthCheck \
             and ReplaceUnhealthy processes, or let the group alone handle it"
        ));
    }
    if instance.hibernates {
        remarks.push(
            "it may be hibernated: where somebody hibernates it, its memory is kept, and it never counts as off".to_owned(),
        );
    }
    if instance.is_spot() {
        remarks.push(
            "it is a spot instance: where its request is persistent EC2 starts again by itself what it interrupted, and no policy denies \
             it that"
                .to_owned(),
        );
    }
    remarks
}

fn no_stop(instance: &Instance, terminates: bool) -> Option<String> {
    let is_stopped_never = !instance.root_is_ebs && !terminates;
    is_stopped_never
        .then(|| "its root is an instance store: EC2 cannot stop it; set terminate = true".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bars_an_off_or_undoes_one_is_said() {
        let plain = Instance { root_is_ebs: true, ..Instance::default() };
        let plain_again = plain.clone();
        assert_eq!(of(&plain, None), [] as [&str; 0]);
        let tags = [("aws:autoscaling:groupName".to_owned(), "web".to_owned())].into();
        let odd = Instance {
            tags,
            hibernates: true,
            lifecycle: Some("spot".to_owned()),
            root_is_ebs: false,
            ..plain
        };
        let said = of(&odd, None).join("\n");
        for word in ["\"web\"", "hibernated", "spot"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!((no_stop(&plain_again, false), no_stop(&odd, true)), (None, None));
        assert!(no_stop(&odd, false).is_some_and(|why| why.contains("instance store")));
        let said = of(&odd, Some(&["/dev/sdb".to_owned()])).join("\n");
        for word in ["TERMINATES", "/dev/sdb", "\"web\"", "hibernated", "starts again by itself"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(!said.contains("set terminate"), "{said}");
        assert!(of(&plain_again, Some(&[])).join("\n").contains("deleted with it: nothing"));
    }
}
