//! Which device it is: named in full, and one device under one name however it is spelled (S3, S13).

use super::*;

/// What agents know that other agents do not.
fn knowing(names: &[&str]) -> String {
    let more: String = names
        .iter()
        .map(|name| {
            format!("<parameter name=\"{name}\" required=\"0\"><content type=\"string\"/></parameter>")
        })
        .collect();
    METADATA.replace("</parameters>", &format!("{more}</parameters>"))
}

/// The same of an agent that has no plugs.
fn without_plugs(names: &[&str]) -> String {
    knowing(names).replace("required=\"1\"", "required=\"0\"").replace(
        "</parameters>",
        "<parameter name=\"port_as_ip\" required=\"0\"><content type=\"boolean\"/></parameter></parameters>",
    )
}

fn of(agent: &str, parameters: Value) -> Value {
    json!({ "agent": agent, "parameters": parameters })
}

#[track_caller]
fn told(settings: &Value, metadata: &str, key: &str, words: &str) {
    let faults = check_with(settings.clone(), metadata, list::READ_IN).expect_err("it is refused");
    assert!(
        faults.iter().any(|(at, told)| at == key && told.contains(words)),
        "{key}, {words}: {settings}: {faults:#?}"
    );
}

#[track_caller]
fn endpoint(settings: Value, metadata: &str) -> String {
    let made = check_with(settings.clone(), metadata, list::READ_IN);
    made.unwrap_or_else(|faults| panic!("{settings}: {faults:#?}")).endpoint
}

#[test]
fn an_agent_that_would_choose_by_itself_is_told_which() {
    let redfish = without_plugs(&["systems_uri"]);
    let ip = json!({ "ip": "bmc" });
    told(
        &of("fence_redfish", ip.clone()),
        &redfish,
        "parameters",
        "needs systems_uri: without it it takes the last system",
    );
    let named = of("fence_redfish", json!({ "ip": "bmc", "systems_uri": "/redfish/v1/Systems/1" }));
    assert_eq!(endpoint(named, &redfish), "agent bmc:161 /redfish/v1/systems/1");
    for agent in ["fence_powerman", "fence_vmware"] {
        told(&of(agent, ip.clone()), &without_plugs(&[]), "parameters", "needs plug");
    }
    let plug = json!({ "plug": "vm1" });
    let cloud = knowing(&["project", "zone", "resourceGroup", "subscriptionId", "namespace", "kubeconfig"]);
    let cloud = cloud.replace("required=\"1\"", "required=\"0\"");
    for (agent, needs) in [
        ("fence_gce", &["project", "zone"][..]),
        ("fence_azure_arm", &["resourceGroup", "subscriptionId"]),
        ("fence_kubevirt", &["namespace", "kubeconfig"]),
    ] {
        for need in needs {
            told(
                &of(agent, plug.clone()),
                &cloud,
                "parameters",
                &format!("needs {need}: without it it takes"),
            );
        }
    }
    told(&of("fence_openstack", json!({ "ip": "x" })), &without_plugs(&["uuid"]), "parameters", "needs plug");
    let drac = knowing(&["drac_version"]);
    told(&of("fence_drac5", json!({ "ip": "x", "plug": "1" })), &drac, "parameters", "needs drac_version");
    // Every agent needs an address where it knows one, whatever its metadata asks for.
    told(
        &of("fence_ipmilan", json!({ "lanplus": true })),
        &without_plugs(&[]),
        "parameters",
        "needs also ip",
    );
}

