//! What is wrong with an agent's device is told at the start, not at the fence.

use picket_tests::{Fleet, Gateway, PASSWORD_VARIABLE, Result, picketd};

use crate::scene::fence_ipmilan;

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
parameters = { ip = "127.0.0.1", usrename = "x" }
[nodes.twin-a.devices.d]
driver = "agent"
agent = "fence_eaton_snmp"
parameters = { ip = "pdu", plug = "7" }
[nodes.twin-b.devices.d]
driver = "agent"
agent = "fence_eaton_snmp"
parameters = { ip = "PDU", plug = 7, ipport = 161 }
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
        ("twin-b", "device d is agent pdu:161 7, and so is twin-a/d"),
        ("outlet", "no outlet by it proves"),
        ("lonely", "put another host device beside it"),
    ] {
        let told = |fault: &&&str| fault.contains(node) && fault.contains(words);
        assert_eq!(faults.iter().filter(told).count(), 1, "{node}: {words}: {faults:#?}");
    }
    assert_eq!(faults.len(), 7, "{faults:#?}");
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
