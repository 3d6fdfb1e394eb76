//! A fence goes on, whoever led when it began.

use picket_tests::Result;
use picket_tests::peers::eventually;
use std::time::Duration;
use tokio::time::sleep;

use crate::ha::trio::{PATIENCE, Trio};

/// The leader kills itself at that point of the fence; another one takes over.
async fn killed_at(point: &str) -> Result<()> {
    let trio = Trio::start(&[("PICKET_KILL_AT", point)]).await?;
    let running = trio.fence("k1")?;
    let said = trio.ended(running, "k1").await?;
    assert_eq!(said.code, 0, "killed at {point}: {said:?}\n{}", trio.gateways.logs());
    assert_ne!(trio.gateways.leader().await?, 0, "killed at {point}");
    trio.never(&said);
    // At most one more off than a fence needs of a node that was not seen to fall: the first, the second's own, its seal.
    assert!(trio.told("off") <= 3, "{}", trio.told("off"));
    Ok(())
}

#[tokio::test]
async fn the_leader_dies_once_the_intent_is_stored() -> Result<()> {
    killed_at("saved fence").await
}

#[tokio::test]
async fn the_leader_dies_before_it_sends_the_off() -> Result<()> {
    killed_at("sending off").await
}

#[tokio::test]
async fn the_leader_dies_once_the_confirmation_is_stored() -> Result<()> {
    killed_at("saved confirmed").await
}

