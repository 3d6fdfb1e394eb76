//! An Off that nobody authenticated is none (S1): refused where the agent can do better, told where it cannot.

use super::*;

const IPMI: &str = r#"<resource-agent name="fence_ipmilan"><parameters>
<parameter name="ip" required="0"><content type="string"/></parameter>
<parameter name="port_as_ip" required="0"><content type="boolean"/></parameter>
<parameter name="lanplus" required="0"><content type="boolean" default="0"/></parameter>
<parameter name="auth" required="0"><content type="select"><option value="md5"/><option value="none"/></content></parameter>
<parameter name="cipher" required="0"><content type="string"/></parameter>
</parameters><actions><action name="on"/><action name="off"/><action name="status"/></actions></resource-agent>"#;

fn ipmi(more: Value, metadata: &str) -> Result<Settings, Vec<(String, String)>> {
    let mut settings = json!({ "agent": "fence_ipmilan", "parameters": { "ip": "bmc" } });
    let parameters = settings["parameters"].as_object_mut().expect("a table");
    parameters.extend(more.as_object().expect("a table").clone());
    check_with(settings, metadata, list::READ_IN)
}

#[test]
fn ipmi_is_the_authenticated_one_or_none() {
    for (more, key, words) in [
        (json!({}), "parameters", "needs lanplus"),
        (json!({ "lanplus": false }), "parameters", "needs lanplus"),
        (json!({ "lanplus": true, "cipher": "0" }), "parameters.cipher", "authenticate"),
        (json!({ "lanplus": true, "cipher": 0 }), "parameters.cipher", "authenticate"),
        (json!({ "lanplus": true, "cipher": "00" }), "parameters.cipher", "authenticate"),
        (json!({ "lanplus": true, "cipher": "1" }), "parameters.cipher", "authenticate"),
        (json!({ "lanplus": true, "cipher": "15" }), "parameters.cipher", "authenticate"),
        (json!({ "lanplus": true, "cipher": "3 -C 0" }), "parameters.cipher", "authenticate"),
        (json!({ "lanplus": true, "auth": "none" }), "parameters.auth", "authenticate"),
    ] {
        let faults = ipmi(more.clone(), IPMI).expect_err("it is refused");
        assert!(faults.iter().any(|(at, told)| at == key && told.contains(words)), "{more}: {faults:#?}");
    }
    for cipher in ["3", "17"] {
        ipmi(json!({ "lanplus": true, "cipher": cipher }), IPMI).expect("it is right");
    }
    let usual = IPMI.replace("default=\"0\"", "default=\"1\"");
    ipmi(json!({}), &usual).expect("it is what it does by itself");
    ipmi(json!({ "lanplus": false }), &usual).expect_err("and is told not to");
    // Not by another way either.
    for key in ["cipher_env", "auth_file", "lanplus_env"] {
        let settings =
            json!({ "agent": "fence_ipmilan", "parameters": { "ip": "b", "lanplus": true }, (key): "PATH" });
        let faults = check_with(settings, IPMI, list::READ_IN).expect_err("it is refused");
        assert!(
            faults.iter().any(|(at, told)| at == key && told.contains("no secret")),
            "{key}: {faults:#?}"
        );
    }
}

#[track_caller]
fn remarks(agent: &str, metadata: &str, more: Value, words: Option<&str>) {
    let mut settings = json!({ "agent": agent, "parameters": { "ip": "p", "plug": "7" } });
    let parameters = settings["parameters"].as_object_mut().expect("a table");
    parameters.extend(more.as_object().expect("a table").clone());
    let made = check_with(settings, metadata, list::READ_IN).unwrap_or_else(|faults| panic!("{faults:#?}"));
    match words {
        None => {
            assert!(made.remarks.is_empty(), "{agent} {more}: {:?}", made.remarks);
            assert_eq!(Some(made.grade), list::find(agent).map(list::Agent::grade));
        }
        Some(words) => {
            assert_eq!(made.grade, Grade::Claimed, "{agent} {more}");
            let [told] = made.remarks.as_slice() else { panic!("{agent} {more}: {:?}", made.remarks) };
            assert!(told.contains(words), "{agent} {more}: {told}");
        }
    }
}

