use super::parameters::REFUSED;
use super::*;
use serde_json::json;

mod authenticated;
mod naming;

const METADATA: &str = r#"<resource-agent name="fence_x"><parameters>
<parameter name="action" required="1"><content type="string"/></parameter>
<parameter name="ip" required="1" obsoletes="ipaddr"><content type="string"/></parameter>
<parameter name="ipaddr" required="1" deprecated="1"><content type="string"/></parameter>
<parameter name="ipport" required="0"><content type="integer" default="161"/></parameter>
<parameter name="plug" required="1" obsoletes="port"><content type="string"/></parameter>
<parameter name="port" required="1" deprecated="1"><content type="string"/></parameter>
<parameter name="password" required="0" obsoletes="passwd"><content type="string"/></parameter>
<parameter name="passwd" required="0" deprecated="1"><content type="string"/></parameter>
<parameter name="community" required="0"><content type="string"/></parameter>
<parameter name="snmp_version" required="0"><content type="select"><option value="1"/><option value="3"/></content></parameter>
<parameter name="snmp_sec_level" required="0"><content type="string"/></parameter>
<parameter name="inet4_only" required="0"><content type="boolean"/></parameter>
<parameter name="lanplus" required="0"><content type="boolean" default="1"/></parameter>
</parameters><actions><action name="on"/><action name="off"/><action name="status"/></actions></resource-agent>"#;

