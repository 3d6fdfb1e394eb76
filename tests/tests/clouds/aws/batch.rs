//! A thousand at once, one of which there is not.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_core::power::Power;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, Context, DriverKind, Effect, ErrorKind, PowerDriver};
use picket_driver_aws::AwsKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::Ec2;
use serde_json::json;
use tokio::time::Instant;

const THERE: usize = 999;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_instances_are_stopped_by_three_requests_at_most_where_one_is_not_there() -> Result<()> {
    // Of its own: a thousand instances are a load to whoever asks the same one.
    let ec2 = Ec2::start().await?;
    let mut instances = ec2.instances(THERE, &[]).await?;
    instances.push("i-0000000000000dead".to_owned());
    let [config, credentials] = ec2.files("batch", &ec2.picket().await?)?;
    let clock = Arc::new(SystemClock);
    let context = Context { clock: clock.clone(), random: Arc::new(|_: &mut [u8]| {}) };
    let kind = AwsKind::default();
    let driver = |instance: &String| {
        let settings = json!({
            "instance": instance, "endpoint": ec2.endpoint(), "config_file": config, "credentials_file": credentials,
            "profile": "default", "region": "eu-central-1",
        });
        let table = settings.as_object().expect("a table");
        kind.make(table, &context).unwrap_or_else(|faults| panic!("{faults:?}"))
    };
    let drivers: Vec<Arc<dyn PowerDriver>> = instances.iter().map(driver).collect();
    let orders = Orders::new(drivers[0].traits(), clock.clone()).await.expect("orders");
    let order = orders.off().await.expect("an order");
    let call = Call::control(Instant::now() + Duration::from_secs(60), clock, orders.permit());
    let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    let on = |reading: &std::result::Result<picket_core::power::Reading, _>| {
        reading.as_ref().is_ok_and(|reading| reading.power == Power::On)
    };
    assert_eq!(readings.iter().filter(|reading| on(reading)).count(), THERE);

    let mut offs = join_all(drivers.iter().map(|driver| driver.power_off(&order, &call))).await;
    let missing = offs.pop().expect("the last one").expect_err("there is none");
    assert_eq!((missing.kind, missing.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{missing}");
    assert!(offs.iter().all(|off| off.as_ref().is_ok_and(|accepted| !accepted.already)), "{offs:?}");
    let stops = ec2.asked_to("StopInstances", &instances[0]).await?;
    assert!(stops.len() <= 3, "{} requests", stops.len());

    let asked = ec2.asked_to("DescribeInstances", &instances[0]).await?.len();
    let readings = join_all(drivers[..THERE].iter().map(|driver| driver.read_power(&call))).await;
    let off =
        readings.iter().filter(|reading| reading.as_ref().is_ok_and(|reading| reading.power == Power::Off));
    assert_eq!(off.count(), THERE);
    assert_eq!(
        ec2.asked_to("DescribeInstances", &instances[0]).await?.len() - asked,
        1,
        "one question for all"
    );
    Ok(())
}
