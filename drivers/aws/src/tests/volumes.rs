//! Volumes as the instance and EBS show them: what is not told in full is not let go, and costs no volume.

use std::sync::Arc;

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver, Standing, VolumeAt};
use serde_json::json;

use super::ec2::Fault;
use super::{Scene, id};

#[tokio::test]
async fn an_instance_is_terminated_only_once_its_volumes_are_read_to_be_kept() {
    let scene = Scene::new(2).await;
    scene.ec2.with(|world| world.machines.get_mut(&id(1)).expect("there").forgets = true);
    let settings = json!({ "terminate": true, "terminate_deletes": ["/dev/xvda"] });
    let (keeps, forgets) = (scene.driver_with(0, settings.clone()), scene.driver_with(1, settings));
    let orders = scene.orders(&keeps).await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    let error = forgets.power_off(&order, &call).await.expect_err("not kept");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("/dev/sdf"), "{error}");
    assert_eq!((scene.ec2.state(&id(1)), scene.ec2.heard("TerminateInstances").len()), ("running", 0));
    assert!(!keeps.power_off(&order, &call).await.expect("taken").already);
    let left = scene.ec2.with(|world| world.machines[&id(0)].volumes.clone());
    assert_eq!(left, [("/dev/sdf".to_owned(), false)].into());
    assert_eq!(keeps.read_power(&call).await.expect("read").power, Power::Off, "terminated, with that id");
    assert!(keeps.power_off(&order, &call).await.expect("off").already);
    assert_eq!(scene.ec2.heard("TerminateInstances").len(), 1);
}

#[tokio::test]
async fn an_instance_that_shows_no_volumes_is_not_terminated() {
    let scene = Scene::new(1).await;
    let shy = |is_shy| scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").is_shy = is_shy);
    let unlist = |devices: &[&str]| {
        scene.ec2.with(|world| world.unlisted = devices.iter().map(|&device| device.to_owned()).collect());
    };
    let driver = scene.driver_with(0, json!({ "terminate": true }));
    let orders = scene.orders(&driver).await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    shy(true);
    unlist(&["/dev/xvda", "/dev/sdf"]);
    let error = driver.power_off(&order, &call).await.expect_err("nobody knows what goes with it");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    assert_eq!((scene.ec2.heard("TerminateInstances").len(), scene.ec2.state(&id(0))), (0, "running"));
    // What EBS alone has there is kept as well.
    unlist(&[]);
    driver.power_off(&order, &call).await.expect("taken");
    let left = scene.ec2.with(|world| world.machines[&id(0)].volumes.clone());
    assert_eq!(left, [("/dev/sdf".to_owned(), false), ("/dev/xvda".to_owned(), false)].into());
}

#[tokio::test]
async fn of_what_is_attached_the_root_stays_and_what_ebs_does_not_know_is_an_error() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let volumes = driver.volumes().expect("it knows of volumes");
    let told = volumes.attached(&call).await.expect("told");
    let told: Vec<_> = told.into_iter().map(|one| (one.at.id, one.at.device, one.stays.is_some())).collect();
    let wanted = |device: &str, stays| (format!("vol-{}", device.replace('/', "")), device.to_owned(), stays);
    assert_eq!(told, [wanted("/dev/sdf", false), wanted("/dev/xvda", true)]);
    // By a tag of it that is not told now it may be to stay.
    scene.ec2.with(|world| world.unlisted.insert("/dev/sdf".to_owned()));
    let error = volumes.attached(&call).await.expect_err("not known");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("EBS knows no such volume"), "{error}");
    // The root is missing in what the instance has.
    scene.ec2.with(|world| {
        world.unlisted.clear();
        world.machines.get_mut(&id(0)).expect("there").volumes.remove("/dev/xvda");
    });
    let error = volumes.attached(&call).await.expect_err("which is the root?");
    assert!(error.detail.contains("root") && error.detail.contains("/dev/sdf"), "{error}");
}

#[tokio::test]
async fn what_was_changed_before_a_termination_that_is_refused_is_said() {
    let scene = Scene::new(1).await;
    let driver = scene.driver_with(0, json!({ "terminate": true }));
    let orders = scene.orders(&driver).await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    let words = "The instance may not be terminated: modify its 'disableApiTermination'.";
    scene.ec2.fail("TerminateInstances", Fault::Refuse("OperationNotPermitted", words, 400));
    let error = driver.power_off(&order, &call).await.expect_err("barred");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("the volumes at /dev/sdf, /dev/xvda were told to be kept"), "{error}");
    assert_eq!(driver.gone_for_good(), None);
}

