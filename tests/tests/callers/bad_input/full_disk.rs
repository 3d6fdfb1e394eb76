//! A store on a disk that is full.

use std::time::Duration;

use picket_tests::peers::IpmiSim;
use picket_tests::{Bmc, Fleet, Gateway, Result, Webhook};

const SOON: Duration = Duration::from_secs(120);

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
        assert_eq!(said.code, 5, "{text}\n{}", gateway.log());
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
async fn a_full_disk_under_the_audit_is_told_and_stops_no_fence() -> Result<()> {
    let (bmc, webhook) = (IpmiSim::start().await?, Webhook::start().await?);
    let fleet = Fleet::new().node("n1", &Bmc::at(bmc.address()), &["detach"]).webhook(
        "detach",
        &webhook.url(),
        "settle = \"0s\"",
    );
    let (mut gateway, disk) = Gateway::on_a_small_disk(&fleet, 256)?;
    // The store on the big disk, the audit on the small one.
    let (store, audit) = (gateway.directory().join("picket.redb"), disk.path().join("audit"));
    let small = gateway.store_file().display().to_string();
    let text = std::fs::read_to_string(gateway.settings_file()).expect("text");
    let text = text.replace(&small, &store.display().to_string());
    std::fs::write(gateway.settings_file(), format!("{text}\n[audit]\npath = {audit:?}\n")).expect("written");
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    let process = gateway.process()?.id();
    disk.fill(process)?;
    // What the newest file has of its last page is soon full as well.
    let mut fenced = None;
    for verb in ["fence", "unfence", "fence"] {
        let reason = "x".repeat(1_000);
        let said = gateway.picket(&[verb, "n1", "--yes", "--reason", &reason]).await?;
        assert_eq!((said.code, bmc.is_on()?), (0, verb == "unfence"), "{said:?}\n{}", gateway.log());
        fenced = Some(said);
    }
    assert!(fenced.is_some() && webhook.releases().len() == 2);
    let status = gateway.picket(&["status"]).await?;
    assert!(
        status.code == 0 && status.err.contains("the audit cannot be written: the disk is full"),
        "{status:?}"
    );
    assert!(gateway.log().contains("no fence stops"), "{}", gateway.log());

    disk.make_room(process)?;
    let back = gateway.picket(&["unfence", "n1", "--yes", "--reason", "room"]).await?;
    assert_eq!(back.code, 0, "{back:?}");
    let place = gateway.seen_from_outside(&audit)?.display().to_string();
    let verified = gateway.picket(&["history", "--verify", "--audit", &place]).await?;
    assert!(verified.code == 0 && verified.out.contains("entries were never written"), "{verified:?}");
    let status = gateway.picket(&["status"]).await?;
    assert!(!status.err.contains("audit"), "{status:?}");
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
