//! What whoever runs an instance ought to know of it, found out by a check.

use std::sync::{Mutex, PoisonError};

use aws_sdk_ec2::types::InstanceAttributeName;
use picket_driver::Call;

use crate::cloud::said;
use crate::driver::AwsDriver;
use crate::instance::Instance;

/// What the last check found.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Mutex<Vec<String>>);

impl Remarks {
    pub(crate) fn told(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, remarks: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = remarks;
    }
}

impl AwsDriver {
    /// Looks at what bars an off, or undoes one. What cannot be found out is no fault.
    pub(crate) async fn look_around(&self, instance: &Instance, call: &Call) {
        let mut remarks = of(instance, self.settings.terminate.is_some());
        let attribute = match self.settings.terminate {
            None => InstanceAttributeName::DisableApiStop,
            Some(_) => InstanceAttributeName::DisableApiTermination,
        };
        if self.is_protected(attribute.clone(), call).await == Some(true) {
            let verb = if self.settings.terminate.is_some() { "terminate" } else { "stop" };
            remarks.push(format!(
                "its {} is set: EC2 refuses to {verb} it, and a fence of it does not come to an end",
                attribute.as_str()
            ));
        }
        self.remarks.set(remarks);
    }

    async fn is_protected(&self, attribute: InstanceAttributeName, call: &Call) -> Option<bool> {
        let id = self.settings.instance.clone();
        let told = self.cloud.alone("DescribeInstanceAttribute", None, call, async move |client, config| {
            let request = client.describe_instance_attribute().instance_id(id).attribute(attribute);
            let told = request.customize().config_override(config).send().await;
            let told = said(told)?;
            Ok(told.disable_api_stop.or(told.disable_api_termination).and_then(|value| value.value))
        });
        told.await.ok()?.ok()?.0
    }
}

fn of(instance: &Instance, terminates: bool) -> Vec<String> {
    let mut remarks = Vec::new();
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
    if instance.lifecycle.as_deref() == Some("spot") && !terminates {
        remarks.push(
            "it is a spot instance: EC2 stops one only if its request is persistent; else set terminate = true".to_owned(),
        );
    }
    if !instance.root_is_ebs && !terminates {
        remarks.push("its root is an instance store: EC2 cannot stop it; set terminate = true".to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bars_an_off_or_undoes_one_is_said() {
        let plain = Instance { root_is_ebs: true, ..Instance::default() };
        assert_eq!(of(&plain, false), [] as [&str; 0]);
        let tags = [("aws:autoscaling:groupName".to_owned(), "web".to_owned())].into();
        let odd = Instance {
            tags,
            hibernates: true,
            lifecycle: Some("spot".to_owned()),
            root_is_ebs: false,
            ..plain
        };
        let said = of(&odd, false).join("\n");
        for word in ["\"web\"", "hibernated", "spot", "instance store"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(of(&odd, true).len(), 2);
    }
}
