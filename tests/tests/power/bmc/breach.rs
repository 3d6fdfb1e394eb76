//! A fenced node that somebody switches on is fenced again (S11).

use std::time::Duration;

use picket_driver_sim::Act;
use picket_proto::v1::{
    FenceCause, NodeSelector, NodeSet, Phase, WatchNodesRequest, node_selector, node_set,
    watch_nodes_response,
};
use picket_tests::peers::{IpmiSim, Ipmitool, PowerWord};
use picket_tests::{Answer, Bmc, PeerError, Result};
use tokio::time::timeout;

use crate::bmc::host::{Host, by_script};
use crate::bmc::over_redfish::machine::Machine;
use crate::bmc::scene::{LONG, NODE, Plan, Scene};

#[tokio::test]
async fn somebody_switches_a_fenced_node_on() -> Result<()> {
    let host = Host::on(by_script).await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))])
        .with("[rules]\nwatch = \"1s\"")
        .start()
        .await?;
    let first = scene.fence().await?;
    first.is_fenced().dead_since(&host.observer).await;
    scene.released_while_off(1);

    let name = NodeSelector { by: Some(node_selector::By::Name(NODE.to_owned())) };
    let watch = WatchNodesRequest {
        nodes: Some(NodeSet { of: Some(node_set::Of::Node(name)) }),
        ..Default::default()
    };
    let mut client = scene.gateway.client().await?;
    let mut stream = client.watch_nodes(watch).await.map_err(PeerError::call("WatchNodes"))?.into_inner();
    Ipmitool::new(host.bmc.address()).run("chassis power on").await?;
    let seen = timeout(LONG, async {
        let mut seen = Vec::new();
        while let Some(message) = stream.message().await.map_err(PeerError::call("WatchNodes"))? {
            let Some(watch_nodes_response::Event::Node(node)) = message.event else { continue };
            println!("watch: {:?}, breaches {}, {}", node.phase(), node.breaches, node.detail);
            let fenced_again = node.breaches == 1 && node.phase() == Phase::Released;
            seen.push((node.phase(), node.breaches));
            if fenced_again {
                break;
            }
        }
        Ok::<_, PeerError>(seen)
    });
    let seen = seen.await.expect("fenced again in time")?;
    assert!(seen.contains(&(Phase::Fencing, 1)), "the breach is seen by whoever watches: {seen:?}");

    assert_eq!(host.onlookers().await?, PowerWord::Off);
    assert_eq!(host.power_events(), ["on", "off", "on", "off"]);
    let fences = scene.fences().await?;
    let causes: Vec<FenceCause> = fences.iter().map(|fence| fence.cause()).collect();
    assert_eq!(causes, [FenceCause::Breach, FenceCause::Asked]);
    assert!(fences[1].ended_at.is_some() && fences[0].generation > fences[1].generation);
    let log = scene.gateway.log();
    assert!(log.contains("breach"), "{log}");
    scene.released_while_off(2);
    let keys: Vec<String> =
        scene.webhook.releases().iter().map(|hook| hook.headers["idempotency-key"].clone()).collect();
    assert_ne!(keys[0], keys[1], "let go anew, under the new generation");

    let status = scene.gateway.picket(&["status", "n1"]).await?;
    println!("{}", status.out);
    let history = scene.gateway.picket(&["history", "n1"]).await?;
    println!("{}", history.out);
    assert!(history.out.contains("breach"), "{history:?}");
    // The first caller's hold still stands, and its drop brings the node back.
    scene.unfence().await?.is_back();
    host.is_alive().await
}

#[tokio::test]
async fn somebody_switches_it_on_while_its_volumes_are_let_go() -> Result<()> {
    let host = Host::on(by_script).await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;
    scene.webhook.answer(Answer::Status(503));
    let (told, ()) = tokio::try_join!(scene.fence(), async {
        scene.webhook.wait_for(1, Duration::from_secs(60)).await?;
        Ipmitool::new(host.bmc.address()).run("chassis power on").await?;
        scene.until("the breach is noticed", Duration::from_secs(30), |node| node.breaches == 1).await?;
        scene.webhook.answer(Answer::Complete);
        Ok(())
    })?;
    told.tell("a breach while a release was tried");
    scene
        .until("it is fenced again", Duration::from_secs(60), |node| node.phase() == Phase::Released)
        .await?;
    assert_eq!(host.power_events(), ["on", "off", "on", "off"]);
    let requests = scene.webhook.releases().len();
    assert!(requests >= 2);
    // Between the hand on the button and the next reading an attempt may still go out (two seconds, S4); no later one.
    let on: Vec<Option<bool>> = scene.webhook.releases().iter().map(|hook| hook.on).collect();
    println!("whether it was on at each request: {on:?}");
    assert_eq!(on.last(), Some(&Some(false)));
    Ok(())
}

/// A receipt of a proof is void once the node was found on, whichever protocol saw it.
async fn a_breach_voids_its_receipt(scene: &Scene, press: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    scene.fence().await?.is_fenced();
    let file = scene.gateway.directory().join("receipt.json");
    let file = file.to_str().expect("a plain path");
    let verify = ["receipt", "verify", file, "-o", "json"];
    let got = scene.gateway.picket(&["receipt", "get", NODE, "--audience", "storage", "--out", file]).await?;
    let fresh = scene.gateway.picket(&verify).await?;
    assert_eq!((got.code, fresh.code), (0, 0), "{got:?}\n{fresh:?}");
    assert!(fresh.out.contains("\"holds\""), "{fresh:?}");
    press().await?;
    scene
        .until("it is fenced again", LONG, |node| node.breaches == 1 && node.phase() == Phase::Released)
        .await?;
    let void = scene.gateway.picket(&verify).await?;
    assert!(void.code != 0 && void.out.contains("\"void\""), "{void:?}\n{}", scene.gateway.log());
    scene.released_while_off(2);
    Ok(())
}

/// It is looked at often, and a receipt outlives the breach: what makes it void is not its age.
const WATCHED: &str = "[rules]\nwatch = \"1s\"\nreceipt_life = \"10m\"";

#[tokio::test]
async fn a_receipt_is_void_once_ipmi_finds_its_node_on() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let plan = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()))]);
    let scene = plan.with(WATCHED).start().await?;
    a_breach_voids_its_receipt(&scene, async || {
        Ipmitool::new(bmc.address()).run("chassis power on").await.map(drop)
    })
    .await
}

#[tokio::test]
async fn a_receipt_is_void_once_redfish_finds_its_node_on() -> Result<()> {
    let machine = Machine::new().await?;
    let scene = machine.scene(WATCHED).await?;
    a_breach_voids_its_receipt(&scene, async || {
        machine.bmc.happen(Act::PressButton { machine: Machine::machine() });
        Ok(())
    })
    .await
}
