//! Credentials that a program prints, and logins that are a person's.

use std::os::unix::fs::PermissionsExt;

use picket_driver::{DriverError, DriverKind, ErrorKind, SettingFault};
use serde_json::json;

use super::{Scene, id};

/// A program of these lines.
fn program(scene: &Scene, name: &str, lines: &str) -> String {
    let path = scene.home.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("it is ours");
    path.display().to_string()
}

/// By these files of AWS's; what the settings, or the first reading, came to.
async fn read(scene: &Scene, config: &str) -> Result<Result<(), DriverError>, Vec<SettingFault>> {
    std::fs::write(scene.home.path().join("config"), config).expect("written");
    std::fs::write(scene.home.path().join("credentials"), "").expect("written");
    let file = |name: &str| scene.home.path().join(name).display().to_string();
    let table = json!({
        "instance": id(0), "endpoint": scene.ec2.endpoint, "profile": "picket", "config_file": file("config"),
        "credentials_file": file("credentials"), "credential_env": ["LANG"],
    });
    let driver = scene.kind.make(table.as_object().expect("a table"), &scene.context)?;
    let orders = scene.orders(&driver).await;
    Ok(driver.read_power(&scene.call(&orders)).await.map(drop))
}

const PRINTS: &str = r#"[ "$1" = "a b" ] && [ $# = 1 ] && [ -z "$HOME" ] || exit 7
echo '{"Version": 1, "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "hunter2", "SessionToken": "hunter3"}'"#;

#[tokio::test]
async fn what_a_program_prints_serves_also_to_assume_a_role() {
    let scene = Scene::new(1).await;
    let prints = program(&scene, "prints", PRINTS);
    let config = format!("[profile picket]\nregion = eu-central-1\ncredential_process = {prints} \"a b\"\n");
    read(&scene, &config).await.expect("right").expect("read");
    let scene = Scene::new(1).await;
    let prints = program(&scene, "prints", PRINTS);
    let config = format!(
        "[profile picket]\nregion = eu-central-1\nrole_arn = arn:aws:iam::123456789012:role/picket\nsource_profile = base\n\
         external_id = x-1\nservices = here\n[profile base]\ncredential_process = {prints} 'a b'\n\
         [services here]\nsts =\n  endpoint_url = {}\n",
        scene.ec2.endpoint
    );
    let _whether_it_is_granted = read(&scene, &config).await.expect("right");
    let asked = scene.ec2.heard("AssumeRole");
    assert!(asked.iter().any(|asked| asked.fields["ExternalId"] == "x-1"), "{asked:?}");
}

#[tokio::test]
async fn a_program_that_prints_none_says_why_and_no_secret() {
    for (lines, words) in [
        ("echo 'no card' >&2; echo hunter2; exit 3", "ended with exit status: 3: no card"),
        ("echo hunter2", "printed no JSON"),
    ] {
        let scene = Scene::new(1).await;
        let fails = program(&scene, "fails", lines);
        let config =
            format!("[profile picket]\nregion = eu-central-1\ncredential_process = {fails} --pin hunter4\n");
        let error = read(&scene, &config).await.expect("right").expect_err("no credentials");
        let shown = format!("{error} {error:?}");
        assert_eq!(error.kind, ErrorKind::Authentication, "{shown}");
        assert!(shown.contains(&format!("credential_process: {fails} {words}")), "{shown}");
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(scene.ec2.heard("DescribeInstances").is_empty());
    }
}

/// `picketd --check` makes devices, and asks nobody.
#[tokio::test]
async fn what_cannot_serve_a_gateway_is_told_before_anybody_is_asked() {
    let scene = Scene::new(1).await;
    let open = program(&scene, "open", PRINTS);
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("it is ours");
    let profile = "[profile picket]\nregion = eu-central-1\n";
    let by_sso = "sso_session = work\nsso_account_id = 123456789012\nsso_role_name = r\n";
    let session =
        "[sso-session work]\nsso_region = eu-central-1\nsso_start_url = https://x.awsapps.com/start\n";
    let role = "role_arn = arn:aws:iam::123456789012:role/picket\nsource_profile = base\n[profile base]\n";
    for (config, words) in [
        (
            format!("{profile}{by_sso}{session}"),
            "the profile \"picket\" has sso_session, which is a person's login",
        ),
        (format!("{profile}{role}{by_sso}{session}"), "the profile \"base\" has sso_session"),
        (format!("{profile}login_session = arn:aws:iam::1:user/x\n"), "has login_session"),
        (format!("{profile}credential_process = helper --x\n"), "helper is not an absolute path"),
        (format!("{profile}credential_process = /nowhere/helper\n"), "cannot be found"),
        (format!("{profile}credential_process = {open}\n"), "mode 777"),
        (format!("{profile}credential_process = \"{open}\n"), "a quote of it does not end"),
    ] {
        let faults = read(&scene, &config).await.expect_err("refused");
        assert!(faults[0].key == "profile" && faults[0].message.contains(words), "{faults:?}");
    }
    assert!(scene.ec2.with(|world| world.log.is_empty()));
}
