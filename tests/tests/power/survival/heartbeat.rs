//! No heartbeat is written after the time of confirmation, and the release comes after the last one.
//!
//! Real machines, the shipped defaults of every rule. Who says when a heartbeat was written is a process of its own
//! that reads the machine's disk; when the machine fell stands in the log of its power control.

use std::time::{Duration, SystemTime};

use picket_proto::v1::{Fence, ListFencesRequest, NodeSelector, NodeSet, node_selector, node_set};
use picket_tests::peers::{Beat, IpmiSim, Ipmitool, Knob, Machine, Observer};
use picket_tests::{Bmc, Dice, Fleet, Gateway, Hook, PeerError, Result, Webhook, soak};

const BOOT: Duration = Duration::from_secs(120);
/// More than a dozen heartbeats long.
const LISTEN: Duration = Duration::from_millis(1_500);
/// The longest that a BMC takes from the acknowledgement of an off to the fall.
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// A machine that beats behind its BMC, with its witness, and whoever lets its volumes go.
#[derive(Debug)]
struct Host {
    name: String,
    bmc: IpmiSim,
    machine: Machine,
    observer: Observer,
    webhook: Webhook,
}

impl Host {
    /// Switched on, and beating. As its BMC's own child, or behind a program of the BMC's that knows faults.
    async fn start(name: &str, child: bool) -> Result<Self> {
        let machine = Machine::new()?;
        let bmc = IpmiSim::builder();
        let bmc = if child { bmc.machine_as_child(&machine) } else { bmc.machine(&machine) }
            .holds()
            .start()
            .await?;
        let observer = machine.observe().await?;
        Ipmitool::new(bmc.address()).run("chassis power on").await?;
        observer.wait_for(2, BOOT).await?;
        let webhook = Webhook::with_witness(machine.truth()).await?;
        Ok(Self { name: name.to_owned(), bmc, machine, observer, webhook })
    }
}

/// A gateway over these hosts, with the defaults.
async fn gateway(hosts: &[Host]) -> Result<Gateway> {
    let fleet = hosts.iter().fold(Fleet::new(), |fleet, host| {
        let release = format!("detach-{}", host.name);
        fleet.node(&host.name, &Bmc::at(host.bmc.address()), &[&release]).webhook(
            &release,
            &host.webhook.url(),
            "",
        )
    });
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    Ok(gateway)
}

/// What is known of one fence from outside, and what the gateway says of it.
#[derive(Debug)]
struct Seen {
    opened: SystemTime,
    confirmed: SystemTime,
    /// Heartbeats from before the fence to well after the release.
    beats: Vec<Beat>,
    /// When its power control killed the machine; not known of one that is its BMC's child.
    fell: Option<SystemTime>,
    release: Hook,
}

