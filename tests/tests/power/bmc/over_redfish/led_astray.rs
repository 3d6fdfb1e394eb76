//! S13 where the address of a BMC leads to another machine's, with the same account and a certificate of the same authority, from some
//! piece on that was said to it. Forty nodes at once, each led astray a piece later than the one before: whoever was identified is
//! switched, believed and brought back, and nobody else.

use std::sync::Arc;
use std::time::Duration;

use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::{Act, Fault, RestorePolicy, SimClock, Verb};
use picket_fleet::{Account, Bmc as Machine, BmcOptions, Fleet as Machines, RedfishPlace, Role};
use picket_tests::peers::{ADMIN, PASSWORD, TcpFault, fresh_address};
use picket_tests::{Bmc, Fleet, Gateway, Result, Webhook};
use serde_json::Value;

const NODES: u32 = 40;
/// What makes those quick that wait for an answer which does not come.
const IMPATIENT: &str =
    "[rules]\nlevel_share = \"20s\"\nfence_deadline = \"22s\"\nlongest_cycle = \"5s\"\non_deadline = \"3s\"";
const IN_SESSIONS: &str = "session_timeout = \"60s\"\nlast_reset_time = true";
const BY_PASSWORD: &str = "authentication = \"basic\"\nmax_life = \"5s\"\nlast_reset_time = true";

/// One node: its own machine, the other one, and the way to them.
struct Way {
    name: String,
    own: Arc<Machine>,
    other: Arc<Machine>,
    network: TcpFault,
    webhook: Webhook,
}

/// A machine of that name at a port of that address. The port is its chance, too: no two have a token in common.
fn machine(name: String, host: std::net::IpAddr, port: u16) -> BmcOptions {
    let account =
        Account { name: ADMIN.to_owned(), password: PASSWORD.to_owned(), role: Role::Administrator };
    let (address, idle) = ((host, port).into(), Duration::from_secs(60));
    BmcOptions {
        name,
        ipmi: address,
        accounts: Arc::new([account]),
        suites: vec![Suite::Sha256],
        sessions: 8,
        idle,
        redfish: Some(RedfishPlace { address, sessions: 16, idle, tasks: false }),
        seed: port.into(),
    }
}

impl Way {
    async fn between(own: &Arc<Machine>, other: &Arc<Machine>) -> Result<Self> {
        let address = own.redfish_address().expect("it speaks Redfish");
        // Its certificate names the address, and no port.
        let network = TcpFault::on(address.ip(), address).await?;
        let truth = own.clone();
        let webhook = Webhook::with_witness(Arc::new(move || truth.is_on())).await?;
        let (name, own, other) = (own.name().to_owned(), own.clone(), other.clone());
        Ok(Self { name, own, other, network, webhook })
    }

    fn lead_astray(&self, after: u32) {
        self.network.lead_to(self.other.redfish_address().expect("it speaks Redfish"), after);
    }

    /// Nobody touched the other one, and nothing was let go while the node's own machine was on.
    fn is_lawful(&self, log: &str) {
        let name = &self.name;
        let of_node = || log.lines().filter(|line| line.contains(name)).collect::<Vec<_>>().join("\n");
        let now = self.other.now();
        let heard = self.other.world().heard(now).to_vec();
        assert!(heard.is_empty(), "{name}: another machine was switched: {heard:?}\n{}", of_node());
        let held = self.other.world().hold(self.other.name()).restore;
        assert_ne!(held, RestorePolicy::AlwaysOff, "{name}: another machine was held\n{}", of_node());
        let releases = self.webhook.releases();
        assert!(releases.iter().all(|one| one.on == Some(false)), "{name}: {releases:?}\n{}", of_node());
    }
}

async fn led_astray(settings: &str, tells: bool) -> Result<()> {
    let all: Vec<BmcOptions> = (0..NODES)
        .flat_map(|number| {
            let host = fresh_address().ip();
            [machine(format!("n{number}"), host, 623), machine(format!("other{number}"), host, 624)]
        })
        .collect();
    let clock: Arc<dyn picket_core::time::Clock> = Arc::new(SimClock::new());
    let machines = Machines::start(&all, &clock).await.expect("free addresses");
    let ca = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(ca.path(), machines.authority()).expect("written");
    let mut fleet = Fleet::new().with(IMPATIENT);
    let mut ways = Vec::new();
    for number in 0..NODES {
        let of = |name: String| machines.bmc(&name).expect("it was asked for");
        let way = Way::between(of(format!("n{number}")), of(format!("other{number}"))).await?;
        if !tells {
            way.other.world().fault(&format!("other{number}-redfish"), Fault::DropsQuestions);
        }
        let device = Bmc::redfish_at(way.network.address()).trusting(ca.path()).with(settings);
        let release = format!("detach{number}");
        fleet = fleet.node(&way.name, &device, &[&release]);
        fleet = fleet.webhook(&release, &way.webhook.url(), "settle = \"0s\"");
        ways.push(way);
    }
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    for (number, way) in (0..).zip(&ways) {
        way.lead_astray(number);
    }
    let all = format!("n[0-{}]", NODES - 1);
    let does = async |verb: &str| -> Result<Vec<Value>> {
        let asked = [verb, &all, "--yes", "--reason", "a test", "-o", "json", "--timeout", "100s"];
        let said = gateway.picket(&asked).await?;
        let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        Ok(told["results"].as_array().cloned().unwrap_or_default())
    };
    let told = does("fence").await?;
    let log = gateway.log();
    let mut proven = 0;
    for (way, told) in ways.iter().zip(&told) {
        way.is_lawful(&log);
        assert!(way.other.is_on(), "{}: the other one runs on", way.name);
        if told["outcome"]["kind"] == "fenced" {
            proven += 1;
            assert!(!way.own.is_on(), "{}: proven off, and it runs: {told:#}", way.name);
        }
        println!("{}: {}", way.name, told["outcome"]);
    }
    // Whoever was led astray after the proof was proven; nobody before it.
    assert!(proven > 0 && proven < ways.len(), "{proven} of {}", ways.len());

    // By now the other ones are fenced, too, by whomever; and of those that were proven each is led astray on its way back.
    for (number, way) in (0..).zip(&ways) {
        way.other.happen(Act::Foreign { machine: way.other.name().to_owned(), verb: Verb::Off });
        way.lead_astray(number / 2);
    }
    let told = does("unfence").await?;
    let log = gateway.log();
    for (way, told) in ways.iter().zip(&told) {
        way.is_lawful(&log);
        assert!(!way.other.is_on(), "{}: the other one was switched on: {told:#}", way.name);
        println!("{}: back {}", way.name, told["outcome"]);
    }
    Ok(())
}

#[tokio::test]
async fn of_services_whose_address_is_another_s_from_some_piece_on_none_is_taken_for_it() -> Result<()> {
    led_astray(IN_SESSIONS, true).await
}

#[tokio::test]
async fn nor_where_the_other_one_does_not_say_whose_it_is() -> Result<()> {
    led_astray(IN_SESSIONS, false).await
}

#[tokio::test]
async fn nor_without_sessions() -> Result<()> {
    led_astray(BY_PASSWORD, true).await
}

#[tokio::test]
async fn nor_without_sessions_where_the_other_one_does_not_say_whose_it_is() -> Result<()> {
    led_astray(BY_PASSWORD, false).await
}
