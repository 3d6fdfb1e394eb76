//! The gateway dies in the middle, and the next one finishes: the same end, and nothing twice.

use std::time::{Duration, Instant};

use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, Context, DriverKind, Effect, ErrorKind, Witness};
use picket_driver_openstack::OpenstackKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, OpenStack, ServerFault, Who};
use serde_json::json;
use std::sync::Arc;

use crate::driven::Plan;
use crate::scene::{cloud, soon};

#[tokio::test]
async fn killed_in_the_middle_of_a_stop() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("killed-in-stop", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("killed-in-stop").await?;
    cloud.attach(&server, &volume).await?;
    let mut driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 600.0, ..ServerFault::default() })?;
    let mut asked =
        driven.gateway.command(&["fence", "n1", "--yes", "--reason", "a test"])?.spawn().expect("picket");
    let begins = async || Ok(cloud.effects(&server)?.iter().any(|one| one.did == "power_off: begins"));
    soon("the stop is under way", begins).await?;
    driven.gateway.kill();
    driven.gateway.begin(&[]).await?;
    cloud.hinder(&server, &ServerFault::default())?;
    driven.fence().await?.is_fenced(&driven);
    driven.detached_while_off(1)?;
    cloud.until_volume(&volume, "available").await?;
    let _ = asked.kill();
    let _ = asked.wait();
    Ok(())
}

#[tokio::test]
async fn killed_in_the_middle_of_a_detach() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("killed-in-detach", OPENSTACK_HOSTS[1]).await?;
    let volumes = [cloud.volume("killed-1").await?, cloud.volume("killed-2").await?];
    for volume in &volumes {
        cloud.attach(&server, volume).await?;
    }
    let mut driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { detach_delay: 600.0, ..ServerFault::default() })?;
    let mut asked =
        driven.gateway.command(&["fence", "n1", "--yes", "--reason", "a test"])?.spawn().expect("picket");
    let begins = async || Ok(cloud.effects(&server)?.iter().any(|one| one.did == "detach: begins"));
    soon("a detach is under way", begins).await?;
    driven.gateway.kill();
    driven.gateway.begin(&[]).await?;
    cloud.hinder(&server, &ServerFault::default())?;
    driven.fence().await?.is_fenced(&driven);
    driven.detached_while_off(2)?;
    for volume in &volumes {
        cloud.until_volume(volume, "available").await?;
    }
    let _ = asked.kill();
    let _ = asked.wait();
    Ok(())
}

/// Stands between the permit and the sending, as a process does that was stopped there.
#[derive(Debug)]
struct Stopped(Duration);

impl Witness for Stopped {
    fn permitted(&self) {
        // Nothing else runs meanwhile: the whole process is stopped.
        let began = Instant::now();
        while began.elapsed() < self.0 {
            std::thread::park_timeout(self.0 - began.elapsed());
        }
    }
}

/// S8: the far side refuses what was permitted a token's life ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_was_permitted_long_ago_is_refused_by_its_token() -> Result<()> {
    let life = Duration::from_secs(60);
    let cloud = OpenStack::with_token_life(life).await?;
    let server = cloud.server("late-start", OPENSTACK_HOSTS[0]).await?;
    let clouds = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(clouds.path(), cloud.clouds_yaml(&Who::Admin)).expect("it can be written");
    let settings = json!({ "server": server, "cloud": "cloud", "clouds_file": clouds.path() });
    let clock = Arc::new(SystemClock);
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
    let context = Context { clock: clock.clone(), random: Arc::new(random) };
    let driver =
        OpenstackKind::default().make(settings.as_object().expect("a table"), &context).expect("right");
    let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
    let call = |seconds| {
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
        Call::control(end, clock.clone(), orders.permit())
    };
    let off = orders.off().await.expect("an order");
    driver.power_off(&off, &call(60)).await.expect("it is taken");
    cloud.until_server(&server, "SHUTOFF").await?;
    driver.read_power(&call(60)).await.expect("a reading");
    let on = orders.on().await.expect("an order");
    let stopped = call(600).before(Arc::new(Stopped(life + Duration::from_secs(1))));
    let late = tokio::spawn(async move { driver.power_on(on, &stopped).await }).await.expect("it ends");
    let refused = late.expect_err("its token has ended");
    assert_eq!(
        (refused.kind, refused.effect),
        (ErrorKind::Authentication, Effect::DidNotHappen),
        "{refused}"
    );
    assert!(cloud.runs_on(&server)?.is_empty());
    Ok(())
}
