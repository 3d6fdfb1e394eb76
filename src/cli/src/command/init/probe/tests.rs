use super::*;

fn request() -> NodeRequest {
    NodeRequest {
        node: "n1".to_owned(),
        address: "10.0.0.7".to_owned(),
        user: "picket".to_owned(),
        password_file: "/etc/picket/bmc.password".into(),
        password: b"secret12".to_vec(),
        is_new: false,
        port: None,
        allow_suite_3: false,
        ca: None,
        certificate: None,
        system: None,
    }
}

fn tried(driver: Driver, answer: serde_json::Value) -> ProbeResult {
    let mut all = json!({
        "node": "n1", "device": "bmc", "endpoint": "ipmi 10.0.0.7:623", "power": null, "identity": null, "hold": null, "notes": [],
        "obstacles": [], "fault": null,
    });
    for (key, value) in answer.as_object().expect("keys") {
        all[key] = value.clone();
    }
    let answer = serde_json::from_value(all).expect("an answer");
    ProbeResult { driver, answer, shown: None, allows_suite_3: false, more: Vec::new() }
}

fn refused(driver: Driver, kind: &str, detail: &str) -> ProbeResult {
    tried(driver, json!({ "fault": { "kind": kind, "detail": detail } }))
}

#[test]
fn a_bmc_that_answers_and_bars_nothing_is_ready() {
    let fine =
        json!({ "power": "on", "identity": { "uuid": "00ff" }, "hold": { "restore_policy": "previous" } });
    let one = tried(Driver::Ipmi, fine.clone());
    assert!(one.is_ready());
    let page = Page { colours: false, width: Some(80) };
    assert_eq!(
        one.told(page),
        "  ipmi 10.0.0.7:623: the machine is on\n  it takes cipher suite 17, and the privilege operator\n  it says that it controls the \
         machine with the uuid 00ff\n  a fence tries to hold it off, which the BMC may refuse then; now it has\n  restore_policy previous\n"
    );
    let both = ProbeResult { allows_suite_3: true, ..tried(Driver::Ipmi, fine.clone()) };
    assert!(both.told(page).contains("it takes one of the cipher suites 17 and 3"), "{}", both.told(page));
    for (key, value) in [
        ("obstacles", json!(["the role ReadOnly and no other"])),
        ("fault", json!({ "kind": "forbidden", "detail": "no" })),
        ("power", json!(null)),
    ] {
        let mut worse = fine.clone();
        worse[key] = value;
        assert!(!tried(Driver::Redfish, worse).is_ready(), "{key}");
    }
}

#[test]
fn each_refusal_has_the_device_s_own_reason_and_what_to_do() {
    for (driver, kind, detail, advice) in [
        (Driver::Ipmi, "timed_out", "did not answer", "whether UDP 623 passes to 10.0.0.7"),
        (Driver::Redfish, "unreachable", "refused", "curl -k https://10.0.0.7/redfish/v1/"),
        (Driver::Ipmi, "authentication", "has another password", "the password in /etc/picket/bmc.password"),
        (Driver::Ipmi, "forbidden", "may not have the privilege", "the privilege operator"),
        (Driver::Redfish, "forbidden", "403", "Operator"),
        (Driver::Redfish, "settings", "the service has several systems: 1, 2", "--system ID"),
        (Driver::Redfish, "authentication", "its certificate is not believed", "--bmc-ca FILE"),
        (Driver::Ipmi, "protocol", "it offers 3: set cipher_suites = [17, 3]", "--allow-suite-3"),
        (Driver::Ipmi, "unsupported", "suites, 17; it does not say which it offers", "--allow-suite-3"),
        (Driver::Ipmi, "unsupported", "offers 0: Picket speaks 17 and 3 alone", "docs/troubleshooting.md"),
        (Driver::Ipmi, "protocol", "nonsense", "docs/troubleshooting.md"),
    ] {
        let one = refused(driver, kind, detail);
        assert!(
            one.reason().contains(detail) && one.advice(&request()).contains(advice),
            "{}",
            one.advice(&request())
        );
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_wants_a_person() {
    let shown = "ab".repeat(32);
    assert_eq!(
        digest(&format!("another one than the pinned one: its SHA-256 is {shown}")),
        Some(shown.clone())
    );
    assert_eq!(digest("its SHA-256 is abc"), None);
    let one = ProbeResult {
        shown: Some(shown.clone()),
        ..refused(Driver::Redfish, "authentication", "certificate")
    };
    let advice = one.advice(&request());
    assert!(
        !one.is_ready()
            && advice.contains("Compare")
            && advice.ends_with(&format!("--bmc-certificate {shown}"))
    );
}

#[test]
fn how_long_sessions_live_is_read_from_the_service_s_words() {
    let said = "keeps sessions for 3600 s; set session_timeout = \"3600s\", or a shorter one at the service";
    assert_eq!(session_timeout(said), Some("3600s".to_owned()));
    assert_eq!(session_timeout("nothing"), None);
}

/// S13: what the BMC says of itself is a remark, until a person takes the mark away.
#[test]
fn an_identity_is_written_as_a_remark_alone() {
    let folder = tempfile::tempdir().expect("a directory");
    let settings_folder =
        super::super::settings_folder::SettingsFolder::of(folder.path(), false).expect("it is free");
    let mut request = request();
    request.allow_suite_3 = true;
    let one = tried(Driver::Ipmi, json!({ "power": "on", "identity": { "uuid": "00ff" } }));
    let text = super::super::settings::text(&request, &one, &settings_folder);
    let table: toml::Table = text.parse().expect("TOML");
    let device = &table["nodes"]["n1"]["devices"]["bmc"];
    assert!(
        device.get("identity").is_none() && text.contains("# identity = { uuid = \"00ff\" }\n"),
        "{text}"
    );
    assert_eq!(device["password_file"].as_str(), Some("/etc/picket/bmc.password"));
    assert_eq!(device["cipher_suites"].as_array().map(Vec::len), Some(2));
    assert!(!text.contains("secret12"), "{text}");
    let open = text.replace("# identity", "identity");
    assert!(open.parse::<toml::Table>().is_ok(), "{open}");
}

#[test]
fn what_was_found_out_counts_before_what_was_asked_for() {
    let mut request = request();
    request.certificate = Some("aa".to_owned());
    let more = [("certificate_sha256", NO_CERTIFICATE.to_owned()), ("session_timeout", "1h".to_owned())];
    let table: toml::Table = request.device(Driver::Redfish, &more).parse().expect("TOML");
    let device = &table["nodes"]["n1"]["devices"]["bmc"];
    assert_eq!(device["certificate_sha256"].as_str(), Some(NO_CERTIFICATE));
    assert_eq!(device["session_timeout"].as_str(), Some("1h"));
    assert!(device.get("cipher_suites").is_none());
}

/// S1: the weaker suite is spoken on a person's word alone.
#[test]
fn suite_3_is_spoken_where_a_person_allowed_it_alone() {
    let mut request = request();
    assert!(!request.device(Driver::Ipmi, &[]).contains("cipher_suites"));
    request.allow_suite_3 = true;
    assert!(request.device(Driver::Ipmi, &[]).contains("cipher_suites = [17, 3]\n"));
}
