//! The gateway dies in the middle, and the next one finishes: the same end, and nothing twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, Context, DriverKind, Effect, ErrorKind, Witness};
use picket_driver_openstack::OpenstackKind;
use picket_engine::clock::SystemClock;
use picket_tests::peers::{OPENSTACK_HOSTS, OpenStack, ServerFault, Who};
use picket_tests::{Gateway, Result};
use serde_json::json;

use crate::driven::Plan;
use crate::scene::{cloud, soon};

/// A caller who is still there when the gateway dies.
fn fencing(gateway: &Gateway) -> Result<tokio::process::Child> {
    let command = gateway.command(&["fence", "n1", "--yes", "--reason", "a test"])?;
    Ok(tokio::process::Command::from(command).kill_on_drop(true).spawn().expect("picket"))
}

#[tokio::test]
async fn killed_in_the_middle_of_a_stop() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("killed-in-stop", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("killed-in-stop").await?;
    cloud.attach(&server, &volume).await?;
    let mut driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 600.0, ..ServerFault::default() })?;
    let _asked = fencing(&driven.gateway)?;
    let begins = async || Ok(cloud.effects(&server)?.iter().any(|one| one.did == "power_off: begins"));
    soon("the stop is under way", begins).await?;
    driven.gateway.kill();
    driven.gateway.begin(&[]).await?;
    cloud.hinder(&server, &ServerFault::default())?;
    driven.fence().await?.is_fenced(&driven);
    driven.detached_while_off(1)?;
    cloud.until_volume(&volume, "available").await?;
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
    let _asked = fencing(&driven.gateway)?;
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
    Ok(())
}

/// Stands at the permit that is asked for the so-manieth time, as a process does that was stopped there.
#[derive(Debug)]
struct Stopped {
    at: AtomicU32,
    time: Duration,
}

impl Witness for Stopped {
    fn permitted(&self) {
        if self.at.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        // Nothing else runs meanwhile: the whole process is stopped.
        let began = Instant::now();
        while began.elapsed() < self.time {
            std::thread::park_timeout(self.time - began.elapsed());
        }
    }
}

/// S8: what was permitted a token's life ago is refused, by the far side where it is on its way with its token, and by us where
/// it would go with another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_start_that_was_permitted_long_ago_is_refused() -> Result<()> {
    let life = Duration::from_secs(60);
    let cloud = OpenStack::with_token_life(life).await?;
    let clouds = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(clouds.path(), cloud.clouds_yaml(&Who::Admin)).expect("it can be written");
    let (before, just_before) =
        (cloud.server("late-1", OPENSTACK_HOSTS[0]), cloud.server("late-2", OPENSTACK_HOSTS[1]));
    let (before, just_before) = tokio::try_join!(before, just_before)?;
    let start = |server: String, at: u32| {
        let clouds = clouds.path().to_owned();
        async move {
            let clock = Arc::new(SystemClock);
            let settings = json!({ "server": server, "cloud": "cloud", "clouds_file": clouds });
            let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
            let context = Context { clock: clock.clone(), random: Arc::new(random) };
            let settings = settings.as_object().expect("a table");
            let driver = || OpenstackKind::default().make(settings, &context).expect("right settings");
            let off_by = driver();
            let orders = Orders::new(off_by.traits(), clock.clone()).await.expect("orders");
            let call = |seconds| {
                let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
                Call::control(end, clock.clone(), orders.permit())
            };
            let off = orders.off().await.expect("an order");
            off_by.power_off(&off, &call(60)).await.expect("it is taken");
            while off_by.read_power(&call(60)).await.expect("a reading").power != Power::Off {
                tokio::task::yield_now().await;
            }
            // With a token that is not about to be renewed.
            let on_by = driver();
            on_by.read_power(&call(60)).await.expect("a reading");
            let on = orders.on().await.expect("an order");
            let stopped = Stopped { at: AtomicU32::new(at), time: life + Duration::from_secs(1) };
            on_by.power_on(on, &call(600).before(Arc::new(stopped))).await.expect_err("it is too late")
        }
    };
    let (early, late) =
        tokio::join!(tokio::spawn(start(before.clone(), 1)), tokio::spawn(start(just_before.clone(), 2)));
    let (early, late) = (early.expect("it ends"), late.expect("it ends"));
    assert_eq!((early.kind, early.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{early}");
    assert!(early.detail.contains("newer than the store's last word"), "{early}");
    assert_eq!((late.kind, late.effect), (ErrorKind::Authentication, Effect::DidNotHappen), "{late}");
    assert!(cloud.runs_on(&before)?.is_empty() && cloud.runs_on(&just_before)?.is_empty());
    Ok(())
}
