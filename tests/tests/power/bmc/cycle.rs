//! Somebody else's power cycle: off when Picket looks, and on again 8 s later whatever comes between (S2).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use picket_core::outcome::Outcome;
use picket_core::rules::Rules;
use picket_tests::peers::{PowerWord, eventually};
use picket_tests::{Bmc, Fleet, Gateway, Result, Webhook};

use crate::bmc::host::{BOOT, Host, by_script};
use crate::bmc::inside::Inside;
use crate::bmc::scene::Plan;

/// From the foreign off to the foreign on.
const GAP: Duration = Duration::from_secs(8);

#[tokio::test]
async fn a_node_in_the_gap_is_caught_when_it_comes_up() -> Result<()> {
    let host = Host::on(by_script).await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;
    host.machine.foreign_cycle(GAP).await?;
    let fenced = scene.fence().await?;
    fenced.tell("in the gap of a foreign power cycle");
    fenced.is_fenced().dead_since(&host.observer).await;
    assert!(fenced.took >= GAP - Duration::from_secs(1), "{:?}", fenced.took);
    scene.released_while_off(1);
    assert_eq!(host.onlookers().await?, PowerWord::Off);
    assert_eq!(host.power_events(), ["on", "cycle begins", "off", "cycle ends", "on", "off"]);
    Ok(())
}

/// The same engine, driver and machine; only the window differs.
async fn inside(window: Duration) -> Result<(Host, Webhook, SystemTime)> {
    let host = Host::on(by_script).await?;
    let webhook = Webhook::with_witness(host.machine.truth()).await?;
    let rules = Rules { longest_cycle: window, ..Rules::default() };
    let inside = Inside::start(rules, host.bmc.address(), &webhook).await?;
    host.machine.foreign_cycle(GAP).await?;
    let (outcome, evidence) = inside.fence().await;
    assert_eq!(outcome, Outcome::Fenced { released: true });
    let confirmed = evidence.expect("evidence").confirmed_at;
    let confirmed = UNIX_EPOCH + Duration::from_millis(confirmed.millis());
    let ends = || host.power_events().iter().any(|what| what == "cycle ends");
    eventually("the end of the foreign cycle", BOOT, ends).await?;
    // By itself it stays as the foreign cycle left it, or as the engine did: nobody watches a while longer.
    drop(inside);
    Ok((host, webhook, confirmed))
}

#[tokio::test]
async fn with_the_window_at_zero_it_is_confirmed_wrongly_and_the_observers_see_it() -> Result<()> {
    let (host, webhook, confirmed) = inside(Duration::ZERO).await?;
    let released = webhook.releases();
    assert_eq!(released.len(), 1);
    host.observer.wait_for(3, BOOT).await?;
    let after = host.observer.after(confirmed);
    println!("window 0: {} heartbeats after the confirmation, the first at {:?}", after.len(), after[0]);
    assert!(after.len() >= 3, "the machine lives, and its volumes were let go");
    Ok(())
}

#[tokio::test]
async fn with_the_window_as_shipped_the_same_engine_is_right() -> Result<()> {
    let (host, webhook, confirmed) = inside(Rules::default().longest_cycle).await?;
    assert_eq!(webhook.releases().iter().map(|hook| hook.on).collect::<Vec<_>>(), [Some(false)]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(host.observer.after(confirmed), []);
    Ok(())
}

#[tokio::test]
async fn picketd_refuses_a_window_of_zero() -> Result<()> {
    let bmc = Bmc::at(picket_tests::peers::fresh_address());
    for (settings, key) in [
        (Fleet::new().with("[rules]\nlongest_cycle = \"0s\"").node("n1", &bmc, &[]), "rules.longest_cycle"),
        (Fleet::new().node("n1", &bmc.clone().with("longest_cycle = \"0s\""), &[]), "longest_cycle"),
    ] {
        let mut gateway = Gateway::new(&settings)?;
        gateway.launch(&[])?;
        let status = gateway.process()?.wait(Duration::from_secs(30)).await?;
        println!("{}", gateway.log());
        assert!(!status.success() && gateway.log().contains(key) && gateway.log().contains("5s"));
    }
    Ok(())
}
