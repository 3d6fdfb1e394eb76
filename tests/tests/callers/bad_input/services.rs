//! Redfish services, and boards, that are not what the settings say: told by a check, before any fence.

use std::path::Path;

use picket_tests::peers::{IpmiSim, SYSTEMS, Sushy, SushyFault};
use picket_tests::{Bmc, Fleet, Gateway, Result, Said};

/// What `picket check` says of a node with this device.
async fn checked(device: &Bmc) -> Result<String> {
    let gateway = Gateway::start(&Fleet::new().node("n1", device, &[])).await?;
    gateway.checked().await?;
    let said = gateway.picket(&["check", "n1"]).await?;
    Ok(said.out + &said.err)
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[tokio::test]
async fn a_system_that_is_not_there() -> Result<()> {
    let sushy = Sushy::start().await?;
    let said = checked(&Bmc::redfish(&sushy, "437XR1138R2")).await?;
    has(&said, &["0 of 1", "437XR1138R2", SYSTEMS[0]]);
    Ok(())
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for() -> Result<()> {
    let sushy = Sushy::start().await?;
    let foreign = sushy.foreign_ca()?;
    let bmc = Bmc::redfish(&sushy, SYSTEMS[0]);
    let fenced = async |bmc: &Bmc| -> Result<(String, Said)> {
        let fleet = Fleet::new().with("[rules]\nsilent_share = \"1s\"").node("n1", bmc, &[]);
        let gateway = Gateway::start(&fleet).await?;
        gateway.checked().await?;
        let check = gateway.picket(&["check", "n1"]).await?;
        let fence = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
        Ok((check.out + &check.err, fence))
    };
    let (check, fence) = fenced(&bmc.clone().trusting(Path::new(&foreign))).await?;
    has(&check, &["0 of 1", "certificate"]);
    assert_eq!((fence.code, sushy.resets()), (4, 0), "nothing is sent there, no off either: {fence:?}");
    has(&(fence.out + &fence.err), &["needs operator (levels spent)", "certificate"]);
    // By the right authority the same machine gets its off.
    let (check, fence) = fenced(&bmc).await?;
    has(&check, &["1 of 1"]);
    assert_eq!((fence.code, sushy.is_on(SYSTEMS[0])?), (0, false), "{fence:?}");
    assert!(sushy.resets() > 0);
    Ok(())
}

#[tokio::test]
async fn a_service_that_offers_no_hard_off() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    sushy.faults(&[SushyFault::new("GET ...094", "gentle", 999)])?;
    let said = checked(&Bmc::redfish_in_sessions(&sushy, SYSTEMS[0])).await?;
    has(&said, &["0 of 1", "does not offer ForceOff", "GracefulShutdown"]);
    Ok(())
}

#[tokio::test]
async fn two_boards_with_one_guid() -> Result<()> {
    let guid = 0x8d3f_2f1e_64a1_4c2e_9d43_0f5a_0a2b_6c41;
    let (one, other) =
        (IpmiSim::builder().guid(guid).start().await?, IpmiSim::builder().guid(guid).start().await?);
    let fleet =
        Fleet::new().node("n1", &Bmc::at(one.address()), &[]).node("n2", &Bmc::at(other.address()), &[]);
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    // Whoever was asked first is asked once more, now that the other one has spoken.
    let said = gateway.picket(&["check"]).await?;
    has(&said.out, &["n1/bmc claims the same of itself", "n2/bmc claims the same of itself"]);
    Ok(())
}
