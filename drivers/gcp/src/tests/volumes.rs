//! An instance's volumes, as it and the disks tell them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use picket_driver::{Effect, ErrorKind, Standing, VolumeAt, Witness};
use tokio::sync::Notify;

use super::compute::{Fault, PROJECT, ZONE};
use super::{Scene, id};

fn at(disk: &str, device: &str) -> VolumeAt {
    VolumeAt {
        id: format!("projects/{PROJECT}/zones/{ZONE}/disks/{disk}-{}", id(0)),
        device: device.to_owned(),
    }
}

#[tokio::test]
async fn what_is_attached_is_told_in_full_and_what_stays_is_said() {
    let scene = Scene::new(1).await;
    scene.compute.machine(&id(0), |machine| machine.has_ssd = true);
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let volumes = driver.volumes().expect("volumes").attached(&scene.call(&orders)).await.expect("told");
    let shown: Vec<_> =
        volumes.iter().map(|volume| (volume.at.device.as_str(), volume.stays.is_some())).collect();
    assert_eq!(shown, [("boot", true), ("data", false), ("local-ssd-0", true)]);
    let data = &volumes[1];
    assert_eq!((&data.at, data.name.as_str()), (&at("data", "data"), format!("data-{}", id(0)).as_str()));
    assert_eq!(data.tags.get("of").map(String::as_str), Some("a test"));
    // What cannot be told in full is an error.
    scene.compute.fail("disks.get", Fault::Refuse(403, "forbidden", "No."));
    let error =
        driver.volumes().expect("volumes").attached(&scene.call(&orders)).await.expect_err("not told");
    assert_eq!(error.kind, ErrorKind::Forbidden, "{error}");
    assert!(error.detail.contains("compute.disks.get may be missing"), "{error}");
    let words =
        "The resource 'projects/p-1/zones/europe-west1-b/disks/data-1000000000000000000' was not found";
    scene.compute.fail("disks.get", Fault::Refuse(404, "notFound", words));
    let error =
        driver.volumes().expect("volumes").attached(&scene.call(&orders)).await.expect_err("not told");
    assert!(error.detail.contains("does not know that"), "{error}");
}

#[tokio::test]
async fn a_disk_is_attached_until_both_say_otherwise() {
    let scene = Scene::new(2).await;
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let volumes = driver.volumes().expect("volumes");
    let standing = async || volumes.standing(&at("data", "data"), &scene.call(&orders)).await.expect("told");
    assert!(matches!(standing().await, Standing::Attached(_)));
    scene.compute.machine(&id(0), |machine| machine.disks.retain(|(device, _)| device != "data"));
    assert!(matches!(standing().await, Standing::Free(_)));
    // Somebody else has it.
    let disk = format!("data-{}", id(0));
    scene.compute.machine(&id(1), |machine| machine.disks.push(("theirs".to_owned(), disk)));
    let Standing::Free(words) = standing().await else { panic!("it is another's") };
    assert_eq!(words, "in use by 1 other");
    // The instance is gone, and so is what it had: the disk's users tell, each by who has its name.
    let gone = scene.compute.with(|world| world.machines.remove(&id(0))).expect("there");
    let Standing::Free(words) = standing().await else { panic!("it is another's") };
    assert_eq!(words, "the instance is gone; in use by 1 other");
    assert_eq!(volumes.attached(&scene.call(&orders)).await.expect("told"), []);
    // A group made it anew, by the same name, and with the same disk.
    scene.compute.machine(&id(1), |machine| machine.name = gone.name);
    assert!(matches!(standing().await, Standing::Free(_)));
    scene.compute.fail("instances.get", Fault::Then(|world| world.machines.clear()));
    let Standing::Going(words) = standing().await else { panic!("whose it is is not known") };
    assert!(words.ends_with("which is not there"), "{words}");
    assert!(matches!(standing().await, Standing::Free(_)), "nobody has it");
}

