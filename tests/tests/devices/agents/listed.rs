//! The reviewed list against what Debian ships.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use picket_driver::{Context, DriverKind};
use picket_driver_agent::AgentKind;
use picket_driver_agent::list::{LIST, Proof, READ_IN, was_read};
use picket_engine::clock::SystemClock;
use picket_tests::{PeerError, Result};
use serde_json::json;

/// Where Debian's package has them.
const DIRECTORY: &str = "/usr/sbin";

fn installed() -> Result<BTreeSet<String>> {
    let output = std::process::Command::new("dpkg").args(["-L", "fence-agents"]).output();
    let output = output.map_err(PeerError::io("ask dpkg for Debian's fence agents"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().map(Path::new).filter(|path| path.starts_with(DIRECTORY));
    let names = names.filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let names: BTreeSet<String> = names.filter(|name| name.starts_with("fence_")).collect();
    match names.is_empty() {
        true => Err(PeerError::Missing { what: "fence_ipmilan".to_owned(), package: "fence-agents" }),
        false => Ok(names),
    }
}

#[test]
fn every_agent_of_debians_package_was_read_and_no_other() -> Result<()> {
    let listed: BTreeSet<String> = LIST.iter().map(|agent| agent.name.to_owned()).collect();
    assert_eq!(installed()?, listed);
    Ok(())
}

#[test]
fn every_agent_that_can_be_a_device_says_so_itself() -> Result<()> {
    installed()?;
    let context = Context { clock: Arc::new(SystemClock), random: Arc::new(|_: &mut [u8]| {}) };
    let kind = AgentKind::default();
    for agent in LIST.iter().filter(|agent| agent.proof != Proof::Never) {
        // Given nothing, it may lack parameters and no more: its metadata was read, and it can switch and tell.
        let settings = json!({ "agent": agent.name });
        let made = kind.make(settings.as_object().expect("a table"), &context);
        for fault in made.err().unwrap_or_default() {
            let about = matches!(fault.key.as_str(), "parameters" | "class");
            assert!(about, "{}: {}: {}", agent.name, fault.key, fault.message);
        }
    }
    Ok(())
}

/// The version of those that are installed.
fn version() -> Result<String> {
    let output = std::process::Command::new(format!("{DIRECTORY}/fence_ipmilan")).arg("--version").output();
    let output = output.map_err(PeerError::io("ask fence_ipmilan for its version"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[test]
fn what_the_list_says_was_read_stands_in_the_agents_source() -> Result<()> {
    installed()?;
    let version = version()?;
    // Of another version nobody read anything, and its Off counts as claimed: then the list has to be read again.
    assert!(was_read(&version), "the installed agents tell {version:?}; the list was read in {READ_IN}");
    for agent in LIST {
        let path = format!("{DIRECTORY}/{}", agent.name);
        let source = std::fs::read(&path).map_err(PeerError::io(format!("read {path}")))?;
        let source = String::from_utf8_lossy(&source);
        let (function, text) = agent.source().expect("each line says where it was read");
        assert!(source.contains(text), "{path} has no {text:?}");
        let name = function.split(' ').next().unwrap_or_default();
        assert!(function.contains(' ') || source.contains(name), "{path} has no {name}");
    }
    Ok(())
}

/// Where the agents' sources say what they do with what names a machine, of which `drivers/agent/src/list/names.rs` speaks.
#[test]
fn what_agents_do_with_names_stands_in_their_source() -> Result<()> {
    installed()?;
    for (name, text) in [
        ("redfish", "for member in data[u'Members']:\n            system_uri = member[u'@odata.id']"),
        ("powerman", "status = pm.query(options['--plug'])"),
        ("openstack", r#"options["--plug"] = options["--uuid"]"#),
        ("drac5", "## Assume this is DRAC 5 by default"),
        ("drac5", "conn.send_eol(\"racadm serveraction \" + action)\n"),
        ("gce", "options[\"--project\"] = get_metadata('project/project-id')"),
        ("gce", r#"options["--plugzonemap"][instance] = get_zone(conn, options, instance)"#),
        ("kubevirt", "config.kube_config.list_kube_config_contexts()[1]['context']['namespace']"),
        ("cdu", r#"options["--switch"] = switch"#),
        ("apc", r#"(switch, plug) = options["--plug"].split(":", 1)"#),
        ("eaton_snmp", r#"port_id = int(options["--plug"])"#),
        ("raritan", r#"options["--plug"] = "/system1/outlet" + str(plug_int)"#),
        ("rhevm", r#"result = RE_GET_ID.search(res)"#),
        ("hpblade", r#"cmd_send = "show server status " + options["--plug"]"#),
        ("ipmilan", r#"if "--lanplus" in options and options["--lanplus"] in ["", "1"]:"#),
    ] {
        let path = format!("{DIRECTORY}/fence_{name}");
        let source = std::fs::read_to_string(&path).map_err(PeerError::io(format!("read {path}")))?;
        assert!(source.contains(text), "{path} has no {text:?}");
    }
    Ok(())
}
