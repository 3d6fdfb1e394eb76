//! A store on a disk that is full.

use std::time::Duration;

use picket_tests::peers::IpmiSim;
use picket_tests::{Bmc, Fleet, Gateway, Result, Webhook};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn no_fence_starts_and_with_room_again_the_same_gateway_fences() -> Result<()> {
    let (bmc, webhook) = (IpmiSim::start().await?, Webhook::start().await?);
    let fleet = Fleet::new().node("n1", &Bmc::at(bmc.address()), &["detach"]).webhook(
        "detach",
        &webhook.url(),
        "settle = \"0s\"",
    );
    let (mut gateway, disk) = Gateway::on_a_small_disk(&fleet, 16 << 10)?;
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    let process = gateway.process()?.id();
    disk.fill(process)?;
    // What the store has in hand already may serve a few writes: names that are new need new room.
    for attempt in 0..3 {
        let reason = format!("{attempt} {}", "x".repeat(1_000));
        let said = gateway.picket(&["fence", "n1", "--yes", "--reason", &reason, "--timeout", "10s"]).await?;
        let text = said.out + &said.err;
        assert_eq!(said.code, 1, "{text}\n{}", gateway.log());
        assert!(text.contains("the disk is full: make room on it") && text.contains("picket.redb"), "{text}");
    }
    assert!(bmc.is_on()? && webhook.releases().is_empty());
    let nodes = gateway.picket(&["nodes"]).await?;
    assert!(nodes.code == 0 && nodes.out.contains("normal"), "it answers: {nodes:?}");
    assert!(!gateway.log().contains("panic"), "{}", gateway.log());
    disk.make_room(process)?;
    let fenced = gateway.picket(&["fence", "n1", "--yes", "--reason", "with room"]).await?;
    assert_eq!((fenced.code, bmc.is_on()?), (0, false), "{fenced:?}\n{}", gateway.log());
    assert_eq!(webhook.releases().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_disk_without_room_for_a_store_is_told_at_the_start() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let fleet = Fleet::new().node("n1", &Bmc::at(bmc.address()), &[]);
    let (mut gateway, _disk) = Gateway::on_a_small_disk(&fleet, 16)?;
    gateway.launch(&[])?;
    let ended = gateway.process()?.wait(SOON).await?;
    let log = gateway.log();
    assert_eq!(ended.code(), Some(75), "{log}");
    assert!(log.contains("picket.redb") && log.contains("the disk is full"), "{log}");
    assert!(!log.contains("panic"), "{log}");
    Ok(())
}
