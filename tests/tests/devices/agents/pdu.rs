//! An outlet by `fence_eaton_snmp` before net-snmp's `snmpd`, where the BMC is silent.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use picket_tests::peers::{IpmiSim, Pdu, fresh_address};
use picket_tests::{Daemon, Gateway, PASSWORD_VARIABLE, PeerError, Result, Webhook};
use tokio::time::sleep;

use crate::agents::breach::{WATCH, is_off_again};
use crate::agents::scene::{fleet, said_to};

/// A node's BMC there, by the driver for it.
pub fn by_ipmi(node: &str, bmc: SocketAddr) -> String {
    format!(
        "[nodes.{node}.devices.bmc]\ndriver = \"ipmi\"\nhost = \"{}\"\nport = {}\nusername = \"operator\"\n\
         password_env = {PASSWORD_VARIABLE:?}\ncipher_suites = [3]\n",
        bmc.ip(),
        bmc.port(),
    )
}

/// The node `n1`: a BMC there, and when that is silent its outlet, with these lines besides.
fn node(pdu: &Pdu, bmc: SocketAddr, rules: &str, lines: &str) -> String {
    format!(
        "[rules]\nsilent_share = \"1s\"\n{rules}\n[nodes.n1]\nlevels = [[\"bmc\"], [\"outlet\"]]\nreleases = [\"detach\"]\n{}{}",
        by_ipmi("n1", bmc),
        pdu.device("n1", "outlet", 7, lines),
    )
}

/// A gateway over these nodes that finds the PDU's secrets.
pub async fn started(pdu: &Pdu, nodes: &str, webhook: &Webhook) -> Result<Gateway> {
    let mut gateway = Gateway::of(Daemon::Shipped, &fleet(nodes, webhook))?;
    gateway.begin(&[("SNMPCONFPATH", &pdu.secrets().display().to_string())]).await?;
    gateway.checked().await?;
    Ok(gateway)
}

#[tokio::test]
async fn a_silent_bmc_and_its_outlet_off_by_fence_eaton_snmp_is_off() -> Result<()> {
    let (pdu, webhook, silent) = (Pdu::start(8).await?, Webhook::start().await?, fresh_address());
    let gateway = started(&pdu, &node(&pdu, silent, "", "verified = true"), &webhook).await?;
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
            pdu.device(name, "outlet", plug, "verified = true")
        )
    };
    // Both at once, as a rack falls.
    let nodes = format!("[budget]\nat_once = 2\nmin_not_fenced = 0\n{}{}", node("n1", 7), node("n2", 5));
    let gateway = started(&pdu, &nodes, &webhook).await?;
    let plan = gateway.picket(&["plan", "n1"]).await?;
    let shared = format!("at {} it takes turns with n2", pdu.address().ip());
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

/// Another manager switches the outlet on again. That says nothing of the node, but what was proven by it is not any more: told, receipts
/// void, and the node fenced anew within two looks (S11).
#[tokio::test]
async fn an_outlet_that_somebody_switches_on_again_is_cut_again_and_its_node_proven_anew() -> Result<()> {
    let (pdu, webhook, silent) = (Pdu::start(8).await?, Webhook::start().await?, fresh_address());
    let rules = format!("watch = \"{}s\"", WATCH.as_secs());
    let gateway = started(&pdu, &node(&pdu, silent, &rules, "verified = true"), &webhook).await?;
    let fenced = said_to(&gateway, "fence").await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    is_off_again(&gateway, || pdu.press(7, true), || pdu.is_on(7)).await?;
    assert!(gateway.log().contains("what proved the node off does not hold any more"), "{}", gateway.log());
    Ok(())
}

/// The machine hangs on the outlet, and its BMC, which the settings know, with it: a drill switches the outlet, and from then on what it feeds is
/// known.
#[tokio::test]
async fn a_drill_verifies_what_an_agents_outlet_feeds() -> Result<()> {
    let (pdu, webhook) = (Pdu::start(8).await?, Webhook::start().await?);
    let mut bmc = IpmiSim::start().await?;
    let by_ipmi = by_ipmi("n1", bmc.address());
    let nodes = node(&pdu, bmc.address(), "", "")
        .replace(&by_ipmi, &format!("{by_ipmi}identity = {{ uuid = \"{}\" }}\n", bmc.guid()))
        .replace("releases = [\"detach\"]", "labels = { rack = \"r1\" }");
    let gateway = started(&pdu, &format!("{nodes}[groups.\"rack=r1\"]\ndrills = true\n"), &webhook).await?;
    let before = gateway.picket(&["status", "n1"]).await?;
    assert!(before.out.contains("wiring unverified"), "{before:?}");
    let drill = gateway.command(&["drill", "n1", "--yes", "--reason", "spring"])?.spawn();
    let mut drill = drill.map_err(PeerError::io("run picket drill"))?;
    let until = Instant::now() + Duration::from_secs(300);
    let (mut powered, mut falls) = (true, 0);
    let code = loop {
        if let Some(ended) = drill.try_wait().map_err(PeerError::io("wait for picket"))? {
            break ended.code();
        }
        // Its power is the outlet's, and its BMC's is, too; it stays off when that comes back, as its hold says.
        if pdu.is_on(7) != powered {
            powered = !powered;
            if powered {
                bmc.process().thaw();
            } else {
                falls += 1;
                bmc.press(false)?;
                bmc.process().freeze();
            }
        }
        assert!(Instant::now() < until, "{}", gateway.log());
        sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((code, falls, bmc.is_on()?), (Some(0), 1, true), "{}", gateway.log());
    assert_eq!(
        bmc.commands().iter().filter(|command| command.what == "off").count(),
        0,
        "by its outlet alone"
    );
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(
        !status.out.contains("wiring unverified") && status.out.contains("device outlet  ready"),
        "{status:?}\n{}",
        gateway.log()
    );
    Ok(())
}
