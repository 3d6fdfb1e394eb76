//! Where EC2 is asked: the setting, and AWS's own files.

use picket_driver::{DriverKind, ErrorKind};
use serde_json::json;
use tokio::net::TcpListener;

use super::{Scene, id};

/// A place of this machine at which nobody listens.
async fn nowhere() -> String {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    format!("http://{}", taken.local_addr().expect("an address"))
}

/// Reads by AWS's own files, with these words in them; what came of it.
async fn read(scene: &Scene, config: &str, endpoint: Option<&str>) -> Result<(), picket_driver::DriverError> {
    std::fs::write(scene.home.path().join("config"), config).expect("written");
    let file = |name: &str| scene.home.path().join(name).display().to_string();
    let mut table = json!({
        "instance": id(0), "profile": "default", "config_file": file("config"),
        "credentials_file": file("credentials"),
    });
    if let Some(endpoint) = endpoint {
        table["endpoint"] = endpoint.into();
    }
    let driver = scene.kind.make(table.as_object().expect("a table"), &scene.context).expect("right");
    let orders = scene.orders(&driver).await;
    driver.read_power(&scene.call(&orders)).await.map(drop)
}

/// AWS's order: what is of EC2 alone goes before what is of every service, and Picket's own setting before both.
#[tokio::test]
async fn the_endpoint_of_ec2_alone_goes_before_that_of_every_service() {
    let (nowhere, of_all) = (nowhere().await, "[default]\nregion = eu-central-1\nendpoint_url = ");
    let services =
        |of_ec2: &str| format!("services = here\n[services here]\nec2 =\n  endpoint_url = {of_ec2}\n");
    let scene = Scene::new(1).await;
    let here = scene.ec2.endpoint.clone();
    read(&scene, &format!("{of_all}{nowhere}\n{}", services(&here)), None).await.expect("it is asked here");
    let scene = Scene::new(1).await;
    let here = scene.ec2.endpoint.clone();
    read(&scene, &format!("{of_all}{here}\n"), None).await.expect("it is asked here");
    let scene = Scene::new(1).await;
    let here = scene.ec2.endpoint.clone();
    let elsewhere = format!("{of_all}{nowhere}\n{}", services(&nowhere));
    read(&scene, &elsewhere, Some(&here)).await.expect("it is asked here");
}

#[tokio::test]
async fn who_cannot_be_reached_is_named_whoever_said_where_it_is() {
    let nowhere = nowhere().await;
    let config = format!(
        "[default]\nregion = eu-central-1\nservices = here\n[services here]\nec2 =\n  endpoint_url = {nowhere}\n"
    );
    let error = read(&Scene::new(1).await, &config, None).await.expect_err("nobody is there");
    let words = format!("EC2 in eu-central-1 at {nowhere}: ");
    assert!(error.kind == ErrorKind::Unreachable && error.detail.contains(&words), "{error}");
    // So is who gives credentials.
    let config = format!(
        "[default]\nregion = eu-central-1\nrole_arn = arn:aws:iam::123456789012:role/picket\nsource_profile = base\n\
         services = here\n[profile base]\nregion = eu-central-1\n[services here]\nsts =\n  endpoint_url = {nowhere}\n"
    );
    let scene = Scene::new(1).await;
    let keys = "[base]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2\n";
    std::fs::write(scene.home.path().join("credentials"), keys).expect("written");
    let error = read(&scene, &config, None).await.expect_err("nobody is there");
    assert!(error.kind == ErrorKind::Authentication && error.detail.contains(&nowhere), "{error}");
}
