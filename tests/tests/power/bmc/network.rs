//! Networks that lose, double, delay, and deliver when nobody expects it any more.

use std::time::Duration;

use picket_proto::v1::Phase;
use picket_tests::peers::{ADMIN, Bmc17, Faults, IpmiSim, Ipmitool, PowerWord, UdpFault};
use picket_tests::{Bmc, Fleet, Gateway, Result, Webhook};
use serde_json::Value;
use tokio::time::Instant;

use crate::bmc::host::{Host, by_script};
use crate::bmc::scene::Plan;

/// Nodes for each share of loss, and the seed of the first one's network: in a soak more of them, and others each time.
fn nodes_and_seed(percent: u64) -> (usize, u64) {
    if std::env::var_os("PICKET_SOAK").is_none() {
        return (6, percent * 100);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (48, now.as_secs() * 100)
}

/// Fences nodes behind networks that lose this share of all datagrams, in both directions.
async fn fences_through_loss(percent: u64) -> Result<()> {
    let (nodes, seed) = nodes_and_seed(percent);
    let mut fleet = Fleet::new();
    let mut peers = Vec::new();
    for node in 0..nodes {
        let bmc = IpmiSim::builder().holds().start().await?;
        let network = UdpFault::start(bmc.address(), seed + node as u64).await?;
        // Every other BMC drops the numbers that it has seen, as the specification asks.
        if node % 2 == 1 {
            network.drop_duplicates();
        }
        let webhook = Webhook::with_witness(bmc.truth()).await?;
        let release = format!("detach{node}");
        fleet = fleet.node(&format!("n{node}"), &Bmc::at(network.address()), &[&release]).webhook(
            &release,
            &webhook.url(),
            "settle = \"0s\"",
        );
        peers.push((bmc, network, webhook));
    }
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    for (_, network, _) in &peers {
        network.both(Faults { loss: percent as f64 / 100.0, ..Faults::default() });
    }
    let began = Instant::now();
    let list = format!("n[0-{}]", nodes - 1);
    let fenced = gateway
        .picket(&["fence", &list, "--yes", "--reason", "a test", "-o", "json", "--timeout", "90s"])
        .await?;
    let answer: Value = serde_json::from_str(&fenced.out).expect("JSON");
    let mut late = 0;
    for (index, (bmc, network, webhook)) in peers.iter().enumerate() {
        let result = &answer["results"][index];
        let (outcome, took) = (&result["outcome"], &result["took_s"]);
        let window = &result["evidence"]["devices"][0]["long_window"];
        println!("{percent} %, n{index}: {outcome} after {took} s, {window}, {:?}", network.counts());
        assert!(webhook.releases().iter().all(|hook| hook.on == Some(false)), "released while on");
        if result["left"] == "timed_out" {
            // Each silent call begins the evidence anew: where five copies in a row are lost now and then, that takes its time.
            late += 1;
            assert_eq!((&result["phase"], webhook.releases().len()), (&"fencing".into(), 0), "{result:#}");
            continue;
        }
        assert_eq!((&outcome["kind"], &outcome["released"]), (&"fenced".into(), &true.into()), "{result:#}");
        assert!(!bmc.is_on()? && !webhook.releases().is_empty());
    }
    println!("{percent} %: {} of {nodes} after {:?}", nodes - late, began.elapsed());
    assert!(
        late <= if percent < 40 { 0 } else { nodes.div_ceil(12) },
        "{late} of {nodes} are not fenced yet"
    );
    Ok(())
}

#[tokio::test]
async fn five_percent_are_lost() -> Result<()> {
    fences_through_loss(5).await
}

#[tokio::test]
async fn twenty_percent_are_lost() -> Result<()> {
    fences_through_loss(20).await
}

#[tokio::test]
async fn forty_percent_are_lost() -> Result<()> {
    fences_through_loss(40).await
}

#[tokio::test]
async fn a_machine_is_brought_back_through_loss_as_well() -> Result<()> {
    let host = Host::on(by_script).await?;
    let network = UdpFault::start(host.bmc.address(), 20).await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(network.address()))]).start().await?;
    network.both(Faults { loss: 0.2, ..Faults::default() });
    let fenced = scene.fence().await?;
    fenced.tell("20 % lost");
    fenced.is_fenced().dead_since(&host.observer).await;
    let back = scene.unfence().await?;
    back.tell("20 % lost, back");
    back.is_back();
    host.is_alive().await?;
    assert_eq!(host.power_events(), ["on", "off", "on"]);
    scene.released_while_off(1);
    Ok(())
}