/// S6: what a leader does that was frozen for longer than its lease is refused, and it follows.
#[tokio::test]
async fn a_leader_that_was_frozen_and_thaws_follows() -> Result<()> {
    let mut trio = Trio::start(&[]).await?;
    let running = trio.fence("k1")?;
    while trio.told("off") == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    trio.gateways[0].process()?.freeze();
    let said = trio.ended(running, "k1").await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", trio.gateways.logs());
    let leader = trio.gateways.leader().await?;
    assert_ne!(leader, 0);
    trio.gateways[0].process()?.thaw();
    // It finds out, and says who leads.
    let name = format!("g{leader}");
    loop {
        let seen = trio.seen_by(0).await;
        if seen.is_some_and(|seen| seen.gateways.iter().any(|one| one.leads && one.name == name)) {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    trio.never(&said);
    Ok(())
}

/// What one that does not lead is asked, it tells; the rest goes to whoever leads.
#[tokio::test]
async fn a_leader_that_is_told_to_stop_hands_over_and_the_node_is_brought_back_by_another() -> Result<()> {
    let mut trio = Trio::start(&[]).await?;
    let said = trio.fenced("k1").await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", trio.gateways.logs());
    trio.never(&said);
    // It has read the store a moment ago.
    let told = loop {
        let told = trio.gateways[1].picket(&["nodes"]).await?;
        if !told.out.contains("fenced") {
            break told;
        }
        sleep(Duration::from_millis(50)).await;
    };
    assert!(
        told.out.contains("released") && told.err.contains("told by g1, which does not lead: g0 does"),
        "{told:?}"
    );
    trio.gateways[0].stop().await?;
    assert_ne!(trio.gateways.leader().await?, 0);
    let again = trio.fenced("k1").await?;
    assert_eq!(again.code, 0, "the same key is the same fence: {again:?}");
    let back = trio.gateways.said(&["unfence", "n1", "--reason", "a test"]).await?;
    assert_eq!(back.code, 0, "{back:?}\n{}", trio.gateways.logs());
    assert!(trio.bmc.is_on()? && trio.told("on") == 1, "{} ons", trio.told("on"));
    Ok(())
}

/// Without a quorum nothing is confirmed and nothing is told as the present; with it all goes on.
#[tokio::test]
async fn without_a_quorum_nothing_is_released_and_with_it_the_fence_goes_on() -> Result<()> {
    let mut trio = Trio::start(&[]).await?;
    // What is so while all is well.
    for (gateway, sample, wanted) in [
        (0, "picket_leading", 1.0),
        (0, "picket_following", 0.0),
        (0, "picket_standing", 1.0),
        (0, "picket_shown_age_seconds", 0.0),
        (0, "picket_settings_differ", 0.0),
        (1, "picket_leading", 0.0),
        (1, "picket_term", 0.0),
        (1, "picket_following", 1.0),
        (1, "picket_standing", 1.0),
        (1, "picket_store_away_seconds", 0.0),
    ] {
        trio.measures(gateway, sample, |value| value == wanted).await;
    }
    trio.measures(0, "picket_gateways{part=\"stands_by\"}", |others| others == 2.0).await;
    trio.measures(0, "picket_permit_seconds", |left| left > 0.0 && left <= 2.7).await;
    assert_eq!(trio.metric(1, "picket_permit_seconds").await, None, "it has none");
    let term = trio.metric(0, "picket_term").await.expect("it leads");
    trio.quorum(false);
    let running = trio.fence("k1")?;
    // Longer than a lease, and than what was read counts as the present.
    sleep(Duration::from_secs(14)).await;
    assert!(trio.webhook.releases().is_empty());
    let told = trio.gateways[1].picket(&["gateways"]).await?;
    assert!(!told.out.contains("leads, term") && told.code == 5, "{told:?}");
    let nodes = trio.gateways[1].picket(&["nodes"]).await?;
    assert_eq!(nodes.code, 5, "what is too old is not told as the present: {nodes:?}");
    for gateway in 0..3 {
        trio.measures(gateway, "picket_leading", |leads| leads == 0.0).await;
        trio.measures(gateway, "picket_following", |follows| follows == 0.0).await;
        trio.measures(gateway, "picket_store_away_seconds", |away| away > 1.0).await;
    }
    trio.measures(1, "picket_shown_age_seconds", |age| age > 10.0).await;
    trio.gateways.end(running).await?;
    trio.quorum(true);
    let leader = trio.gateways.leader().await?;
    trio.measures(leader, "picket_store_away_seconds", |away| away == 0.0).await;
    trio.measures(leader, "picket_term", |another| another > term).await;
    let said = trio.fenced("k1").await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", trio.gateways.logs());
    trio.never(&said);
    Ok(())
}

/// The quorum is lost once the intent of the off is stored: the off goes out while the permit lasts, and nothing that needs the
/// store comes of it. With the quorum back the fence goes on.
#[tokio::test]
async fn an_off_that_was_stored_goes_out_without_a_quorum_and_nothing_is_confirmed() -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let paused = home.path().join("paused");
    let file = paused.display().to_string();
    // A permit of nine seconds: what is under test is that it goes out, not how quick this machine is.
    let variables = [("PICKET_PAUSE_AT", "saved off_intent"), ("PICKET_PAUSE_FILE", file.as_str())];
    let mut trio = Trio::with_lease("10s", &variables).await?;
    let running = trio.fence("k1")?;
    eventually("the intent is stored", PATIENCE, || paused.exists()).await?;
    assert_eq!(trio.told("off"), 0, "{}", trio.gateways.logs());
    trio.quorum(false);
    std::fs::remove_file(&paused).expect("it is there");
    eventually("the off goes out", PATIENCE, || trio.told("off") > 0).await?;
    trio.measures(0, "picket_leading", |leads| leads == 0.0).await;
    let offs = trio.told("off");
    // Well over the permit's end: whatever wanted to be confirmed, released or sent would be by now.
    sleep(Duration::from_secs(5)).await;
    assert_eq!(trio.told("off"), offs, "nothing is sent without a permit");
    assert!(!trio.bmc.is_on()? && trio.webhook.releases().is_empty(), "{}", trio.gateways.logs());
    assert!(!trio.gateways.logs().contains("event=\"confirmed\" from"), "{}", trio.gateways.logs());
    let back = trio.gateways.said(&["unfence", "n1", "--reason", "a test", "--timeout", "2s"]).await?;
    assert!(back.code != 0 && trio.told("on") == 0, "{back:?}");
    trio.quorum(true);
    let said = trio.gateways.end(running).await?;
    let said = if said.code == 0 { said } else { trio.fenced("k1").await? };
    assert_eq!(said.code, 0, "{said:?}\n{}", trio.gateways.logs());
    trio.never(&said);
    Ok(())
}
