//! This file tells whether EC2 would stop a spot instance: its request says so, and the instance does not.
//!
//! From the User Guide of EC2 (Stop and start an instance, Spot Instances): one is stopped only where its request is persistent and not
//! cancelled, and where it is part of no launch group and of no Availability Zone group.

use aws_sdk_ec2::types::{SpotInstanceRequest, SpotInstanceState, SpotInstanceType};
use picket_driver::{Call, DriverError, Effect, ErrorKind};

use crate::cloud::{BucketAccess, Failure, said};
use crate::driver::AwsDriver;
use crate::instance::Instance;

impl Instance {
    pub(crate) fn is_spot(&self) -> bool {
        self.lifecycle.as_deref() == Some("spot")
    }
}

impl AwsDriver {
    /// Why EC2 refuses to stop that spot instance; `None`: it does not.
    ///
    /// # Errors
    /// That is not known.
    pub(crate) async fn is_never_stopped(
        &self,
        instance: &Instance,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let unsaid = |words: &str| DriverError::new(ErrorKind::Protocol, Effect::DidNotHappen, words);
        let id = instance.spot_request.clone().ok_or_else(|| unsaid("EC2 names no spot request of it"))?;
        let asked = id.clone();
        let told = self.cloud.alone(
            "DescribeSpotInstanceRequests",
            BucketAccess::Patient,
            None,
            call,
            async move |client, config| {
                let request = client.describe_spot_instance_requests().spot_instance_request_ids(asked);
                said(request.customize().config_override(config).send().await)
            },
        );
        let (told, _) = told.await?.map_err(Failure::of_question)?;
        let [request] = told.spot_instance_requests() else {
            return Err(unsaid("the answer does not show its spot request"));
        };
        let why = match (&request.r#type, &request.state) {
            (Some(SpotInstanceType::OneTime), _) => Some("is one-time".to_owned()),
            (_, Some(SpotInstanceState::Cancelled)) => Some("is cancelled".to_owned()),
            (_, Some(SpotInstanceState::Closed)) => Some("is closed".to_owned()),
            (Some(SpotInstanceType::Persistent), _) => group(request),
            _ => return Err(unsaid("the answer does not say whether its spot request is persistent")),
        };
        Ok(why.map(|why| {
            format!(
                "it is a spot instance whose request {id} {why}: EC2 refuses to stop it, and a fence of it does not come to an end; launch \
                 it by a persistent request alone, or set terminate = true"
            )
        }))
    }
}

fn group(request: &SpotInstanceRequest) -> Option<String> {
    let named = |what: &str, name: Option<&str>| {
        name.filter(|name| !name.is_empty()).map(|name| format!("is of the {what} {name:?}"))
    };
    named("launch group", request.launch_group())
        .or_else(|| named("Availability Zone group", request.availability_zone_group()))
}
