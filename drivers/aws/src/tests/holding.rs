//! The tag that keeps off: what stood before a fence stands after it. What would bar an off is said.

use std::time::Duration;

use picket_driver::Call;
use tokio::time::Instant;

use super::ec2::Fault;
use super::{Scene, id};

const TAG: &str = "picket-fenced";

#[tokio::test]
async fn a_tag_that_stood_before_stays_and_nobodys_value_is_written_over() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let set = |value: &str| {
        scene.ec2.with(|world| {
            let tags = &mut world.machines.get_mut(&id(0)).expect("there").tags;
            tags.insert(TAG.to_owned(), value.to_owned());
        });
    };
    // Another gateway's, or a person's, and whatever its value is.
    for (value, stands) in [("picket", true), ("mine", false)] {
        set(value);
        let found = driver.inspect_hold(&call).await.expect("inspected");
        let held = driver.engage_hold(&orders.hold(&found).await.expect("an order"), &call).await;
        let held = held.expect("told");
        assert_eq!((held.engaged.len(), held.detail.is_empty()), (usize::from(stands), false), "{held:?}");
        assert_eq!(driver.engaged(&found), held.engaged);
        let undone = driver.disengage_hold(&orders.unhold(&found).await.expect("an order"), &call).await;
        undone.expect("told");
        assert_eq!(
            scene.ec2.with(|world| world.machines[&id(0)].tags.get(TAG).cloned()).as_deref(),
            Some(value)
        );
    }
    assert_eq!(scene.ec2.heard("CreateTags").len() + scene.ec2.heard("DeleteTags").len(), 0);
}

#[tokio::test]
async fn who_tags_it_after_it_was_inspected_is_not_written_over() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let found = driver.inspect_hold(&call).await.expect("inspected");
    scene.ec2.with(|world| {
        world.machines.get_mut(&id(0)).expect("there").tags.insert(TAG.to_owned(), "mine".to_owned())
    });
    scene.ahead(3);
    let order = orders.hold(&found).await.expect("an order");
    let held = driver.engage_hold(&order, &call).await.expect("told");
    assert!(held.engaged.is_empty() && held.detail.contains("\"mine\""), "{held:?}");
    assert_eq!(scene.ec2.heard("CreateTags").len(), 0);
    // Our own, whose answer was lost, is set again.
    scene.ec2.with(|world| {
        world.machines.get_mut(&id(0)).expect("there").tags.insert(TAG.to_owned(), "picket".to_owned())
    });
    assert_eq!(driver.engage_hold(&order, &call).await.expect("told").engaged.len(), 1);
    driver.disengage_hold(&orders.unhold(&found).await.expect("an order"), &call).await.expect("untagged");
    assert!(scene.ec2.with(|world| world.machines[&id(0)].tags.is_empty()));
    // EC2 may show for a while what was taken away.
    scene.ec2.with(|world| {
        world.machines.get_mut(&id(0)).expect("there").tags.insert(TAG.to_owned(), "picket".to_owned())
    });
    let found = driver.inspect_hold(&call).await.expect("inspected");
    assert!(driver.engaged(&found).is_empty(), "{found:?}");
}

#[tokio::test]
async fn what_bars_an_off_stays_said_until_it_is_known_to_be_gone() {
    let scene = Scene::new(1).await;
    let driver = scene.driver(0);
    let check = || Call::reading(Instant::now() + Duration::from_secs(15), scene.clock.clone());
    let protect = |is_protected| scene.ec2.with(|world| world.is_protected = is_protected);
    let denied = "User: arn:aws:iam::1:user/p is not authorized to perform: ec2:DescribeInstanceAttribute";
    let fail = || {
        scene.ec2.fail("DescribeInstanceAttribute", Fault::Refuse("UnauthorizedOperation", denied, 403));
    };
    fail();
    driver.identify(&check()).await.expect("told");
    let said = driver.remarks().join("\n");
    assert!(
        said.contains("could not be asked") && said.contains("ec2:DescribeInstanceAttribute is missing"),
        "{said}"
    );
    protect(true);
    driver.identify(&check()).await.expect("told");
    let barred = driver.obstacles();
    assert!(barred.len() == 1 && barred[0].contains("its disableApiStop is set"), "{barred:?}");
    fail();
    driver.identify(&check()).await.expect("told");
    assert_eq!(driver.obstacles(), barred, "it was not heard that this is over");
    protect(false);
    driver.identify(&check()).await.expect("told");
    assert_eq!((driver.remarks(), driver.obstacles()), (Vec::new(), Vec::new()));
}