/// Fences the host and watches on for a while.
async fn fence(host: &Host, gateway: &Gateway) -> Result<Seen> {
    let before = host.webhook.releases().len();
    let said = gateway.picket(&["fence", &host.name, "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
    host.observer.listen(LISTEN).await;
    let fence = newest(host, gateway).await?;
    let releases = host.webhook.releases();
    let [release] = &releases[before..] else { panic!("{} releases: {said:?}", releases.len() - before) };
    let time = |at: Option<_>| SystemTime::try_from(at.expect("it has come so far")).expect("after 1970");
    let fell =
        host.machine.power_events().into_iter().rfind(|event| event.what == "off").map(|event| event.at);
    Ok(Seen {
        opened: time(fence.opened_at),
        confirmed: time(fence.evidence.expect("evidence").confirmed_at),
        beats: host.observer.beats(),
        fell,
        release: release.clone(),
    })
}

async fn newest(host: &Host, gateway: &Gateway) -> Result<Fence> {
    let node = NodeSelector { by: Some(node_selector::By::Name(host.name.clone())) };
    let request = ListFencesRequest {
        nodes: Some(NodeSet { of: Some(node_set::Of::Node(node)) }),
        page_size: 1,
        ..ListFencesRequest::default()
    };
    let answer = gateway.client().await?.list_fences(request).await.map_err(PeerError::call("ListFences"))?;
    Ok(answer.into_inner().fences.pop().expect("it was fenced"))
}

/// How long before `later` something was; negative numbers are how long after.
fn before(earlier: SystemTime, later: SystemTime) -> i128 {
    let millis = |time: Duration| i128::try_from(time.as_millis()).unwrap_or(i128::MAX);
    later.duration_since(earlier).map_or_else(|error| -millis(error.duration()), millis)
}

impl Seen {
    fn last(&self) -> Beat {
        *self.beats.last().expect("it lived")
    }

    /// Nothing was written after the confirmation, the fall was before it, and the release after the last heartbeat.
    fn check(&self, what: &str) {
        let late: Vec<_> = self.beats.iter().filter(|beat| beat.may_be_after(self.confirmed)).collect();
        assert!(late.is_empty(), "{what}: heartbeats after the confirmation {:?}: {late:?}", self.confirmed);
        assert!(
            self.fell.is_none_or(|fell| fell <= self.confirmed),
            "{what}: it fell after the confirmation: {self:?}"
        );
        assert!(
            self.release.at > self.last().seen,
            "{what}: a release before the last heartbeat was seen: {self:?}"
        );
        assert_eq!(self.release.on, Some(false), "{what}: a release of a machine that lives: {self:?}");
        println!(
            "{what}: confirmed {} ms after it was asked for; the last heartbeat was {} ms before the confirmation and {} ms \
             before the release",
            before(self.opened, self.confirmed),
            before(self.last().written, self.confirmed),
            before(self.last().written, self.release.at),
        );
    }
}

/// Fences the host and brings it back, once for each delay.
async fn rounds(host: &Host, gateway: &Gateway, delays: &[Option<Duration>]) -> Result<()> {
    for (round, delay) in delays.iter().enumerate() {
        match delay {
            Some(delay) => host.bmc.set(Knob::OffDelay(*delay))?,
            None => host.bmc.clear(Knob::OffDelay(Duration::ZERO))?,
        }
        let seen = fence(host, gateway).await?;
        seen.check(&format!("{} round {}, delay {delay:?}", host.name, round + 1));
        let said = gateway.picket(&["unfence", &host.name, "--yes", "--reason", "over"]).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
        host.observer.wait_for(2, BOOT).await?;
    }
    Ok(())
}

/// The hosts side by side, each so many rounds, with delays by chance; one round in five has none.
async fn hearts(test: &str, count: usize, child: bool, each: usize) -> Result<()> {
    let mut dice = Dice::of(test);
    let names: Vec<String> = (1..=count).map(|number| format!("n{number}")).collect();
    let hosts = futures::future::try_join_all(names.iter().map(|name| Host::start(name, child))).await?;
    let gateway = gateway(&hosts).await?;
    let delays: Vec<Vec<Option<Duration>>> = hosts
        .iter()
        .map(|_| (0..each).map(|_| (!child && dice.throw(5) > 0).then(|| dice.time(LONGEST_DELAY))).collect())
        .collect();
    let all = hosts.iter().zip(&delays).map(|(host, delays)| rounds(host, &gateway, delays));
    futures::future::try_join_all(all).await?;
    Ok(())
}

/// 50 runs with `PICKET_SOAK`, else 10.
#[tokio::test]
async fn none_after_the_confirmation_however_long_the_fall_takes() -> Result<()> {
    hearts("random off delays", 5, false, if soak() { 10 } else { 2 }).await
}

/// The BMC is the machine's parent: it acknowledges first and kills then. 10 runs with `PICKET_SOAK`, else 2.
#[tokio::test]
async fn none_after_the_confirmation_where_the_bmc_acknowledges_before_the_fall() -> Result<()> {
    hearts("acknowledged before the fall", 2, true, if soak() { 5 } else { 1 }).await
}

/// The negative control: with a BMC that says off of a machine that lives, and nobody else to ask, the witness sees
/// heartbeats after the confirmation, and a release of a machine that lives.
#[tokio::test]
async fn the_witness_sees_a_lie() -> Result<()> {
    let host = Host::start("n1", false).await?;
    host.bmc.set(Knob::LieOff)?;
    let hosts = [host];
    let gateway = gateway(&hosts).await?;
    let seen = fence(&hosts[0], &gateway).await?;
    assert!(seen.last().written > seen.confirmed, "{seen:?}");
    assert_eq!(seen.release.on, Some(true), "{seen:?}");
    Ok(())
}