/// S4: what Compute Engine says right before a detach is newer than what it was permitted by.
#[tokio::test]
async fn what_runs_by_now_loses_nothing() {
    let (scene, driver, orders) = Scene::of_one().await;
    driver.read_power(&scene.call(&orders)).await.expect("told");
    let releasing = orders.release(Duration::from_secs(7_200)).await.expect("stored");
    let permit = orders.release_permit(&releasing).await.expect("permitted");
    let (volumes, at) = (driver.volumes().expect("volumes"), at("data", "data"));
    let detach = async || volumes.detach(&releasing.order, &permit, &at, false, &scene.call(&orders)).await;
    let error = detach().await.expect_err("it runs");
    assert!(error.effect == Effect::DidNotHappen && error.detail.contains("it is RUNNING"), "{error:?}");
    let has_it = || {
        scene.compute.with(|world| world.machines[&id(0)].disks.iter().any(|(device, _)| device == "data"))
    };
    assert!(has_it());
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    detach().await.expect("it is off");
    assert!(!has_it());
}

/// That a detach was taken says little: how its operation ended is told while the disk is attached still, and no longer.
#[tokio::test]
async fn a_detach_whose_operation_came_to_nothing_says_why() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    driver.read_power(&scene.call(&orders)).await.expect("told");
    let releasing = orders.release(Duration::from_secs(7_200)).await.expect("stored");
    let permit = orders.release_permit(&releasing).await.expect("permitted");
    let (volumes, at) = (driver.volumes().expect("volumes"), at("data", "data"));
    volumes.detach(&releasing.order, &permit, &at, false, &scene.call(&orders)).await.expect("taken");
    let attached = |machine: &mut super::compute::Machine| {
        machine.disks.push(("data".to_owned(), format!("data-{}", id(0))))
    };
    scene.compute.machine(&id(0), attached);
    let words = async |driver: &dyn picket_driver::PowerDriver| {
        let volumes = driver.volumes().expect("volumes");
        match volumes.standing(&at, &scene.call(&orders)).await.expect("told") {
            Standing::Attached(words) | Standing::Going(words) | Standing::Free(words) => words,
        }
    };
    assert_eq!(words(&*driver).await, "attached, READY", "it ended without an error");
    scene.compute.with(|world| world.operations[0].error = Some("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"));
    let why = "attached, READY; our detach operation-0 came to nothing: RESOURCE_IN_USE_BY_ANOTHER_RESOURCE: it came to nothing";
    assert_eq!(words(&*driver).await, why);
    // Also by a device that is made anew, by other settings.
    assert_eq!(words(&*scene.driver_with(0, serde_json::json!({ "discard_local_ssd": true }))).await, why);
    // Who does not answer for that hides nothing of the disk.
    scene.compute.fail("zoneOperations.get", Fault::Refuse(403, "forbidden", "No."));
    assert_eq!(words(&*driver).await, "attached, READY");
    scene.compute.machine(&id(0), |machine| machine.disks.retain(|(device, _)| device != "data"));
    assert!(words(&*driver).await.starts_with("nobody uses it"));
}

/// S4: what was proven off lets nothing go while Compute Engine does not say that it is off. A person's word stands there.
#[tokio::test]
async fn what_does_not_say_that_it_is_off_by_now_loses_nothing() {
    let (scene, driver, orders) = Scene::of_one().await;
    driver.read_power(&scene.call(&orders)).await.expect("told");
    let life = Duration::from_secs(7_200);
    let proven = orders.proven_release(life).await.expect("stored");
    let vouched = orders.release(life).await.expect("stored");
    let (volumes, at) = (driver.volumes().expect("volumes"), at("data", "data"));
    let detach = async |releasing| {
        let permit = orders.release_permit(releasing).await.expect("permitted");
        volumes.detach(&releasing.order, &permit, &at, false, &scene.call(&orders)).await
    };
    for status in ["PROVISIONING", "STAGING", "STOPPING", "SUSPENDING", "SUSPENDED", "REPAIRING"] {
        scene.compute.machine(&id(0), |machine| machine.status = status);
        let error = detach(&proven).await.expect_err(status);
        assert!(error.effect == Effect::DidNotHappen && error.detail.contains(status), "{error:?}");
    }
    assert_eq!(scene.compute.heard("instances.detachDisk").len(), 0);
    detach(&vouched).await.expect("a person looked at it");
    assert_eq!(scene.compute.heard("instances.detachDisk").len(), 1);
    scene
        .compute
        .machine(&id(0), |machine| machine.disks.push(("data".to_owned(), format!("data-{}", id(0)))));
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    detach(&proven).await.expect("it is off");
    assert_eq!(scene.compute.heard("instances.detachDisk").len(), 2);
}