fn check_with(settings: Value, metadata: &str, version: &str) -> Result<Settings, Vec<(String, String)>> {
    // A directory in which a program of every name is; nothing is written elsewhere.
    let directory = tempfile::tempdir().expect("a directory");
    let mut table = settings.as_object().expect("a table").clone();
    if let Some(agent) = table.get("agent").and_then(Value::as_str).filter(|agent| !agent.contains('/')) {
        let path = directory.path().join(agent);
        std::fs::write(&path, "").expect("it can be written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("it is ours");
    }
    table.entry("directory").or_insert_with(|| directory.path().display().to_string().into());
    let faults =
        |faults: Vec<SettingFault>| faults.into_iter().map(|fault| (fault.key, fault.message)).collect();
    let told = |_: &std::path::Path, _: &Program| {
        Ok(Metadata { version: version.to_owned(), ..Metadata::read(metadata)? })
    };
    Settings::check(&table, &told).map_err(faults)
}

fn check(settings: Value) -> Result<Settings, Vec<(String, String)>> {
    check_with(settings, METADATA, list::READ_IN)
}

/// A good device of the list, with these changes.
fn eaton(changes: Value) -> Value {
    let signed = json!({ "ip": "PDU1", "plug": "7", "snmp_version": "3", "snmp_sec_level": "authPriv" });
    let mut settings = json!({ "agent": "fence_eaton_snmp", "parameters": signed });
    let table = settings.as_object_mut().expect("a table");
    table.extend(changes.as_object().expect("a table").clone());
    settings
}

#[track_caller]
fn refused(settings: Value, key: &str, words: &str) {
    let faults = check(settings).expect_err("it is refused");
    assert!(faults.iter().any(|(at, told)| at == key && told.contains(words)), "{key}, {words}: {faults:#?}");
}

#[test]
fn a_device_is_what_the_list_says() {
    let made = check(eaton(json!({ "max_life": "2m" }))).expect("it is right");
    assert_eq!((made.class, made.grade), (DeviceClass::Supply, Grade::Observed));
    assert_eq!(made.endpoint, "agent pdu1 7", "whatever the spelling");
    assert_eq!((made.max_life, made.never_alone), (Some(Duration::from_secs(120)), None));
    let switched = eaton(json!({ "parameters": { "ip": "PDU1", "plug": "7", "switch": "2" } }));
    assert!(check(switched).is_err(), "that agent has no switches");
    let towards_off = json!({ "agent": "fence_apc_snmp", "parameters": { "ip": "p", "plug": "7" } });
    let made = check(towards_off).expect("it is right");
    assert_eq!(made.grade, Grade::Claimed);
    assert!(made.never_alone.is_some_and(|why| why.starts_with("fence_apc_snmp: ")));
}

#[test]
fn what_never_proves_power_is_refused_with_its_reason() {
    for agent in list::LIST.iter().filter(|agent| agent.proof == Proof::Never) {
        refused(json!({ "agent": agent.name }), "agent", agent.why);
        refused(
            json!({ "agent": agent.name, "trust_agent": agent.name, "class": "host" }),
            "agent",
            agent.why,
        );
    }
}

#[test]
fn others_are_trusted_by_name_alone() {
    let agent = |more: Value| {
        let mut settings = json!({ "agent": "fence_xvm", "parameters": { "ip": "x", "plug": "vm1" } });
        settings.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
        settings
    };
    refused(agent(json!({ "class": "host" })), "agent", "trust_agent = \"fence_xvm\"");
    refused(agent(json!({ "trust_agent": "fence_xen", "class": "host" })), "trust_agent", "the same");
    refused(agent(json!({ "trust_agent": "fence_xvm" })), "class", "is missing");
    refused(eaton(json!({ "trust_agent": "fence_eaton_snmp" })), "trust_agent", "leave trust_agent out");
    refused(eaton(json!({ "class": "host" })), "class", "\"supply\"");
    let made = check(agent(json!({ "trust_agent": "fence_xvm", "class": "host" }))).expect("it is trusted");
    assert_eq!((made.class, made.grade), (DeviceClass::Host, Grade::Claimed));
}

#[test]
fn an_agent_that_is_not_installed_is_told() {
    refused(eaton(json!({ "directory": "/nowhere" })), "agent", "the package fence-agents");
    refused(json!({}), "agent", "is missing");
    refused(json!({ "agent": "/usr/sbin/fence_x" }), "agent", "key directory");
    refused(json!({ "agent": "../fence_x" }), "agent", "no agent's name");
}

#[test]
fn parameters_are_those_of_the_agent() {
    let with = |name: &str, value: Value| {
        let mut settings = eaton(json!({}));
        settings["parameters"][name] = value;
        settings
    };
    refused(with("snmp_verison", json!("1")), "parameters.snmp_verison", "like it are snmp_version");
    refused(with("ipport", json!("snmp")), "parameters.ipport", "a whole number");
    refused(with("snmp_version", json!("2")), "parameters.snmp_version", "one of 1, 3");
    refused(with("inet4_only", json!("maybe")), "parameters.inet4_only", "true or false");
    refused(with("ip", json!("a\nplug=3")), "parameters.ip", "one line");
    refused(with("plug", json!("7,8")), "parameters.plug", "a device for each");
    let two = json!({ "agent": "fence_virsh", "parameters": { "ip": "p", "plug": "vm1,vm2" } });
    refused(two, "parameters.plug", "no other machine is switched");
    refused(eaton(json!({ "plug_env": "PATH" })), "plug_env", "no secret");
    for (name, _) in REFUSED {
        refused(with(name, json!("1")), &format!("parameters.{name}"), "not to be given");
        let dashed = name.replace('_', "-");
        refused(with(&dashed, json!("1")), &format!("parameters.{dashed}"), "not to be given");
    }
    refused(
        json!({ "agent": "fence_eaton_snmp", "parameters": { "ip": "p" } }),
        "parameters",
        "needs also plug",
    );
    let older = json!({ "agent": "fence_eaton_snmp", "parameters": { "ipaddr": "p", "port": 7 } });
    assert_eq!(check(older).expect("older names do").endpoint, "agent p 7");
    let port =
        json!({ "agent": "fence_eaton_snmp", "parameters": { "ip": "p", "plug": "7", "ipport": 161 } });
    assert_eq!(check(port).expect("it is right").endpoint, "agent p 7", "given or not");
    refused(with("ipaddr", json!("other")), "parameters.ipaddr", "the same as ip");
    refused(with("port", json!("8")), "parameters.port", "the same as plug");
    let twice = with("inet4-only", json!("1"));
    let faults = check({
        let mut twice = twice;
        twice["parameters"]["inet4_only"] = json!("0");
        twice
    });
    assert!(
        faults
            .expect_err("it is given twice")
            .iter()
            .any(|(_, told)| told.contains("the same as inet4-only"))
    );
}

#[test]
fn what_is_not_to_be_given_is_not_by_a_file_either() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "1\n").expect("it can be written");
    let path = file.path().display().to_string();
    for (name, _) in REFUSED {
        for key in [format!("{name}_file"), format!("{}_file", name.replace('_', "-"))] {
            refused(eaton(json!({ (&key): path })), &key, "not to be given");
        }
    }
    let gce = json!({ "agent": "fence_gce", "parameters": { "ip": "p", "plug": "7" }, "baremetalsolution_file": path });
    refused(gce, "baremetalsolution_file", "whatever is so");
}