/// Three copies of everything, out of order.
fn disorder() -> Faults {
    Faults {
        copies: 2,
        copy_delay: Duration::from_millis(30),
        jitter: Duration::from_millis(100),
        ..Faults::default()
    }
}

#[tokio::test]
async fn duplicates_and_disorder_change_nothing() -> Result<()> {
    let host = Host::on(by_script).await?;
    let network = UdpFault::start(host.bmc.address(), 3).await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(network.address()))]).start().await?;
    network.both(disorder());
    let fenced = scene.fence().await?;
    fenced.tell("three copies of everything, out of order");
    fenced.is_fenced().dead_since(&host.observer).await;
    scene.unfence().await?.is_back();
    host.is_alive().await?;
    assert_eq!(host.power_events(), ["on", "off", "on"]);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn the_other_bmc_copes_with_loss_and_disorder_as_well() -> Result<()> {
    let worse = Faults { loss: 0.2, ..disorder() };
    for (seed, faults) in [(17, disorder()), (18, Faults { loss: 0.2, ..Faults::default() }), (19, worse)] {
        let bmc = Bmc17::with_suites("17").await?;
        let network = UdpFault::start(bmc.address(), seed).await?;
        let scene =
            Plan::over(bmc.truth(), &[("bmc", Bmc::at(network.address()).user(ADMIN))]).start().await?;
        network.both(faults);
        let fenced = scene.fence().await?;
        fenced.tell(&format!("bmc17, {faults:?}"));
        fenced.is_fenced();
        let back = scene.unfence().await?;
        back.tell("back");
        back.is_back();
        assert!(bmc.is_on()?);
        scene.released_while_off(1);
    }
    Ok(())
}

/// A copy of each request comes so much later.
const LATE: Duration = Duration::from_secs(10);

/// On a busy machine they may come too early: then it is tried again.
const TRIES: usize = 5;

/// Fences through a network that delivers each request again when nobody expects it; returns when the off was sent at
/// the earliest.
async fn fence_with_late_copies() -> Result<(Host, UdpFault, crate::bmc::scene::Scene, Instant)> {
    let host = Host::on(by_script).await?;
    let network = UdpFault::start(host.bmc.address(), 5).await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(network.address()))])
        .with("[rules]\nwatch = \"60s\"")
        .start()
        .await?;
    network.requests(Faults { copies: 1, copy_delay: LATE, ..Faults::default() });
    let sent = Instant::now();
    scene.fence().await?.is_fenced();
    Ok((host, network, scene, sent))
}

#[tokio::test]
async fn a_late_duplicate_of_the_off_does_not_switch_an_unfenced_node_off() -> Result<()> {
    for _ in 0..TRIES {
        let (host, network, scene, sent) = fence_with_late_copies().await?;
        let back = scene.unfence().await?;
        back.tell("unfenced before the late copies arrive");
        back.is_back();
        if sent.elapsed() >= LATE {
            continue;
        }
        tokio::time::sleep_until(sent + LATE * 2).await;
        println!("{:?}", network.counts());
        assert_eq!(host.power_events(), ["on", "off", "on"], "no late off was carried out");
        host.is_alive().await?;
        assert_eq!(host.onlookers().await?, PowerWord::On);
        assert_eq!(scene.node().await?.phase(), Phase::Normal);
        return Ok(());
    }
    panic!("it is never back before the late copies arrive");
}

/// The negative control: in the session that carried it the same copy is carried out.
#[tokio::test]
async fn a_late_duplicate_in_its_open_session_is_carried_out() -> Result<()> {
    for _ in 0..TRIES {
        let (host, _network, _scene, sent) = fence_with_late_copies().await?;
        Ipmitool::new(host.bmc.address()).run("chassis power on").await?;
        host.is_alive().await?;
        if sent.elapsed() >= LATE {
            continue;
        }
        tokio::time::sleep_until(sent + LATE * 2).await;
        assert_eq!(host.power_events(), ["on", "off", "on", "off"], "the late off switched it off");
        return Ok(());
    }
    panic!("it is never on before the late copies arrive");
}