#[test]
fn a_plug_that_is_not_read_tells_nobody_apart() {
    let metadata = without_plugs(&["systems_uri", "drac_version"]);
    let bmc = json!({ "ip": "bmc", "plug": "1", "lanplus": true });
    told(&of("fence_ipmilan", bmc), &metadata, "parameters.plug", "does not read it");
    let one = json!({ "ip": "bmc", "plug": "1", "drac_version": "DRAC 5" });
    told(&of("fence_drac5", one), &knowing(&["drac_version"]), "parameters.plug", "does not read it");
    let alone = of("fence_drac5", json!({ "ip": "bmc", "drac_version": "DRAC 5" }));
    endpoint(alone, &knowing(&["drac_version"]));
    told(
        &of("fence_drac5", json!({ "ip": "bmc", "drac_version": "DRAC CMC" })),
        &knowing(&["drac_version"]),
        "parameters",
        "needs also plug",
    );
    told(
        &of("fence_cdu", json!({ "ip": "pdu", "plug": "web7", "switch": "2" })),
        &knowing(&["switch"]),
        "parameters.switch",
        "does nothing with it",
    );
    let both = json!({ "plug": "x", "uuid": "1d4f4a0c-5a4a-4c5e-9d0e-000000000001" });
    told(&of("fence_openstack", both), &without_plugs(&["uuid"]), "parameters.uuid", "give it as plug");
}

#[test]
fn one_device_in_two_spellings_has_one_endpoint() {
    let eaton = |ip: &str, plug: &str| of("fence_eaton_snmp", json!({ "ip": ip, "plug": plug }));
    let raritan = |plug: &str| of("fence_raritan", json!({ "ip": "pdu", "plug": plug }));
    let blade = |ip: &str, plug: &str, port: u16| {
        of("fence_bladecenter", json!({ "ip": ip, "plug": plug, "ipport": port }))
    };
    let virtual_one = |plug: &str| of("fence_virsh", json!({ "ip": "host", "plug": plug }));
    let redfish = |ip: &str, system: &str| of("fence_redfish", json!({ "ip": ip, "systems_uri": system }));
    let (all, bare) = (knowing(&["ssh", "ssh_path"]), without_plugs(&["systems_uri", "target"]));
    for (one, other, metadata) in [
        (eaton("pdu", "7"), eaton("pdu", "07"), &all),
        (eaton("pdu", "7"), eaton("PDU.", "7"), &all),
        (eaton("fd00::1", "7"), eaton("FD00:0:0::0001", "007"), &all),
        (eaton("fd00::1", "7"), eaton("[fd00::1]", "7"), &all),
        (eaton("10.0.0.7", "7"), eaton("::ffff:10.0.0.7", "7"), &all),
        (
            eaton("pdu", "7"),
            of("fence_eaton_snmp", json!({ "ip": "pdu", "plug": "7", "ipport": 1161 })),
            &all,
        ),
        (eaton("pdu", "7"), raritan("/system1/outlet7"), &all),
        (raritan("7"), raritan("/System1/Outlet07"), &all),
        (blade("mm", "3", 22), blade("mm", "03", 23), &all),
        (
            virtual_one("{1D4F4A0C-5A4A-4C5E-9D0E-0000000000A1}"),
            virtual_one("1d4f4a0c5a4a4c5e9d0e0000000000a1"),
            &all,
        ),
        (redfish("bmc", "/redfish/v1/Systems/1"), redfish("BMC.", "/redfish/v1/Systems/1/"), &bare),
        (
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true })),
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true, "target": "0x20", "ipport": 161 })),
            &bare,
        ),
        (
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true, "target": "0x82" })),
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true, "target": "130" })),
            &bare,
        ),
    ] {
        assert_eq!(endpoint(one.clone(), metadata), endpoint(other.clone(), metadata), "{one} {other}");
    }
    // What is another device stays one: machines by name, BMCs behind one address, and other outlets.
    for (one, other, metadata) in [
        (eaton("pdu", "7"), eaton("pdu", "70"), &all),
        (eaton("pdu", "0"), eaton("pdu", "10"), &all),
        (virtual_one("vm07"), virtual_one("vm7"), &all),
        (
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true, "ipport": 6230 })),
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true, "ipport": 6231 })),
            &bare,
        ),
        (
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true, "target": "0x82" })),
            of("fence_ipmilan", json!({ "ip": "bmc", "lanplus": true })),
            &bare,
        ),
    ] {
        assert_ne!(endpoint(one.clone(), metadata), endpoint(other.clone(), metadata), "{one} {other}");
    }
}

