//! S1: what is missing in an answer says nothing. It is not "none", and not "no".

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, Standing, VolumeAt};

use super::compute::{Fault, PROJECT, ZONE};
use super::{Scene, id};

/// A list of operations with this in it.
macro_rules! operations {
    ($rest:literal) => {
        concat!("{\"kind\":\"compute#operationList\"", $rest, "}")
    };
}

#[tokio::test]
async fn only_a_whole_list_of_operations_says_that_nothing_is_under_way() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    for text in [
        "{}",
        "[]",
        r#"{"kind":"compute#instanceList"}"#,
        r#"{"error":{"code":500}}"#,
        operations!(r#","warning":{"code":"UNREACHABLE"}"#),
        operations!(r#","warning":{}"#),
        operations!(r#","unreachables":["a cell"]"#),
        operations!(r#","items":"none""#),
    ] {
        for _ in 0..2 {
            scene.compute.fail("zoneOperations.list", Fault::Say(200, text));
        }
        let error = driver.read_power(&call).await.expect_err("it says nothing");
        assert_eq!(
            (error.kind, error.effect),
            (ErrorKind::Protocol, Effect::DidNotHappen),
            "{text}: {error}"
        );
        let short = scene.call_of(&orders, std::time::Duration::from_millis(100));
        driver.quiesce(&short).await.expect_err("it is not known what is under way");
    }
    for (text, power) in [
        (operations!(""), Power::Off),
        (operations!(r#","warning":{"code":"NO_RESULTS_ON_PAGE"}"#), Power::Off),
        // Whose it is, or what it is, is not told.
        (
            operations!(r#","items":[{"name":"o","operationType":"start","status":"RUNNING"}]"#),
            Power::Unknown,
        ),
        (operations!(r#","items":[5]"#), Power::Unknown),
        (operations!(r#","items":[{"name":5,"targetId":"18"}]"#), Power::Off),
        (
            operations!(
                r#","items":[{"name":"o","operationType":"start","targetLink":"https://x/instances/db-9"}]"#
            ),
            Power::Off,
        ),
    ] {
        scene.compute.fail("zoneOperations.list", Fault::Say(200, text));
        let reading = driver.read_power(&call).await.expect("read");
        assert_eq!(reading.power, power, "{text}: {reading:?}");
    }
}

#[tokio::test]
async fn an_instance_that_does_not_tell_its_disks_has_not_none() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let volumes = driver.volumes().expect("volumes");
    let data = VolumeAt {
        id: format!("projects/{PROJECT}/zones/{ZONE}/disks/data-{}", id(0)),
        device: "data".to_owned(),
    };
    macro_rules! instance {
        ($rest:literal) => {
            concat!("{\"id\":\"1000000000000000000\",\"name\":\"vm-1000000000000000000\"", $rest, "}")
        };
    }
    for (text, word) in [
        (instance!(""), "which disks"),
        (instance!(r#","disks":[]"#), "which disks"),
        (
            instance!(r#","disks":[{"deviceName":"data","source":"https://x/projects/p/zones/z/disks/d"}]"#),
            "boot disk",
        ),
        (
            instance!(r#","disks":[{"boot":false,"source":"https://x/projects/p/zones/z/disks/d"}]"#),
            "does not say which",
        ),
        ("{}", "missing field"),
        ("[]", "makes no sense"),
    ] {
        scene.compute.fail("instances.get", Fault::Say(200, text));
        let error = volumes.attached(&call).await.expect_err("not told");
        assert_eq!(
            (error.kind, error.effect),
            (ErrorKind::Protocol, Effect::DidNotHappen),
            "{text}: {error}"
        );
        assert!(error.detail.contains(word), "{text}: {error}");
        if word != "does not say which" {
            scene.compute.fail("instances.get", Fault::Say(200, text));
            let error = volumes.standing(&data, &call).await.expect_err("not told");
            assert_eq!(error.kind, ErrorKind::Protocol, "{text}: {error}");
        }
    }
    assert!(matches!(volumes.standing(&data, &call).await, Ok(Standing::Attached(_))));
}

#[tokio::test]
async fn a_disk_that_is_not_told_in_full_or_not_by_compute_engine_is_not_free() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let volumes = driver.volumes().expect("volumes");
    let data = VolumeAt {
        id: format!("projects/{PROJECT}/zones/{ZONE}/disks/data-{}", id(0)),
        device: "data".to_owned(),
    };
    scene.compute.machine(&id(0), |machine| machine.disks.truncate(1));
    for (status, text) in [
        (200, "{}"),
        (200, r#"{"name":"data-1000000000000000000"}"#),
        (200, r#"{"name":"another","status":"READY"}"#),
        (404, "<html>no such page</html>"),
        (404, "{}"),
        (
            404,
            r#"{"error":{"message":"The resource 'projects/p-1' was not found","errors":[{"reason":"notFound"}]}}"#,
        ),
    ] {
        scene.compute.fail("disks.get", Fault::Say(status, text));
        let told = volumes.standing(&data, &call).await;
        assert!(told.is_err(), "{status} {text}: {told:?}");
    }
    assert!(matches!(volumes.standing(&data, &call).await, Ok(Standing::Free(_))));
    let words =
        "The resource 'projects/p-1/zones/europe-west1-b/disks/data-1000000000000000000' was not found";
    scene.compute.fail("disks.get", Fault::Refuse(404, "notFound", words));
    assert!(matches!(volumes.standing(&data, &call).await, Ok(Standing::Free(_))));
}

/// A proxy's 404 does not say that an instance is gone.
#[tokio::test]
async fn who_does_not_know_compute_engine_does_not_say_what_is_not_there() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    for text in ["<html>no such page</html>", "{}", ""] {
        scene.compute.fail("instances.get", Fault::Say(404, text));
        let error = driver.read_power(&call).await.expect_err("nobody knows");
        assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{text}: {error}");
    }
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!(reading.power, Power::On);
}