#[test]
fn what_nobody_authenticates_is_told() {
    let snmp = METADATA.replace("<option value=\"1\"/>", "<option value=\"1\"/><option value=\"2c\"/>");
    let old = snmp.replace("<content type=\"select\">", "<content type=\"select\" default=\"1\">");
    remarks("fence_eaton_snmp", &old, json!({}), Some("SNMP 1"));
    remarks("fence_eaton_snmp", &snmp, json!({ "snmp_version": "2c" }), Some("SNMP 2c"));
    remarks("fence_eaton_snmp", &old, json!({ "snmp_version": "3" }), Some("snmp_sec_level"));
    let level = |level: &str| json!({ "snmp_version": "3", "snmp_sec_level": level });
    remarks("fence_eaton_snmp", &old, level("noAuthNoPriv"), Some("snmp_sec_level"));
    remarks("fence_eaton_snmp", &old, level("authNoPriv"), None);
    remarks("fence_eaton_snmp", &old, level("authPriv"), None);
    let flag = |name: &str, usual: &str| {
        format!(
            "<parameter name=\"{name}\" required=\"0\"><content type=\"boolean\" {usual}/></parameter></parameters>"
        )
    };
    let plain = METADATA.replace("<parameter name=\"snmp_version\" ", "<parameter name=\"telnet_path\" ");
    let plain =
        plain.replace("<content type=\"select\">", "<content type=\"string\" default=\"/usr/bin/telnet\">");
    remarks("fence_raritan", &plain, json!({}), Some("telnet"));
    let either = plain.replace("</parameters>", &flag("ssh", ""));
    remarks("fence_bladecenter", &either, json!({}), Some("telnet"));
    let text = |name: &str| {
        format!(
            "<parameter name=\"{name}\" required=\"0\"><content type=\"string\"/></parameter></parameters>"
        )
    };
    let either = either.replace("</parameters>", &text("ssh_path"));
    let either = either.replace("</parameters>", &text("ssh_options"));
    let ssh = |options: &str| json!({ "ssh": true, "ssh_options": options });
    remarks("fence_bladecenter", &either, json!({ "ssh": true }), Some("host key"));
    for believing in [
        "-4",
        "-o StrictHostKeyChecking=no",
        "-o ProxyCommand=\"ssh -o StrictHostKeyChecking=yes jump\" -o StrictHostKeyChecking=no",
        "-oStrictHostKeyChecking=accept-new -o StrictHostKeyChecking=yes",
    ] {
        remarks("fence_bladecenter", &either, ssh(believing), Some("StrictHostKeyChecking=yes"));
    }
    for checking in [
        "-o StrictHostKeyChecking=yes -o UserKnownHostsFile=/etc/picket/known",
        "-o \"stricthostkeychecking yes\"",
    ] {
        remarks("fence_bladecenter", &either, ssh(checking), None);
    }
    let none = METADATA.replace("<parameter name=\"snmp_version\" ", "<parameter name=\"other\" ");
    let web = none.replace("</parameters>", &flag("ssl", ""));
    let web = web.replace("</parameters>", &flag("ssl_insecure", ""));
    remarks("fence_cisco_ucs", &web, json!({}), Some("HTTP"));
    remarks("fence_cisco_ucs", &web, json!({ "ssl": true }), None);
    remarks("fence_cisco_ucs", &web, json!({ "ssl": true, "ssl_insecure": true }), Some("ssl_insecure"));
    let url = none.replace("</parameters>", &text("session_url"));
    for plain in ["http://xen1", "HTTP://xen1:80/"] {
        remarks("fence_xenapi", &url, json!({ "session_url": plain }), Some("HTTP (session_url)"));
    }
    remarks("fence_xenapi", &url, json!({ "session_url": "https://xen1" }), None);
    let always = none.replace("</parameters>", &flag("ssl", "default=\"1\""));
    remarks("fence_pve", &always, json!({}), None);
}
