//! The driver alone: what the role permits and no more, many at once, and what was permitted long ago (S8).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use picket_core::power::{Power, Reading};
use picket_driver::conformance::orders::Orders;
use picket_driver::{
    Call, Context, DriverError, DriverKind, Effect, ErrorKind, PowerDriver, Standing, VolumeAt, Witness,
};
use picket_driver_gcp::GcpKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::{ComputeEngine, GceInstance, GceTreatment, GceUser};
use serde_json::json;

use crate::gcp::scene::{Plan, compute, picket, private, role};

/// Drivers of one account, and what they need.
struct Hand {
    kind: GcpKind,
    context: Context,
    clock: Arc<SystemClock>,
    key: std::path::PathBuf,
    endpoint: String,
}

impl Hand {
    fn of(compute: &ComputeEngine, user: &GceUser) -> Result<Self> {
        let key = compute.service_account_file(user)?;
        private(&key)?;
        let clock = Arc::new(SystemClock);
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
        let context = Context { clock: clock.clone(), random: Arc::new(random) };
        Ok(Self { kind: GcpKind::default(), context, clock, key, endpoint: compute.endpoint() })
    }

    fn driver(&self, instance: &GceInstance) -> Arc<dyn PowerDriver> {
        let settings = json!({
            "instance": instance.provider_id(), "id": instance.id, "endpoint": self.endpoint, "credentials_file": self.key,
        });
        let table = settings.as_object().expect("a table");
        self.kind.make(table, &self.context).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    async fn orders(&self, driver: &Arc<dyn PowerDriver>) -> Orders {
        Orders::new(driver.traits(), self.clock.clone()).await.expect("orders")
    }

    fn call(&self, orders: &Orders, seconds: u64) -> Call {
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
        Call::control(end, self.clock.clone(), orders.permit())
    }
}

fn says(reading: &std::result::Result<Reading, DriverError>, power: Power) -> bool {
    reading.as_ref().is_ok_and(|reading| reading.power == power)
}

/// The permission that a method wants.
fn permission(method: &str) -> String {
    format!("compute.{}", method.replace("regionDisks", "disks"))
}

/// What is asked in all that a gateway does is what the role has, and nothing of that is refused.
#[tokio::test(flavor = "multi_thread")]
async fn the_role_is_enough_and_nothing_of_it_is_too_much() -> Result<()> {
    let compute = compute().await?;
    let user = picket().await?;
    let instances = [compute.instance(&["data"]).await?, compute.instance(&[]).await?];
    let hand = Hand::of(compute, &user)?;
    let drivers = instances.each_ref().map(|instance| hand.driver(instance));
    let orders = hand.orders(&drivers[0]).await;
    let call = hand.call(&orders, 60);
    // Many at once, a stop that comes to nothing, and one that is taken.
    let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    assert!(readings.iter().all(|reading| says(reading, Power::On)), "{readings:?}");
    let fails =
        json!({ "do": "fault", "code": "INTERNAL_ERROR", "message": "it came to nothing", "status": 500 });
    compute.rule("instances.stop", &instances[1].id, 1, fails).await?;
    let order = orders.off().await.expect("an order");
    drivers[1].power_off(&order, &call).await.expect("it is taken");
    while drivers[1].off_again(drivers[1].read_power(&call).await.expect("read").power).is_none() {
        tokio::task::yield_now().await;
    }
    // Then a gateway, from the fence to the way back.
    let scene = Plan::new().by(&user, &instances[0]).await?;
    scene.must_fence().await?;
    scene.detached_while_off(1).await?;
    assert_eq!(scene.unfence().await?.kind(), "unfenced");

    let asked = compute.journal().await?;
    let ours = |one: &&picket_tests::peers::GceRequest| {
        one.token.as_ref().is_some_and(|token| token.user == user.email)
    };
    let ours: Vec<_> = asked.iter().filter(ours).collect();
    let refused: Vec<_> = ours.iter().filter(|one| one.status == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let used: BTreeSet<String> =
        ours.iter().filter(|one| one.status == 200).map(|one| permission(&one.method)).collect();
    assert_eq!(used, role().into_iter().map(str::to_owned).collect());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_instances_are_read_by_two_questions_a_poll() -> Result<()> {
    let compute = ComputeEngine::start().await?;
    let user = compute.user(&role()).await?;
    let mut instances = compute.instances(200, &Default::default()).await?;
    instances[199].id = "4711".to_owned();
    let hand = Hand::of(&compute, &user)?;
    let drivers: Vec<_> = instances.iter().map(|instance| hand.driver(instance)).collect();
    let orders = hand.orders(&drivers[0]).await;
    let call = hand.call(&orders, 60);
    let mut readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    let missing = readings.pop().expect("the last one").expect_err("its name is another's");
    assert_eq!(missing.kind, ErrorKind::IdentityMismatch, "not found is no word of power: {missing}");
    assert!(readings.iter().all(|reading| says(reading, Power::On)));

    let order = orders.off().await.expect("an order");
    let mut offs = join_all(drivers.iter().map(|driver| driver.power_off(&order, &call))).await;
    let gone = offs.pop().expect("the last one").expect_err("there is none");
    assert_eq!((gone.kind, gone.effect), (ErrorKind::IdentityMismatch, Effect::DidNotHappen), "{gone}");
    assert!(offs.iter().all(|off| off.as_ref().is_ok_and(|accepted| !accepted.already)), "{offs:?}");
    let mut polls = 0;
    loop {
        let before = compute.journal().await?.len();
        let readings = join_all(drivers[..199].iter().map(|driver| driver.read_power(&call))).await;
        let asked = compute.journal().await?;
        let count = |kind: &str| asked[before..].iter().filter(|one| one.method.ends_with(kind)).count();
        // Two lists of instances and one of what is under way there, unless this machine is busy. How our own stops ended is asked of fifty
        // at once; and what is stopped is looked at once more after that, those together whose answers come together.
        let ended = count("Operations.get");
        let (lists, looks) = (count("Operations.list"), count("instances.list") + count("instances.get"));
        assert!(lists <= 12 && looks <= 12 && ended <= 4, "{lists} {looks} {ended}");
        assert_eq!(asked.len() - before, lists + looks + ended);
        polls += 1;
        if readings.iter().all(|reading| says(reading, Power::Off)) {
            break;
        }
        assert!(polls < 1_000, "it never falls");
    }
    assert!(compute.violations("").await?.is_empty());
    assert_eq!(
        compute.journal().await?.iter().filter(|one| one.method == "instances.stop").count(),
        199,
        "one for each"
    );
    Ok(())
}

/// Stands at the permit, as a process does that was stopped there: nothing else of it runs meanwhile.
#[derive(Debug)]
struct Stopped(Duration);

impl Witness for Stopped {
    fn permitted(&self) {
        let began = Instant::now();
        while began.elapsed() < self.0 {
            std::thread::park_timeout(self.0 - began.elapsed());
        }
    }
}

/// S8: what was permitted a token's life ago is refused, by the far side where it is on its way with its token, and by us where it
/// would go with another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_start_that_was_permitted_long_ago_is_refused() -> Result<()> {
    let life = Duration::from_secs(12);
    let compute = compute().await?;
    let user = picket().await?;
    compute.life(&user, life.as_secs_f64()).await?;
    let [just_before, before] = [compute.instance(&[]).await?, compute.instance(&[]).await?];
    for instance in [&just_before, &before] {
        compute.switch(&instance.id, "TERMINATED").await?;
    }
    let hand = Hand::of(compute, &user)?;
    let driver = hand.driver(&just_before);
    let orders = hand.orders(&driver).await;
    driver.read_power(&hand.call(&orders, 60)).await.expect("a reading");
    let on = orders.on().await.expect("an order");
    let kept = hand.call(&orders, 600).before(Arc::new(Stopped(life + Duration::from_secs(1))));
    let late = driver.power_on(on, &kept).await.expect_err("it is too late");
    assert_eq!((late.kind, late.effect), (ErrorKind::Authentication, Effect::DidNotHappen), "{late}");

    let driver = Hand::of(compute, &user)?.driver(&before);
    let on = orders.on().await.expect("an order");
    Stopped(Duration::from_millis(50)).permitted();
    driver.read_power(&hand.call(&orders, 60)).await.expect("a reading, by a new token");
    let early = driver.power_on(on, &hand.call(&orders, 60)).await.expect_err("the token is newer");
    assert_eq!((early.kind, early.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{early}");
    assert!(early.detail.contains("newer than the store's last word"), "{early}");
    for instance in [&just_before, &before] {
        assert_eq!(compute.state(&instance.id).await?, "TERMINATED");
    }
    let heard = compute.asked_to("instances.start", &just_before.id).await?;
    assert_eq!(heard.iter().map(|one| one.status).collect::<Vec<_>>(), [401], "{heard:#?}");
    assert!(compute.asked_to("instances.start", &before.id).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_disk_is_going_while_its_detach_is_under_way_and_free_after_it() -> Result<()> {
    let compute = compute().await?;
    let user = picket().await?;
    let instance = compute.instance(&["data"]).await?;
    let hand = Hand::of(compute, &user)?;
    let driver = hand.driver(&instance);
    let orders = hand.orders(&driver).await;
    let volumes = driver.volumes().expect("volumes");
    let disk = &instance.disks["data"];
    let id = format!("projects/{}/zones/{}/disks/{disk}", compute.project(), instance.zone);
    let at = VolumeAt { id, device: "data".to_owned() };
    let standing = async || volumes.standing(&at, &hand.call(&orders, 30)).await.expect("told");
    assert!(matches!(standing().await, Standing::Attached(_)));
    compute.switch(&instance.id, "TERMINATED").await?;
    compute.treat(&instance.id, &GceTreatment { detaching: Some(2.0), ..GceTreatment::default() }).await?;
    let scene = Plan::new().by(&user, &instance).await?;
    assert_eq!(scene.by_hand("detachDisk?deviceName=data").await?, 200);
    let Standing::Going(words) = standing().await else { panic!("it is on its way") };
    assert!(words.contains("detachDisk"), "{words}");
    while !matches!(standing().await, Standing::Free(_)) {
        tokio::task::yield_now().await;
    }
    assert!(compute.disk(disk).await?.users.is_empty());
    Ok(())
}