/// A hook that acts when a detach is permitted for the second time, right before the connection is made.
struct Then<F>(AtomicU64, F);

impl<F> std::fmt::Debug for Then<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Then")
    }
}

impl<F: Fn() + Send + Sync> Witness for Then<F> {
    fn permitted(&self) {
        if self.0.fetch_add(1, Ordering::SeqCst) == 1 {
            self.1();
        }
    }
}

/// S4: a breach cuts the call off, and what connects for it goes on by itself.
#[tokio::test]
async fn a_detach_whose_caller_was_cut_off_is_not_sent() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("told");
    let releasing = orders.release(Duration::from_secs(7_200)).await.expect("stored");
    let permit = orders.release_permit(&releasing).await.expect("permitted");
    let (volumes, at) = (driver.volumes().expect("volumes"), at("data", "data"));
    let breach = Arc::new(Notify::new());
    let found_on = breach.clone();
    let watched = call.clone().before(Arc::new(Then(AtomicU64::new(0), move || found_on.notify_one())));
    tokio::select! {
        biased;
        told = volumes.detach(&releasing.order, &permit, &at, false, &watched) => panic!("{told:?}"),
        () = breach.notified() => {}
    }
    for _ in 0..3 {
        driver.read_power(&call).await.expect("told");
    }
    assert_eq!(scene.compute.heard("instances.detachDisk").len(), 0);
    // The same detach is sent where its caller waits for it.
    volumes.detach(&releasing.order, &permit, &at, false, &call).await.expect("it is off");
    assert_eq!(scene.compute.heard("instances.detachDisk").len(), 1);
}

/// S4: a connection takes seconds, and who was off when it began may be on when it is there.
#[tokio::test]
async fn a_detach_whose_look_grew_old_is_not_sent() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("told");
    let releasing = orders.release(Duration::from_secs(7_200)).await.expect("stored");
    let permit = orders.release_permit(&releasing).await.expect("permitted");
    let (volumes, at) = (driver.volumes().expect("volumes"), at("data", "data"));
    // The instance itself is looked at once more, and that look is what counts.
    scene.ahead(3);
    volumes.detach(&releasing.order, &permit, &at, false, &call).await.expect("it is off just now");
    let clock = scene.clock.clone();
    let slow = Then(AtomicU64::new(0), move || clock.ahead(3));
    scene
        .compute
        .machine(&id(0), |machine| machine.disks.push(("data".to_owned(), format!("data-{}", id(0)))));
    let told = volumes.detach(&releasing.order, &permit, &at, false, &call.before(Arc::new(slow))).await;
    let error = told.expect_err("it was off three seconds ago");
    assert!(error.effect == Effect::DidNotHappen && error.detail.contains("longer than 2s ago"), "{error:?}");
    assert_eq!(scene.compute.heard("instances.detachDisk").len(), 1);
}

/// Another zone, or another project, has the same answer for it.
#[tokio::test]
async fn what_was_never_there_is_not_without_disks() {
    let scene = Scene::new(1).await;
    scene.compute.with(|world| world.machines.remove(&id(0))).expect("there");
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let told = driver.volumes().expect("volumes").attached(&scene.call(&orders)).await;
    let error = told.expect_err("whose disks they are is not known");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
}
