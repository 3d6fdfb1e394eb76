use serde_json::json;

use super::*;

fn check(settings: Value) -> Result<Settings, Vec<SettingFault>> {
    Settings::check(settings.as_object().expect("a table"))
}

fn password() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), "secret12\n").expect("it can be written");
    file
}

#[test]
fn the_least_settings_get_the_defaults() {
    let file = password();
    let settings =
        check(json!({ "host": "BMC1.example", "username": "picket", "password_file": file.path() }))
            .expect("right");
    assert_eq!(settings.authority(), "bmc1.example:443");
    assert_eq!(settings.authentication, Authentication::Session);
    assert_eq!(settings.believed, Believed::System);
    assert_eq!(settings.bound(), Some(Duration::from_secs(1_890)), "half an hour and five percent");
    assert!(settings.hold && settings.last_reset_time.is_none() && settings.system.is_none());
    assert!(!format!("{settings:?}").contains("secret12"));
}

#[test]
fn all_faults_are_told_at_once_and_none_tells_a_secret() {
    let faults = check(json!({
        "host": "https://10.0.0.7", "port": 0, "system": "a/b", "username": "a:b", "password_file": "/nowhere/at/all",
        "password_env": "HIDDEN", "authentication": "none", "session_timeout": 60, "max_life": "1s", "ca_file": "/nowhere",
        "accept_any_certificate": "HIDDEN", "certificate_sha256": "12:34", "last_reset_time": 1, "hold": "HIDDEN",
        "verify": false,
    }))
    .expect_err("nothing of it is right");
    let mut keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    keys.dedup();
    assert_eq!(
        keys,
        [
            "verify",
            "host",
            "port",
            "system",
            "username",
            "password_file",
            "authentication",
            "session_timeout",
            "max_life",
            "ca_file",
            "last_reset_time",
            "hold"
        ]
    );
    assert!(!format!("{faults:?}").contains("HIDDEN"));
}

#[test]
fn what_bounds_a_late_command_is_never_made_up() {
    let file = password();
    let bound = |authentication: &str, max_life: Option<&str>| {
        let mut table = json!({ "host": "h", "username": "u", "password_file": file.path(), "authentication": authentication });
        if let Some(life) = max_life {
            table["max_life"] = json!(life);
        }
        check(table).map(|settings| settings.bound())
    };
    assert_eq!(bound("basic", None).expect("right"), None);
    assert_eq!(bound("basic", Some("90s")).expect("right"), Some(Duration::from_secs(90)));
    assert_eq!(bound("session_or_basic", None).expect("right"), None, "it may have gone without a session");
    assert_eq!(bound("session_or_basic", Some("90s")).expect("right"), Some(Duration::from_secs(1_890)));
    assert_eq!(bound("session_or_basic", Some("2h")).expect("right"), Some(Duration::from_secs(7_200)));
    let fault = &bound("session", Some("90s")).expect_err("of no use")[0];
    assert_eq!(fault.key, "max_life");
}

#[test]
fn a_certificate_is_pinned_as_openssl_prints_it() {
    let file = password();
    let believed = |digest: &str| {
        let table = json!({ "host": "h", "username": "u", "password_file": file.path(), "certificate_sha256": digest });
        check(table).map(|settings| settings.believed)
    };
    let pinned = Believed::Pinned([0xA5; 32]);
    assert_eq!(believed(&["A5"; 32].join(":")), Ok(pinned.clone()));
    assert_eq!(believed(&"a5".repeat(32)), Ok(pinned));
    for wrong in ["a5".repeat(31), "a5".repeat(33), "zz".repeat(32), "é".repeat(32)] {
        assert_eq!(believed(&wrong).expect_err("no digest")[0].key, "certificate_sha256", "{wrong}");
    }
}

#[test]
fn whom_to_believe_is_said_once() {
    let file = password();
    let faults = check(json!({
        "host": "h", "username": "u", "password_file": file.path(),
        "certificate_sha256": "a5".repeat(32), "accept_any_certificate": true,
    }))
    .expect_err("two of them");
    assert!(faults[0].message.contains("at most one"), "{faults:?}");
}
