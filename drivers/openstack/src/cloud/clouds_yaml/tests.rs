use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

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
    read(&folder.path().join("clouds.yaml"), name, None)
}

/// openstacksdk's own cases, and some of what else stands in such files: each is read as openstacksdk reads it, or refused in words.
/// openstacksdk itself is held to the same file (tests/peers/openstack/referee.py).
#[test]
fn a_cloud_is_read_as_openstacksdk_reads_it_or_refused() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../cases/clouds.json")).expect("JSON");
    assert!(cases.len() > 50, "{}", cases.len());
    let home = std::env::var("HOME").expect("a home");
    for case in cases {
        let text = |cloud: &Value| json!({ "clouds": { "c": cloud } }).to_string();
        let mut files = vec![("clouds.yaml", text(&case["cloud"]))];
        files.extend(case.get("secure").map(|secure| ("secure.yaml", text(secure))));
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let folder = folder(&files);
        let read = read(&folder.path().join("clouds.yaml"), "c", case["asked"].as_str());
        match (read, case.get("right")) {
            (Ok(cloud), Some(right)) => {
                let ca_file = cloud.ca_file.map(|path| path.display().to_string().replace(&home, "HOME"));
                let told = json!({
                    "identity": cloud.identity.as_str(), "region": cloud.region, "interfaces": cloud.interfaces, "ca_file": ca_file,
                    "body": cloud.login.body(),
                });
                assert_eq!(told, *right, "{case}");
            }
            (Err(faults), None) => {
                let told = faults.join("\n");
                let words: Vec<String> = serde_json::from_value(case["wrong"].clone()).expect("texts");
                assert!(words.iter().all(|words| told.contains(words)), "{case}: {told}");
            }
            (read, _) => panic!("{case}: {read:?}"),
        }
    }
}

#[test]
fn a_home_that_is_not_known_is_told() {
    let home = |home: &str| under_home("~/ca.pem", Some(OsString::from(home)));
    assert_eq!(home("/home/picket"), Ok(PathBuf::from("/home/picket/ca.pem")));
    for none in [home(""), under_home("~", None)] {
        assert!(none.as_ref().is_err_and(|why| why.contains("this process has no HOME")), "{none:?}");
    }
}

/// A secret counts wherever it stands.
#[test]
fn a_secret_anywhere_closes_its_file() {
    for cloud in [
        json!({ "password": "hunter2" }),
        json!({ "auth": { "application_credential_secret": "hunter2" } }),
        json!({ "regions": [{ "name": "one", "values": { "auth": { "password": "hunter2" } } }] }),
    ] {
        let folder = folder(&[("clouds.yaml", &json!({ "clouds": { "c": cloud } }).to_string())]);
        let place = folder.path().join("clouds.yaml");
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
        let told = read(&place, "c", None).expect_err("it is open").join("\n");
        assert!(told.contains("has a secret in it") && !told.contains("hunter2"), "{told}");
    }
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
    assert_eq!(
        (cloud.region.as_deref(), cloud.interfaces.as_slice()),
        (Some("one"), ["internal".to_owned()].as_slice())
    );
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
    assert!(read(&place, "prod", None).is_ok());
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let open = read(&place, "prod", None).expect_err("everybody may read it");
    assert!(open[0].contains("everybody may read it (mode 644): run chmod 600"), "{open:?}");
    for broken in ["clouds: [hunter2", "clouds: hunter2", "clouds:\n  prod:\n    auth: hunter2\n"] {
        std::fs::write(&place, broken).expect("it can be written");
        let wrong = read(&place, "prod", None).expect_err(broken);
        assert!(wrong[0].contains("it is no clouds.yaml") && !wrong[0].contains("hunter2"), "{wrong:?}");
    }
    assert!(
        read(&folder.path().join("nowhere.yaml"), "prod", None).expect_err("not there")[0]
            .contains("cannot be read")
    );
}