/// After an hour EC2 knows nothing of it: who saw it terminated needs EBS's word alone.
#[tokio::test]
async fn what_was_terminated_and_is_forgotten_has_no_volumes() {
    let scene = Scene::new(1).await;
    let (saw, did_not) = (scene.driver(0), scene.driver(0));
    let orders = scene.orders(&saw).await;
    let call = scene.call(&orders);
    scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").state = "terminated");
    assert_eq!(saw.read_power(&call).await.expect("read").power, Power::Off);
    let why = saw.gone_for_good().expect("terminated");
    assert!(why.contains(&id(0)) && why.contains("terminated"), "{why}");
    scene.ec2.with(|world| world.machines.clear());
    assert_eq!(saw.read_power(&call).await.expect("read").power, Power::Unknown, "not found is no off");
    let at = VolumeAt { id: "vol-1".to_owned(), device: "/dev/sdf".to_owned() };
    let standing = saw.volumes().expect("it has").standing(&at, &call).await.expect("told");
    assert!(matches!(standing, Standing::Free(_)), "{standing:?}");
    let error = did_not.volumes().expect("it has").standing(&at, &call).await.expect_err("who knows?");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    assert_eq!(did_not.gone_for_good(), None);
}

/// Those of a thousand who come first go first, and none goes before its turn.
#[tokio::test]
async fn detaches_go_in_the_order_in_which_they_were_asked_for() {
    let scene = Scene::new(60).await;
    let drivers: Vec<_> = (0..60).map(|number| scene.driver(number)).collect();
    let turn = |driver: &Arc<dyn PowerDriver>| driver.volumes().expect("it has").turn();
    let turns: Vec<_> = drivers.iter().map(turn).collect();
    assert!(turns[..50].iter().all(Option::is_none), "as many as AWS takes at once: {turns:?}");
    let later: Vec<_> = turns[50..].iter().map(|turn| turn.expect("not yet")).collect();
    assert!(later.is_sorted() && later[9].as_secs_f64() > 1.5, "five a second: {later:?}");
    assert!(turn(&drivers[55]).expect("not yet") <= later[5], "its place is kept");
    let at = VolumeAt { id: "vol-devsdf".to_owned(), device: "/dev/sdf".to_owned() };
    for (number, goes) in [(0, true), (55, false)] {
        let driver = &drivers[number];
        let orders = scene.orders(driver).await;
        let call = scene.call(&orders);
        driver.read_power(&call).await.expect("read");
        let volumes = driver.volumes().expect("it has");
        let order = orders.release(volumes.max_in_flight().expect("bounded")).await.expect("an order");
        let permit = orders.release_permit(&order).await.expect("a permit");
        let told = volumes.detach(&order.order, &permit, &at, false, &call).await;
        let throttled = |error: &picket_driver::DriverError| {
            (error.kind, error.effect) == (ErrorKind::Throttled, Effect::DidNotHappen)
        };
        assert!(if goes { told.is_ok() } else { told.as_ref().is_err_and(throttled) }, "{number}: {told:?}");
    }
    assert_eq!(scene.ec2.heard("DetachVolume").len(), 1);
}

/// EC2 tells no end of a detach: a volume that is attached all the same says that one of ours was taken.
#[tokio::test]
async fn a_detach_that_came_to_nothing_is_told_with_how_the_volume_stands() {
    let (scene, driver, orders) = Scene::of_one().await;
    let at = VolumeAt { id: "vol-devsdf".to_owned(), device: "/dev/sdf".to_owned() };
    let volumes = driver.volumes().expect("it has");
    let words = async || match volumes.standing(&at, &scene.call(&orders)).await.expect("told") {
        Standing::Attached(words) => words,
        other => panic!("{other:?}"),
    };
    assert_eq!(words().await, "attached");
    driver.read_power(&scene.call(&orders)).await.expect("read");
    let order = orders.release(volumes.max_in_flight().expect("bounded")).await.expect("an order");
    let permit = orders.release_permit(&order).await.expect("a permit");
    volumes.detach(&order.order, &permit, &at, false, &scene.call(&orders)).await.expect("taken");
    // EC2 shows late what it took.
    assert_eq!(words().await, "attached");
    scene.ahead(30);
    let told = words().await;
    assert!(told.starts_with("attached, though EC2 took our detach of it 3"), "{told}");
    scene.ahead(3_600);
    assert!(words().await.ends_with("s ago"), "as long as it is attached");
}

/// S4: EC2 detaches from who runs, and who was off when the attempt was permitted may run by now.
#[tokio::test]
async fn a_detach_whose_look_grew_old_is_not_sent() {
    let (scene, driver, orders) = Scene::of_one().await;
    driver.read_power(&scene.call(&orders)).await.expect("read");
    let volumes = driver.volumes().expect("it has");
    let order = orders.release(volumes.max_in_flight().expect("bounded")).await.expect("an order");
    let permit = orders.release_permit(&order).await.expect("a permit");
    let at = VolumeAt { id: "vol-devsdf".to_owned(), device: "/dev/sdf".to_owned() };
    scene.ahead(3);
    let told = volumes.detach(&order.order, &permit, &at, false, &scene.call(&orders)).await;
    let error = told.expect_err("it was off three seconds ago");
    assert!(error.effect == Effect::DidNotHappen && error.detail.contains("longer than 2s ago"), "{error:?}");
    assert_eq!(scene.ec2.heard("DetachVolume").len(), 0);
}
