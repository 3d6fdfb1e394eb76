//! An outlet by `fence_eaton_snmp` before net-snmp's `snmpd`, where the BMC is silent.

use picket_tests::peers::{Pdu, fresh_address};
use picket_tests::{Daemon, Gateway, PASSWORD_VARIABLE, Result, Webhook};

use crate::scene::{fleet, said_to};

/// A node's outlet, as settings.
fn outlet(pdu: &Pdu, node: &str, plug: u32) -> String {
    format!(
        "[nodes.{node}.devices.outlet]\ndriver = \"agent\"\nagent = \"fence_eaton_snmp\"\nverified = true\n\
         longest_cycle = \"5s\"\nenv = [\"SNMPCONFPATH\"]\n[nodes.{node}.devices.outlet.parameters]\n\
         ip = \"{}\"\nipport = {}\nplug = {plug}\nsnmp_version = \"3\"\nusername = \"picket\"\nsnmp_auth_prot = \"SHA\"\n\
         snmp_priv_prot = \"AES\"\nsnmp_sec_level = \"authPriv\"\npower_wait = 0\nsnmpget_path = {:?}\n\
         snmpset_path = {:?}\nsnmpwalk_path = {:?}\n",
        pdu.address().ip(),
        pdu.address().port(),
        pdu.noted("snmpget"),
        pdu.noted("snmpset"),
        pdu.noted("snmpwalk"),
    )
}

#[tokio::test]
async fn a_silent_bmc_and_its_outlet_off_by_fence_eaton_snmp_is_off() -> Result<()> {
    let (pdu, webhook, silent) = (Pdu::start(8).await?, Webhook::start().await?, fresh_address());
    let nodes = format!(
        "[rules]\nsilent_share = \"1s\"\n[nodes.n1]\nlevels = [[\"bmc\"], [\"outlet\"]]\nreleases = [\"detach\"]\n\
         [nodes.n1.devices.bmc]\ndriver = \"ipmi\"\nhost = \"{}\"\nport = {}\nusername = \"operator\"\n\
         password_env = {PASSWORD_VARIABLE:?}\n\
         {}",
        silent.ip(),
        silent.port(),
        outlet(&pdu, "n1", 7),
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

#[tokio::test]
async fn two_nodes_on_one_pdu_take_turns_there_and_the_plan_says_so() -> Result<()> {
    let (pdu, webhook) = (Pdu::start(8).await?, Webhook::start().await?);
    let node = |name: &str, plug: u32| {
        format!(
            "[nodes.{name}]\nlevels = [[\"outlet\"]]\nreleases = [\"detach\"]\n{}",
            outlet(&pdu, name, plug)
        )
    };
    // Both at once, as a rack falls.
    let nodes = format!("[budget]\nat_once = 2\n{}{}", node("n1", 7), node("n2", 5));
    let mut gateway = Gateway::of(Daemon::Shipped, &fleet(&nodes, &webhook))?;
    gateway.begin(&[("SNMPCONFPATH", &pdu.secrets().display().to_string())]).await?;
    gateway.checked().await?;
    let plan = gateway.picket(&["plan", "n1"]).await?;
    let shared = format!("at {}:{} it takes turns with n2", pdu.address().ip(), pdu.address().port());
    assert!(plan.out.contains(&shared), "no {shared:?} in {plan:?}");
    let [one, other] = ["n1", "n2"].map(|node| ["fence", node, "--yes", "--reason", "a test"]);
    let (first, second) = tokio::try_join!(gateway.picket(&one), gateway.picket(&other))?;
    for fenced in [&first, &second] {
        assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    }
    let waited = |said: &picket_tests::Said| {
        format!("{}{}", said.out, said.err).contains("its turn at what it shares")
    };
    assert!(waited(&first) || waited(&second), "{first:?}\n{second:?}");
    let on: Vec<u32> = (1..=8).filter(|outlet| pdu.is_on(*outlet)).collect();
    assert_eq!(on, [1, 2, 3, 4, 6, 8]);
    assert_eq!(webhook.releases().len(), 2);
    Ok(())
}
