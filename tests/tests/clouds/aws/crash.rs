//! The gateway dies in the middle, and the next one finishes: the same end, and nothing twice. What it sends late is refused (S8).

use std::sync::Arc;
use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::conformance::orders::Orders;
use picket_driver::{
    Call, Context, DriverError, DriverKind, Effect, ErrorKind, PowerDriver, VolumeAt, Witness,
};
use picket_driver_aws::AwsKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::{Ec2, Treatment};
use serde_json::json;

use crate::aws::scene::{Scene, ec2};
use crate::scene::soon;

#[tokio::test]
async fn killed_in_the_middle_of_a_stop() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let mut scene = Scene::of(&instance, "").await?;
    let volume = ec2.volumes(&instance).await?["/dev/sdf"].clone();
    ec2.treat(&instance, &Treatment { stopping: 8.0, ..Treatment::default() }).await?;
    let _asked = scene.gateway.asking("fence", "n1")?;
    soon("it is stopping", async || Ok(ec2.state(&instance).await? == "stopping")).await?;
    scene.gateway.kill();
    scene.gateway.begin(&[]).await?;
    scene.must_fence().await?;
    assert!(scene.stops().await?.len() >= 2, "the successor's own off");
    assert_eq!(scene.detached().await?.len(), 1);
    assert_eq!(ec2.volume(&volume).await?.state, "available");
    Ok(())
}

#[tokio::test]
async fn killed_in_the_middle_of_a_detach() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf", "/dev/sdg"]).await?;
    let mut scene = Scene::of(&instance, "").await?;
    let volumes = ec2.volumes(&instance).await?;
    ec2.treat(&instance, &Treatment { detaching: 8.0, ..Treatment::default() }).await?;
    let _asked = scene.gateway.asking("fence", "n1")?;
    // It follows what it has stored as taken; what it has not is told again by its successor.
    let is_followed = async |volume: &String| {
        let asked = ec2.asked(volume).await?;
        let detached = asked.iter().position(|one| one.action == "DetachVolume" && one.status == 200);
        Ok::<_, picket_tests::PeerError>(
            detached.is_some_and(|at| asked[at..].iter().any(|one| one.action == "DescribeVolumes")),
        )
    };
    soon("both are going", async || {
        Ok(is_followed(&volumes["/dev/sdf"]).await? && is_followed(&volumes["/dev/sdg"]).await?)
    })
    .await?;
    scene.gateway.kill();
    scene.gateway.begin(&[]).await?;
    scene.must_fence().await?;
    assert!(scene.stops().await?.len() >= 2, "the successor's own off, before it goes on");
    assert_eq!(scene.detached().await?.len(), 2, "what is going is not told again");
    for volume in volumes.values() {
        assert_eq!(ec2.volume(volume).await?.state, "available");
    }
    let root = ec2.root(&instance).await?;
    assert_eq!(ec2.volume(&root).await?.at, [instance]);
    Ok(())
}

/// So long this EC2 takes a signature.
const SIGNED: Duration = Duration::from_secs(4);

/// Stands between its permit and its packet, as a process does that was stopped there.
#[derive(Debug)]
struct Stopped;

impl Witness for Stopped {
    fn permitted(&self) {
        // Dates have whole seconds.
        let (began, time) = (Instant::now(), SIGNED + Duration::from_secs(3));
        while began.elapsed() < time {
            std::thread::park_timeout(time - began.elapsed());
        }
    }
}

/// Who sends something late: by credentials of its own, after power was read.
struct Sender {
    by: Arc<dyn PowerDriver>,
    orders: Orders,
    clock: Arc<SystemClock>,
}

impl Sender {
    /// Its instance is off, as it says itself.
    async fn over(ec2: &Ec2, name: &str, instance: &str) -> Result<Self> {
        let [config, credentials] = ec2.files(name, &ec2.picket().await?)?;
        let clock = Arc::new(SystemClock);
        let settings = json!({
            "instance": instance, "endpoint": ec2.endpoint(), "config_file": config, "credentials_file": credentials,
            "profile": "default", "region": "eu-central-1",
        });
        let context = Context { clock: clock.clone(), random: Arc::new(|_: &mut [u8]| {}) };
        let by = AwsKind::default()
            .make(settings.as_object().expect("a table"), &context)
            .expect("right settings");
        let orders = Orders::new(by.traits(), clock.clone()).await.expect("orders");
        let sender = Self { by, orders, clock };
        let off = sender.orders.off().await.expect("an order");
        sender.by.power_off(&off, &sender.call()).await.expect("taken");
        sender.is_off().await;
        Ok(sender)
    }

    fn call(&self) -> Call {
        let end = tokio::time::Instant::now() + Duration::from_secs(60);
        Call::control(end, self.clock.clone(), self.orders.permit())
    }

    async fn is_off(&self) {
        assert_eq!(self.by.read_power(&self.call()).await.expect("read").power, Power::Off);
    }

    async fn starts(&self, call: &Call) -> std::result::Result<(), DriverError> {
        self.is_off().await;
        self.by.power_on(self.orders.on().await.expect("an order"), call).await.map(drop)
    }

    async fn detaches(&self, volume: &VolumeAt, call: &Call) -> std::result::Result<(), DriverError> {
        self.is_off().await;
        let volumes = self.by.volumes().expect("it knows volumes");
        let bound = volumes.max_in_flight().expect("it is bounded");
        let release = self.orders.release(bound).await.expect("an order");
        let permit = self.orders.release_permit(&release).await.expect("a permit");
        volumes.detach(&release.order, &permit, volume, false, call).await
    }
}

/// Meanwhile the successor has waited out the ledger, detached the volume, and somebody has attached it where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_start_and_a_detach_that_were_permitted_long_ago_are_refused() -> Result<()> {
    let ec2 = Ec2::start().await?;
    ec2.patience(SIGNED.as_secs()).await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let volume =
        VolumeAt { id: ec2.volumes(&instance).await?["/dev/sdf"].clone(), device: "/dev/sdf".to_owned() };
    let sender = Sender::over(&ec2, "late", &instance).await?;
    let late = sender.call().before(Arc::new(Stopped));
    let wanted = (ErrorKind::Authentication, Effect::DidNotHappen);
    let error = sender.starts(&late).await.expect_err("too late");
    assert_eq!((error.kind, error.effect), wanted, "{error}");
    let error = sender.detaches(&volume, &late).await.expect_err("too late");
    assert_eq!((error.kind, error.effect), wanted, "{error}");
    assert_eq!(ec2.state(&instance).await?, "stopped");
    assert_eq!(ec2.volume(&volume.id).await?.at, std::slice::from_ref(&instance));
    let statuses = async |action: &str| -> Result<Vec<u16>> {
        Ok(ec2.asked_to(action, &instance).await?.iter().map(|one| one.status).collect())
    };
    assert_eq!((statuses("StartInstances").await?, statuses("DetachVolume").await?), (vec![400], vec![400]));
    // What is not kept is taken.
    let by = sender.call();
    sender.detaches(&volume, &by).await.expect("taken");
    sender.starts(&by).await.expect("taken");
    assert_eq!(ec2.volume(&volume.id).await?.state, "available");
    Ok(())
}
