//! What is wrong with an agent's device is told at the start, not at the fence.

use picket_tests::{Fleet, Gateway, PASSWORD_VARIABLE, Result, picketd};

use crate::agents::scene::fence_ipmilan;

const NODES: &str = r#"
[nodes.gone.devices.d]
driver = "agent"
agent = "fence_none"
trust_agent = "fence_none"
class = "host"
[nodes.never.devices.d]
driver = "agent"
agent = "fence_scsi"
[nodes.unread.devices.d]
driver = "agent"
agent = "fence_xvm"
[nodes.misspelt.devices.d]
driver = "agent"
agent = "fence_ipmilan"
parameters = { ip = "127.0.0.1", lanplus = true, usrename = "x" }
[nodes.twin-a.devices.d]
driver = "agent"
agent = "fence_eaton_snmp"
parameters = { ip = "pdu", plug = "7" }
[nodes.twin-b.devices.d]
driver = "agent"
agent = "fence_eaton_snmp"
parameters = { ip = "PDU.", plug = "07", ipport = 1161 }
[nodes.both]
levels = [["a", "b"]]
[nodes.both.devices.a]
driver = "agent"
agent = "fence_eaton_snmp"
parameters = { ip = "fd00::7", plug = "3" }
[nodes.both.devices.b]
driver = "agent"
agent = "fence_raritan"
parameters = { ip = "FD00:0::0007", plug = "/system1/outlet03", username = "x" }
[nodes.any.devices.d]
driver = "agent"
agent = "fence_redfish"
parameters = { ip = "127.0.0.2", username = "x" }
[nodes.unsigned.devices.d]
driver = "agent"
agent = "fence_ipmilan"
parameters = { ip = "127.0.0.3", lanplus = true, cipher = "0" }
[nodes.older.devices.d]
driver = "agent"
agent = "fence_ipmilan"
parameters = { ip = "127.0.0.4" }
[nodes.outlet.devices.d]
driver = "agent"
agent = "fence_apc_snmp"
parameters = { ip = "pdu2", plug = "7" }
[nodes.lonely.devices.d]
driver = "agent"
agent = "fence_virsh"
parameters = { ip = "host", username = "x", plug = "vm" }
[nodes.good]
levels = [["d", "bmc"]]
[nodes.good.devices.d]
driver = "agent"
agent = "fence_virsh"
parameters = { ip = "host", username = "x", plug = "other" }
[nodes.good.devices.bmc]
driver = "ipmi"
host = "127.0.0.9"
username = "x"
password_env = "PICKET_TEST_BMC_PASSWORD"
"#;

#[tokio::test]
async fn what_is_wrong_with_agents_is_told_at_the_start_all_at_once() -> Result<()> {
    let said = Gateway::new(&Fleet::new().with(NODES))?.refuses().await?;
    assert_eq!(said.code, 78, "{said:?}");
    let faults: Vec<&str> = said.err.lines().skip(1).collect();
    for (node, words) in [
        ("gone", "fence_none cannot be found"),
        ("never", "fence_scsi never proves that power is off: it takes a key off shared disks"),
        ("unread", "fence_xvm is not on the reviewed list"),
        ("misspelt", "does not know the parameter usrename; like it are username"),
        ("twin-b", "device d is agent pdu 7, and so is twin-a/d"),
        ("both", "device b is agent fd00::7 3, and so is both/a"),
        ("any", "needs systems_uri: without it it takes the last system"),
        ("unsigned", "expected the number of a cipher suite that authenticates each packet"),
        ("older", "needs lanplus = true"),
        ("outlet", "no outlet by it proves"),
        ("lonely", "put another host device beside it"),
    ] {
        let told = |fault: &&&str| fault.contains(node) && fault.contains(words);
        assert_eq!(faults.iter().filter(told).count(), 1, "{node}: {words}: {faults:#?}");
    }
    assert_eq!(faults.len(), 11, "{faults:#?}");
    Ok(())
}

#[tokio::test]
async fn where_a_secret_is_seen_is_noted_and_no_fault() -> Result<()> {
    let node = fence_ipmilan(std::net::SocketAddr::from(([127, 0, 0, 9], 623)));
    let other = node.replace("n1", "n2").replace("127.0.0.9", "127.0.0.8");
    let gateway = Gateway::new(
        &Fleet::new().with(&node.replace("[\"detach\"]", "[]")).with(&other.replace("[\"detach\"]", "[]")),
    )?;
    let said = picketd(&gateway.settings_file(), &["--check"], &[(PASSWORD_VARIABLE, "hunter2")]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    let notes: Vec<&str> = said.out.lines().filter(|line| line.starts_with("note: ")).collect();
    let told = |note: &&&str| {
        note.contains("n1/bmc and 1 more: fence_ipmilan puts what it is told as password into the arguments")
    };
    assert_eq!(notes.iter().filter(told).count(), 1, "once for all: {said:?}");
    assert!(!format!("{said:?}").contains("hunter2"));
    Ok(())
}

#[tokio::test]
async fn what_nobody_authenticates_is_noted_and_no_fault() -> Result<()> {
    let of = |node: &str, agent: &str, parameters: &str| {
        format!(
            "[nodes.{node}.devices.d]\ndriver = \"agent\"\nagent = \"{agent}\"\nparameters = {{ ip = \"127.0.0.9\", {parameters} }}\n"
        )
    };
    let nodes = [
        of("a", "fence_eaton_snmp", "plug = \"1\""),
        of("b", "fence_raritan", "plug = \"2\", username = \"x\""),
        of(
            "c",
            "fence_redfish",
            "username = \"x\", systems_uri = \"/redfish/v1/Systems/1\", ssl_insecure = true",
        ),
        of(
            "d",
            "fence_eaton_snmp",
            "plug = \"4\", snmp_version = \"3\", username = \"x\", snmp_sec_level = \"authPriv\"",
        ),
    ];
    let gateway = Gateway::new(&Fleet::new().with(&nodes.concat()))?;
    let said = picketd(&gateway.settings_file(), &["--check"], &[]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    let notes: Vec<&str> = said.out.lines().filter(|line| line.starts_with("note: ")).collect();
    for (device, words) in
        [("a/d", "asks by SNMP 1"), ("b/d", "asks by telnet"), ("c/d", "believes every certificate")]
    {
        let told = |note: &&&str| note.contains(device) && note.contains(words);
        assert_eq!(notes.iter().filter(told).count(), 1, "{device}: {words}: {said:?}");
    }
    assert!(!notes.iter().any(|note| note.contains("d/d")), "{said:?}");
    Ok(())
}
