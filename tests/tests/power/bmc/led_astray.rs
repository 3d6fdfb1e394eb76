//! S13 where the address of a BMC leads to another machine's, with the same account, from some datagram on: a duplicate address, a lease
//! that was given anew. Forty-four nodes at once, each led astray a datagram later than the one before: whoever was identified is
//! switched, believed and brought back, and nobody else.

use picket_tests::peers::{IpmiSim, UdpFault};
use picket_tests::{Bmc, Fleet, Gateway, Result, Webhook};
use serde_json::Value;

const NODES: u32 = 44;
/// What makes those quick that wait for an answer which does not come.
const IMPATIENT: &str = "[rules]\nlevel_share = \"20s\"\nfence_deadline = \"22s\"\non_deadline = \"20s\"";

/// One node: its own BMC, the other one, and the way to them.
struct Way {
    name: String,
    own: IpmiSim,
    other: IpmiSim,
    network: UdpFault,
    webhook: Webhook,
}

impl Way {
    async fn new(number: u32, tells: bool) -> Result<Self> {
        let own = IpmiSim::builder().holds().start().await?;
        let other = IpmiSim::builder().holds();
        let other = if tells { other } else { other.guid(0) }.start().await?;
        let network = UdpFault::start(own.address(), u64::from(number)).await?;
        let webhook = Webhook::with_witness(own.truth()).await?;
        Ok(Self { name: format!("n{number}"), own, other, network, webhook })
    }

    /// Nobody touched the other one, and nothing was let go while the node's own machine was on.
    fn is_lawful(&self, log: &str) -> Result<()> {
        let name = &self.name;
        let of_node = || log.lines().filter(|line| line.contains(name)).collect::<Vec<_>>().join("\n");
        assert!(self.other.commands().is_empty(), "{name}: another machine was switched\n{}", of_node());
        assert_eq!(self.other.hold_log(), [""; 0], "{name}: another machine was held\n{}", of_node());
        let releases = self.webhook.releases();
        assert!(releases.iter().all(|one| one.on == Some(false)), "{name}: {releases:?}\n{}", of_node());
        Ok(())
    }
}

async fn led_astray(tells: bool) -> Result<()> {
    let mut fleet = Fleet::new().with(IMPATIENT);
    let mut ways = Vec::new();
    for number in 0..NODES {
        let way = Way::new(number, tells).await?;
        let release = format!("detach{number}");
        fleet = fleet.node(&way.name, &Bmc::at(way.network.address()), &[&release]);
        fleet = fleet.webhook(&release, &way.webhook.url(), "settle = \"0s\"");
        ways.push(way);
    }
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    for (number, way) in (0..).zip(&ways) {
        way.network.lead_to(way.other.address(), number);
    }
    let all = format!("n[0-{}]", NODES - 1);
    let does = async |verb: &str| -> Result<Vec<Value>> {
        let asked = [verb, &all, "--yes", "--reason", "a test", "-o", "json", "--timeout", "170s"];
        let said = gateway.picket(&asked).await?;
        let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        Ok(told["results"].as_array().cloned().unwrap_or_default())
    };
    let told = does("fence").await?;
    let log = gateway.log();
    let mut proven = 0;
    for (way, told) in ways.iter().zip(&told) {
        way.is_lawful(&log)?;
        assert!(way.other.is_on()?, "{}: the other one runs on", way.name);
        if told["outcome"]["kind"] == "fenced" {
            proven += 1;
            assert!(!way.own.is_on()?, "{}: proven off, and it runs: {told:#}", way.name);
        }
        println!("{}: {}", way.name, told["outcome"]);
    }
    // Whoever was led astray after the proof was proven; nobody before it.
    assert!(proven > 0 && proven < ways.len(), "{proven} of {}", ways.len());

    // By now the other ones are fenced, too, by whomever; and of those that were proven each is led astray on its way back.
    for (number, way) in (0..).zip(&ways) {
        way.other.press(false)?;
        way.network.lead_to(way.other.address(), number / 2);
    }
    let told = does("unfence").await?;
    let log = gateway.log();
    for (way, told) in ways.iter().zip(&told) {
        way.is_lawful(&log)?;
        assert!(!way.other.is_on()?, "{}: the other one was switched on: {told:#}", way.name);
        println!("{}: back {}", way.name, told["outcome"]);
    }
    Ok(())
}

#[tokio::test]
async fn of_bmcs_whose_address_is_another_s_from_some_datagram_on_none_is_taken_for_it() -> Result<()> {
    led_astray(true).await
}

#[tokio::test]
async fn nor_where_the_other_one_does_not_say_whose_it_is() -> Result<()> {
    led_astray(false).await
}
