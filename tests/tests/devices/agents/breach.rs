//! A node that an agent switched off is found on: fenced again within two looks, its receipts void, its releases anew (S11).

use std::time::{Duration, Instant};

use picket_tests::peers::{IpmiSim, eventually};
use picket_tests::{Gateway, Result, Webhook};

use crate::agents::scene::{fence_ipmilan, fleet, said_to};

/// How often a fenced node is looked at here: long beside what a run of an agent takes on a busy machine.
pub const WATCH: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(120);

/// The node is fenced; somebody switches it on by `press`. It is off again within two looks, and a receipt of before is void.
pub async fn is_off_again(
    gateway: &Gateway,
    press: impl FnOnce() -> Result<()>,
    is_on: impl Fn() -> bool,
) -> Result<()> {
    let receipt = gateway.directory().join("receipt");
    let receipt = receipt.to_str().expect("a plain path");
    let got = gateway.picket(&["receipt", "get", "n1", "--audience", "storage", "--out", receipt]).await?;
    assert_eq!(got.code, 0, "{got:?}\n{}", gateway.log());
    let fresh = gateway.picket(&["receipt", "verify", receipt]).await?;
    assert_eq!(fresh.code, 0, "{fresh:?}");
    let pressed = Instant::now();
    press()?;
    assert!(is_on());
    eventually("it is off again", PATIENCE, || !is_on()).await?;
    assert!(pressed.elapsed() <= 2 * WATCH, "{:?}\n{}", pressed.elapsed(), gateway.log());
    let void = gateway.picket(&["receipt", "verify", receipt]).await?;
    assert_ne!(void.code, 0, "a receipt of before: {void:?}");
    assert!(!is_on());
    Ok(())
}

/// What a button, a restore of power or another manager did is the same to an agent, which knows no holds: it is on.
#[tokio::test]
async fn a_machine_that_somebody_switches_on_again_is_fenced_again_by_its_agent() -> Result<()> {
    let (bmc, webhook) = (IpmiSim::start().await?, Webhook::start().await?);
    let nodes = format!("[rules]\nwatch = \"{}s\"\n{}", WATCH.as_secs(), fence_ipmilan(bmc.address()));
    let gateway = Gateway::start(&fleet(&nodes, &webhook)).await?;
    gateway.checked().await?;
    let fenced = said_to(&gateway, "fence").await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    let truth = bmc.truth();
    is_off_again(&gateway, || bmc.press(true), || truth()).await?;
    webhook.wait_for(2, PATIENCE).await?;
    let history = gateway.picket(&["history", "n1"]).await?;
    assert!(history.out.contains("breach") && gateway.log().contains("breach"), "{history:?}");
    Ok(())
}