#[test]
fn agents_of_one_unit_share_it_whatever_they_speak() {
    let snmp = check(eaton(json!({}))).expect("it is right");
    let ssh = of("fence_raritan", json!({ "ip": "pdu1.", "plug": "3", "ipport": 22 }));
    let ssh = check_with(ssh, &knowing(&["ssh"]), list::READ_IN).expect("it is right");
    assert_eq!((snmp.place.as_deref(), ssh.place.as_deref()), (Some("pdu1"), Some("pdu1")));
    let bmc = of("fence_ipmilan", json!({ "ip": "fd00::1", "lanplus": true, "ipport": 6230 }));
    let bmc = check_with(bmc, &without_plugs(&[]), list::READ_IN).expect("it is right");
    assert_eq!(bmc.place.as_deref(), Some("[fd00::1]:6230"), "each BMC answers for itself");
}

#[test]
fn without_an_address_what_is_no_address_makes_no_other_device() {
    let nowhere = |names: &[&str]| {
        let metadata = knowing(names).replace("required=\"1\"", "required=\"0\"");
        metadata.replace("name=\"ip\"", "name=\"host\"").replace("name=\"ipaddr\"", "name=\"hostname\"")
    };
    let cloud = nowhere(&["region", "power_timeout", "session_url"]);
    let aws = |more: Value| {
        let mut parameters = json!({ "plug": "i-07" });
        parameters.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
        of("fence_aws", parameters)
    };
    let plain = endpoint(aws(json!({})), &cloud);
    assert_eq!(plain, "fence_aws i-07");
    assert_eq!(endpoint(aws(json!({ "power_timeout": 30 })), &cloud), plain);
    assert_eq!(
        endpoint(aws(json!({ "region": "eu-west-1" })), &cloud),
        plain,
        "an instance's id is of one region"
    );
    let xen = |url: &str| of("fence_xenapi", json!({ "plug": "vm1", "session_url": url }));
    assert_eq!(endpoint(xen("https://x/"), &cloud), endpoint(xen("HTTPS://X"), &cloud));
    assert_ne!(endpoint(xen("https://x"), &cloud), endpoint(xen("https://y"), &cloud));
    // Of one that nobody read all that could be an address is.
    let own = |more: Value| {
        let mut settings = json!({ "agent": "fence_own", "trust_agent": "fence_own", "class": "host" });
        settings["parameters"] = more;
        settings
    };
    let own_metadata = nowhere(&["serial", "power_timeout"]);
    let one = endpoint(own(json!({ "serial": "/dev/ttyS0" })), &own_metadata);
    assert_eq!(endpoint(own(json!({ "serial": "/dev/ttyS0", "power_timeout": 30 })), &own_metadata), one);
    assert_ne!(endpoint(own(json!({ "serial": "/dev/ttyS1" })), &own_metadata), one);
}

#[test]
fn what_an_agent_takes_for_something_else_is_refused() {
    let all = knowing(&["switch", "zone", "project"]);
    for (agent, parameter, value, words) in [
        ("fence_eaton_snmp", "plug", "web7", "the outlet's number"),
        ("fence_eps", "plug", "web7", "the outlet's number"),
        ("fence_netio", "plug", "+7", "the outlet's number"),
        ("fence_raritan", "plug", "/system1/group1", "the outlet's number"),
        ("fence_apc", "plug", "2:7", "a switch"),
        ("fence_apc_snmp", "plug", "2:7", "a switch"),
        ("fence_cdu", "plug", "2:web7", "a switch"),
        ("fence_hpblade", "plug", "1-4", "the bay's number"),
        ("fence_hpblade", "plug", "all", "the bay's number"),
        ("fence_powerman", "plug", "n[1-2]", "several"),
        ("fence_rhevm", "plug", "vm*", "several"),
        ("fence_virsh", "plug", "7", "another machine's"),
        ("fence_gce", "zone", "a,b", "several"),
        ("fence_eaton_snmp", "ip", "pdu:161", "ipport"),
        ("fence_eaton_snmp", "ip", "udp6:[fd00::1]", "ipport"),
        ("fence_ipmilan", "ip", "bmc -t 0x82", "ipport"),
    ] {
        let mut settings = of(agent, json!({ "ip": "p" }));
        settings["parameters"][parameter] = json!(value);
        told(&settings, &all, &format!("parameters.{parameter}"), words);
    }
}
