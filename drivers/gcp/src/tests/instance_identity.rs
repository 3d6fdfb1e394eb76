//! S13: a number that was copied from another line is another machine's, and what is done to that is done to the wrong one.

use picket_core::device::IdentityMatch;
use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, VolumeAt};
use serde_json::json;

use super::compute::{PROJECT, ZONE};
use super::{Scene, id};

#[tokio::test]
async fn an_instance_that_is_called_otherwise_is_neither_touched_nor_believed() {
    let scene = Scene::new(2).await;
    // The name of the first one, and the number of the second one.
    let name = format!("gce://{PROJECT}/{ZONE}/vm-{}", id(0));
    let driver = scene.driver_with(1, json!({ "instance": name }));
    let orders = scene.orders(&driver).await;
    let call = scene.call(&orders);
    scene.compute.machine(&id(1), |machine| machine.status = "TERMINATED");
    let error = driver.read_power(&call).await.expect_err("another's");
    assert_eq!((error.kind, error.effect), (ErrorKind::IdentityMismatch, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("one of the two is another machine's"), "{error}");
    let said = driver.identify(&call).await.expect("told").identity;
    assert_eq!(driver.names().compare(&said), IdentityMatch::Mismatch);
    let words = said.words();
    assert!(
        words.contains(&format!("whose number is {}", id(0))) && words.contains("called \"vm-"),
        "{words}"
    );
    let off = driver.power_off(&orders.off().await.expect("an order"), &call).await.expect_err("another's");
    let on = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("another's");
    let volumes = driver.volumes().expect("volumes");
    let attached = volumes.attached(&call).await.expect_err("another's");
    let at =
        VolumeAt { id: "projects/p-1/zones/europe-west1-b/disks/data".to_owned(), device: "data".to_owned() };
    let standing = volumes.standing(&at, &call).await.expect_err("another's");
    for error in [off, on, attached, standing] {
        assert_eq!(
            (error.kind, error.effect),
            (ErrorKind::IdentityMismatch, Effect::DidNotHappen),
            "{error}"
        );
        assert!(error.detail.contains(&format!("\"vm-{}\"", id(0))), "{error}");
    }
    assert_eq!(scene.compute.heard("instances.stop").len() + scene.compute.heard("instances.start").len(), 0);
    // Once it is called so again it is the node's.
    scene.compute.with(|world| {
        let first = world.machines.remove(&id(0)).expect("there");
        world.machines.get_mut(&id(1)).expect("there").name = first.name;
    });
    assert_eq!(driver.read_power(&call).await.expect("read").power, Power::Off);
    assert_eq!(driver.identify(&call).await.expect("told").identity, driver.names());
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
}

/// Without a name the number alone says whose it is.
#[tokio::test]
async fn a_number_alone_is_believed() {
    let scene = Scene::new(1).await;
    let driver =
        scene.driver_with(0, json!({ "instance": format!("gce://{PROJECT}/{ZONE}/{}", id(0)), "id": null }));
    let orders = scene.orders(&driver).await;
    let call = scene.call(&orders);
    assert_eq!(driver.identify(&call).await.expect("told").identity, driver.names());
    driver.power_off(&orders.off().await.expect("an order"), &call).await.expect("taken");
}
