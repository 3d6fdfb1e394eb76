use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::*;

/// A folder with those files in it, which are their owner's alone.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let place = folder.path().join(name);
        std::fs::write(&place, text).expect("it can be written");
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    }
    folder
}

fn of(files: &[(&str, &str)], name: &str) -> Result<CloudSettings, Vec<String>> {
    let folder = folder(files);
    read(&folder.path().join("clouds.yaml"), name)
}

#[test]
fn a_password_may_stand_beside() {
    let clouds = "
clouds:
  prod:
    region_name: one
    interface: internal
    cacert: /etc/ca.pem
    volume_endpoint_override: https://volume.example.org/v3/p/
    auth:
      auth_url: https://cloud.example.org:5000
      username: picket
      project_name: db
      user_domain_name: Default
      project_domain_id: d1
";
    let secure = "clouds: {prod: {auth: {password: hunter2}}}";
    let cloud = of(&[("clouds.yaml", clouds), ("secure.yaml", secure)], "prod").expect("right");
    assert_eq!(cloud.identity.as_str(), "https://cloud.example.org:5000/v3");
    assert_eq!((cloud.region.as_deref(), cloud.interface.as_str()), (Some("one"), "internal"));
    assert_eq!(cloud.endpoints["block-storage"].as_str(), "https://volume.example.org/v3/p");
    let body = cloud.login.body();
    assert_eq!(body["auth"]["identity"]["password"]["user"]["password"], "hunter2");
    assert_eq!(body["auth"]["scope"], json!({ "project": { "name": "db", "domain": { "id": "d1" } } }));
    assert!(!format!("{cloud:?}").contains("hunter2"));

    let faults = of(&[("clouds.yaml", clouds)], "prod").expect_err("no password");
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].ends_with("clouds.prod.auth.password: is missing; it may stand in secure.yaml beside"),
        "{faults:?}"
    );
}

#[test]
fn an_application_credential_needs_no_project() {
    let clouds = "
clouds:
  prod:
    auth_type: v3applicationcredential
    auth:
      auth_url: https://cloud.example.org/identity/v3/
      application_credential_id: c1
      application_credential_secret: hunter2
";
    let cloud = of(&[("clouds.yaml", clouds)], "prod").expect("right");
    assert_eq!(cloud.identity.as_str(), "https://cloud.example.org/identity/v3");
    let credential = &cloud.login.body()["auth"]["identity"]["application_credential"];
    assert_eq!(*credential, json!({ "id": "c1", "secret": "hunter2" }));
}

#[test]
fn all_faults_are_told_at_once_and_none_with_a_secret() {
    let clouds = "
clouds:
  prod:
    verify: false
    profile: vexxhost
    interface: outside
    auth: {auth_url: 'ftp://cloud', username: picket, password: hunter2, system_scope: all, project_id: p}
  test:
    auth: {auth_url: 'https://u:hunter2@cloud/v2.0'}
";
    let faults = of(&[("clouds.yaml", clouds)], "prod").expect_err("all of it is wrong");
    let text = faults.join("\n");
    for word in [
        "verify",
        "\"vexxhost\"",
        "\"outside\"",
        "\"ftp://cloud\" is no place",
        "project and system_scope are both",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    let other = of(&[("clouds.yaml", clouds)], "test").expect_err("it has no user").join("\n");
    assert!(
        other.contains("username or user_id is missing") && other.contains("belong under auth"),
        "{other}"
    );
    assert!(!format!("{text}{other}").contains("hunter2"));
    let none = of(&[("clouds.yaml", clouds)], "live").expect_err("no such cloud");
    assert!(none[0].ends_with("has no cloud \"live\"; it has prod, test"), "{none:?}");
}

/// S1: whoever is on the way could say off.
#[test]
fn plain_http_is_for_this_machine_alone() {
    for (text, is) in [
        ("https://cloud:5000/v3", true),
        ("http://127.0.0.1:5000/v3", true),
        ("http://localhost/v3", true),
        ("http://[::1]/v3", true),
        ("http://cloud:5000/v3", false),
        ("http://10.0.0.5:8774/v2.1", false),
        ("http://169.254.169.254/v3", false),
    ] {
        let url = super::web_url(text);
        assert_eq!(url.is_ok(), is, "{url:?}");
        assert!(is || url.is_err_and(|why| why.contains("could say that a server is off")), "{text}");
    }
}

#[test]
fn a_file_that_is_open_or_broken_is_refused() {
    let clouds = "
clouds:
  prod: {auth: {auth_url: 'https://cloud/v3', username: u, password: hunter2, project_id: p}}
";
    let folder = folder(&[("clouds.yaml", clouds)]);
    let place = folder.path().join("clouds.yaml");
    assert!(read(&place, "prod").is_ok());
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let open = read(&place, "prod").expect_err("everybody may read it");
    assert!(open[0].contains("everybody may read it (mode 644): run chmod 600"), "{open:?}");
    for broken in ["clouds: [hunter2", "clouds: hunter2", "clouds:\n  prod:\n    auth: hunter2\n"] {
        std::fs::write(&place, broken).expect("it can be written");
        let wrong = read(&place, "prod").expect_err(broken);
        assert!(wrong[0].contains("it is no clouds.yaml") && !wrong[0].contains("hunter2"), "{wrong:?}");
    }
    assert!(
        read(&folder.path().join("nowhere.yaml"), "prod").expect_err("not there")[0]
            .contains("cannot be read")
    );
}