#[test]
fn what_an_off_would_not_be_one_with_is_refused() {
    let gce =
        json!({ "agent": "fence_gce", "parameters": { "ip": "p", "plug": "7", "baremetalsolution": true } });
    refused(gce, "parameters.baremetalsolution", "whatever is so");
    let azure = json!({ "agent": "fence_azure_arm", "parameters": { "ip": "p", "plug": "7", "network-fencing": true } });
    refused(azure, "parameters.network-fencing", "a blocked network");
}

#[test]
fn a_flag_that_is_off_is_left_out_where_that_is_what_it_is() {
    let settings =
        eaton(json!({ "parameters": { "ip": "p", "plug": "7", "inet4_only": false, "lanplus": false } }));
    let made = check(settings).expect("it is right");
    let told: Vec<&str> = made.parameters.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["ip", "lanplus", "plug"], "agents take a flag that is there as set");
}

#[test]
fn no_secret_stands_in_the_settings_nor_in_a_fault() {
    for name in ["password", "passwd", "community", "snmp-priv-passwd"] {
        let mut settings = eaton(json!({}));
        settings["parameters"][name] = json!("hunter2");
        let faults = check(settings).expect_err("it is refused");
        assert!(faults.iter().any(|(_, told)| told.contains(&format!("{name}_file"))), "{faults:?}");
        assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "hunter2\n").expect("it can be written");
    let path = file.path().display().to_string();
    let made = check(eaton(json!({ "password_file": path }))).expect("it is right");
    assert!(made.secrets.iter().any(|(name, secret)| name == "password" && secret.expose() == b"hunter2"));
    assert!(!format!("{made:?}").contains("hunter2"));
    refused(eaton(json!({ "pasword_file": path })), "pasword_file", "like it are password");
    refused(eaton(json!({ "password_file": "/nowhere" })), "password_file", "/nowhere");
    std::fs::write(file.path(), "hunter2\naction=on\n").expect("it can be written");
    refused(eaton(json!({ "password_file": path })), "password_file", "several lines");
    for key in ["passwd_env", "password_env"] {
        std::fs::write(file.path(), "hunter2\n").expect("it can be written");
        let twice =
            check(eaton(json!({ "password_file": path, (key): "PATH" }))).expect_err("it is given twice");
        assert!(twice.iter().any(|(_, told)| told.contains("is given twice")), "{key}: {twice:?}");
    }
}

#[test]
fn where_a_secret_is_seen_is_told() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "hunter2\n").expect("it can be written");
    let path = file.path().display().to_string();
    let made = check(eaton(json!({ "password_file": path, "community_file": path }))).expect("it is right");
    let [told] = made.remarks.as_slice() else { panic!("{:?}", made.remarks) };
    assert!(told.contains("community and password into the arguments of a program"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
    assert!(check(eaton(json!({}))).expect("it is right").remarks.is_empty(), "there is none to be seen");
    let mut plain = eaton(json!({ "password_file": path }));
    plain["agent"] = json!("fence_raritan");
    assert!(check(plain).expect("it is right").remarks.is_empty(), "that one shows none");
}

#[test]
fn an_agent_of_another_version_was_not_read() {
    for version in ["4.16.0", ""] {
        let made = check_with(eaton(json!({})), METADATA, version).expect("it is right");
        assert_eq!(made.grade, Grade::Claimed, "{version}");
        let [told] = made.remarks.as_slice() else { panic!("{:?}", made.remarks) };
        assert!(told.contains("its Off counts as claimed") && told.contains("4.12.1"), "{told}");
    }
}

#[test]
fn what_cannot_switch_is_no_device() {
    let metadata = METADATA.replace("<action name=\"status\"/>", "");
    let faults = check_with(eaton(json!({})), &metadata, list::READ_IN).expect_err("it is refused");
    assert!(
        faults.iter().any(|(key, told)| key == "agent" && told.contains("no action status")),
        "{faults:?}"
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let faults = check(json!({
        "agent": "fence_eaton_snmp", "max_life": "0s", "env": ["A=B"], "unknown": 1, "parameters": { "plug": "", "delay": 3 },
    }));
    let faults = faults.expect_err("much is wrong");
    for key in ["max_life", "env", "unknown", "parameters.plug", "parameters.delay", "parameters"] {
        assert!(faults.iter().any(|(at, _)| at == key), "{key}: {faults:#?}");
    }
}
