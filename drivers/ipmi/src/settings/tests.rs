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
    let settings = check(json!({
        "host": "BMC1.example", "username": "picket", "password_file": file.path(),
    }))
    .expect("they are right");
    assert_eq!(settings.authority(), "bmc1.example:623");
    assert_eq!(settings.suites, [Suite::Sha256]);
    assert_eq!(settings.login.privilege, Privilege::Operator);
    assert_eq!(settings.idle_limit, Duration::from_secs(60));
    assert_eq!(settings.longest_idle(), Duration::from_secs(63));
    assert_eq!(settings.shortest_idle(), Duration::from_secs(57));
    assert!(settings.hold && settings.login.bmc_key.is_none());
    assert_eq!(settings.login.password.expose(), b"secret12", "the line's end is not part of it");
    assert!(!format!("{settings:?}").contains("secret12"));
}

#[test]
fn all_faults_are_told_at_once_and_none_tells_a_secret() {
    let faults = check(json!({
        "host": "10.0.0.7:623", "port": 0, "username": "a-name-of-17-byte",
        "password_file": "/nowhere/at/all", "password_env": "HIDDEN", "kg_file": ["HIDDEN"],
        "cipher_suites": [17, 0], "privilege": "root", "idle_limit": 60, "hold": "HIDDEN", "pasword": "HIDDEN",
    }))
    .expect_err("nothing of it is right");
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "pasword",
            "host",
            "port",
            "username",
            "password_file",
            "kg_file",
            "cipher_suites",
            "privilege",
            "idle_limit",
            "hold"
        ]
    );
    assert!(!format!("{faults:?}").contains("HIDDEN"));
}

#[test]
fn what_is_missing_is_named() {
    let faults = check(json!({})).expect_err("everything is missing");
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(keys, ["host", "username", "password_file"]);
}

#[test]
fn a_secret_that_is_too_long_empty_or_gone_is_a_fault() {
    let file = password();
    for (content, word) in [("x".repeat(21), "20 bytes"), ("\n".to_owned(), "empty")] {
        std::fs::write(file.path(), content).expect("it can be written");
        let faults = check(json!({ "host": "h", "username": "u", "password_file": file.path() }))
            .expect_err("the secret does not fit");
        assert!(faults[0].message.contains(word), "{faults:?}");
    }
    let faults = check(json!({ "host": "h", "username": "u", "password_file": "/nowhere/at/all" }))
        .expect_err("the file is gone");
    assert!(faults[0].message.contains("/nowhere/at/all"), "{faults:?}");
}

#[test]
fn addresses_are_spelled_in_one_way() {
    let file = password();
    for (host, authority) in [("10.0.0.7", "10.0.0.7:6230"), ("FD00:0::7", "[fd00::7]:6230")] {
        let settings = check(json!({
            "host": host, "port": 6230, "username": "u", "password_file": file.path(),
        }))
        .expect("they are right");
        assert_eq!(settings.authority(), authority);
    }
}

#[test]
fn no_suite_but_17_and_3_is_allowed_and_17_comes_first() {
    let file = password();
    for suites in
        [json!([]), json!([0]), json!([3, 17]), json!([17, 17]), json!([2]), json!(17), json!(["17"])]
    {
        let faults = check(json!({
            "host": "h", "username": "u", "password_file": file.path(), "cipher_suites": suites,
        }))
        .expect_err("not allowed");
        assert_eq!(faults[0].key, "cipher_suites");
    }
}
