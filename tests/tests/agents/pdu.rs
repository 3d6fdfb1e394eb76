//! An outlet by `fence_eaton_snmp` before net-snmp's `snmpd`, where the BMC is silent.

use picket_tests::peers::{Pdu, fresh_address};
use picket_tests::{Daemon, Gateway, PASSWORD_VARIABLE, Result, Webhook};

use crate::scene::{fleet, said_to};

#[tokio::test]
async fn a_silent_bmc_and_its_outlet_off_by_fence_eaton_snmp_is_off() -> Result<()> {
    let (pdu, webhook, silent) = (Pdu::start(8).await?, Webhook::start().await?, fresh_address());
    let nodes = format!(
        "[rules]\nsilent_share = \"1s\"\n[nodes.n1]\nlevels = [[\"bmc\"], [\"outlet\"]]\nreleases = [\"detach\"]\n\
         [nodes.n1.devices.bmc]\ndriver = \"ipmi\"\nhost = \"{}\"\nport = {}\nusername = \"operator\"\n\
         password_env = {PASSWORD_VARIABLE:?}\n\
         [nodes.n1.devices.outlet]\ndriver = \"agent\"\nagent = \"fence_eaton_snmp\"\nverified = true\n\
         longest_cycle = \"5s\"\nenv = [\"SNMPCONFPATH\"]\n[nodes.n1.devices.outlet.parameters]\n\
         ip = \"{}\"\nipport = {}\nplug = 7\nsnmp_version = \"3\"\nusername = \"picket\"\nsnmp_auth_prot = \"SHA\"\n\
         snmp_priv_prot = \"AES\"\nsnmp_sec_level = \"authPriv\"\npower_wait = 0\nsnmpget_path = {:?}\n\
         snmpset_path = {:?}\nsnmpwalk_path = {:?}\n",
        silent.ip(),
        silent.port(),
        pdu.address().ip(),
        pdu.address().port(),
        pdu.noted("snmpget"),
        pdu.noted("snmpset"),
        pdu.noted("snmpwalk"),
    );
    let mut gateway = Gateway::of(Daemon::Shipped, &fleet(&nodes, &webhook))?;
    gateway.begin(&[("SNMPCONFPATH", &pdu.secrets().display().to_string())]).await?;
    gateway.checked().await?;
    let fenced = said_to(&gateway, "fence").await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    assert_eq!(webhook.releases().len(), 1, "{fenced:?}");
    let on: Vec<u32> = (1..=8).filter(|outlet| pdu.is_on(*outlet)).collect();
    assert_eq!(on, [1, 2, 3, 4, 5, 6, 8], "its own outlet and no other");
    assert_eq!(pdu.commands(), ["6 0"], "the off of the long window's end found it off");
    // As docs/agents.md says: net-snmp finds its secrets in a file, and no argument has them.
    let arguments = pdu.arguments();
    assert!(arguments.iter().any(|line| line.starts_with("snmpset ")), "{arguments:#?}");
    assert!(arguments.iter().all(|line| !Pdu::is_told_in(line)), "{arguments:#?}");
    assert!(!Pdu::is_told_in(&gateway.log()));
    Ok(())
}
