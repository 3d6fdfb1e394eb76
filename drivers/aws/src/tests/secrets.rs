//! S18: what the SDK would log of its requests is not heard, however much is to be logged.

use picket_cloud::fakes::Log;
use picket_driver::{DriverKind, ErrorKind};
use serde_json::json;

use super::ec2::Fault;
use super::{Scene, id};

#[tokio::test]
async fn no_secret_is_logged_where_everything_is() {
    let log = Log::of_everything();
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    driver.power_off(&orders.off().await.expect("an order"), &call).await.expect("taken");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    let text = log.text();
    for secret in ["hunter2", "hunter3", "Signature="] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}

/// A proxy may repeat the request in its answer: the secrets of that are not shown.
#[tokio::test]
async fn no_token_is_shown_that_an_answer_repeats() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.ec2.fail("DescribeInstances", Fault::Refuse("AuthFailure", "You sent hunter3", 401));
    let error = driver.read_power(&scene.call(&orders)).await.expect_err("refused").to_string();
    assert!(error.contains("You sent [struck out]") && !error.contains("hunter3"), "{error}");
}

/// What STS answers has keys in it, also where nobody can read it.
#[tokio::test]
async fn no_answer_of_sts_is_shown() {
    let scene = Scene::new(1).await;
    let config = format!(
        "[default]\nregion = eu-central-1\nrole_arn = arn:aws:iam::123456789012:role/picket\nsource_profile = base\nservices = here\n\
         [profile base]\nregion = eu-central-1\n[services here]\nsts =\n  endpoint_url = {}\n",
        scene.ec2.endpoint
    );
    std::fs::write(scene.home.path().join("config"), config).expect("written");
    let keys = "[base]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2\naws_session_token = hunter3\n";
    std::fs::write(scene.home.path().join("credentials"), keys).expect("written");
    for (number, fault) in
        [Fault::Garble, Fault::Refuse("AccessDenied", "You sent hunter3", 403)].into_iter().enumerate()
    {
        scene.ec2.fail("AssumeRole", fault);
        let driver = scene.driver(0);
        let orders = scene.orders(&driver).await;
        let error = driver.read_power(&scene.call(&orders)).await.expect_err("no credentials");
        assert_eq!(error.kind, ErrorKind::Authentication, "{error}");
        let shown = format!("{error} {error:?}");
        // The same as the bytes of which it is made.
        for secret in ["hunter2", "hunter3", "hunter4", "117, 110, 116, 101, 114"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(scene.ec2.heard("AssumeRole").len(), number + 1, "{error}");
    }
}

/// S1: whoever is on the way could say off, also where AWS's own files have the place.
#[tokio::test]
async fn nothing_is_asked_over_plain_http_elsewhere() {
    let scene = Scene::new(1).await;
    let config = "[default]\nregion = eu-central-1\nendpoint_url = http://plain.invalid\n";
    std::fs::write(scene.home.path().join("config"), config).expect("written");
    let file = |name: &str| scene.home.path().join(name).display().to_string();
    let table = json!({
        "instance": id(0), "profile": "default", "config_file": file("config"),
        "credentials_file": file("credentials"),
    });
    let driver = scene.kind.make(table.as_object().expect("a table"), &scene.context).expect("right");
    let orders = scene.orders(&driver).await;
    let error = driver.read_power(&scene.call(&orders)).await.expect_err("nobody is asked");
    assert!(error.to_string().contains("it would be asked at http://plain.invalid"), "{error}");
}
