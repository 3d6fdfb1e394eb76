//! What followers hear of changes.

use std::time::Duration;

use picket_core::election::{Election, Known};
use picket_core::ids::Revision;
use picket_core::store::{Store, StoreError};
use picket_tests::peers::{EtcdCluster, HANGS};
use tokio::time::timeout;

use crate::etcd::common::{node, plain, write_of};
use crate::etcd::house::{House, guard, leader, raw, soon};

/// Waits for something newer than `since`, as a follower does, and says what changed.
async fn news(house: &House, since: Revision) -> Vec<(Revision, picket_core::ids::NodeId)> {
    let heard = timeout(HANGS, async {
        loop {
            house.store.changed(since).await.unwrap();
            match house.store.changed_since(since).await {
                Ok(changed) if !changed.is_empty() => return changed,
                Ok(_) => {}
                Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => panic!("{error}"),
            }
        }
    });
    heard.await.expect("news")
}

#[tokio::test]
async fn a_follower_hears_each_change_and_nothing_else() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let (one, two) = (House::named(cluster.endpoints(), "g1"), House::named(cluster.endpoints(), "g2"));
    let guard = guard(&one.lead().await);
    let mut since = two.store.revision().await.unwrap();
    assert!(timeout(Duration::from_millis(500), two.store.changed(since)).await.is_err(), "nothing changed");
    for n in 0..5 {
        let written = one.store.write(guard, write_of(plain("r1n01", n), n)).await.unwrap();
        let heard = news(&two, since).await;
        assert_eq!(heard, [(written.revision, node("r1n01"))]);
        since = written.revision;
    }
    one.store.put_note(guard, "pause/1", picket_core::ids::Version(0), Some("{}".to_owned())).await.unwrap();
    assert!(timeout(Duration::from_millis(500), two.store.changed(since)).await.is_err(), "of no node");
    let late = Revision(two.store.revision().await.unwrap().0 + 5);
    assert!(matches!(two.store.changed_since(late).await, Err(StoreError::Compacted(_))));
}

#[tokio::test]
async fn a_watch_outlives_compaction_and_a_restart_of_etcd() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    let (one, two) =
        (House::at_leisure(cluster.endpoints(), "g1"), House::at_leisure(cluster.endpoints(), "g2"));
    let guard = guard(&one.lead().await);
    let since = two.store.revision().await.unwrap();
    let _ = timeout(Duration::from_millis(200), two.store.changed(since)).await;

    // What changes while etcd is away from the watch is compacted before it is back.
    let raw = raw(&cluster.endpoints());
    let first = one.store.write(guard, write_of(plain("r1n01", 1), 0)).await.unwrap();
    let second = one.store.write(guard, write_of(plain("r1n02", 1), 0)).await.unwrap();
    let compacted = serde_json::json!({ "revision": second.revision.0.to_string() });
    raw.ask("kv/compaction", compacted).await.unwrap();
    let heard = news(&two, since).await;
    assert_eq!(heard, [(first.revision, node("r1n01")), (second.revision, node("r1n02"))]);

    cluster.member(0).restart().await.unwrap();
    let third = loop {
        // The lease outlives a short restart, and the connection is made anew.
        match one.store.write(guard, write_of(plain("r1n01", 2), 1)).await {
            Ok(written) => break written,
            Err(StoreError::Unavailable(_) | StoreError::Unknown(_)) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(StoreError::Conflict { .. }) => panic!("it was written once"),
            Err(error) => panic!("{error}"),
        }
    };
    let heard = news(&two, second.revision).await;
    assert_eq!(heard, [(third.revision, node("r1n01"))]);
    soon("it is known again who leads", async || leader(&two).as_deref() == Some("g1")).await;
}

#[tokio::test]
async fn while_etcd_is_away_it_is_said_since_when_and_a_gateway_starts_without_it() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    cluster.member(0).process().kill();
    let house = House::named(cluster.endpoints(), "g1");
    assert_eq!(uuid::Uuid::from(house.store.incarnation()), uuid::Uuid::nil(), "nobody was asked yet");
    let refused = house.store.load_all().await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let mut waiting = Box::pin(house.election.campaign());
    let mut campaigns = async |millis| {
        let more = timeout(Duration::from_millis(millis), &mut waiting).await;
        assert!(more.is_err(), "{more:?} without etcd");
    };
    let away = async {
        loop {
            campaigns(20).await;
            match house.election.known() {
                Known::Away(since, why) if why.contains("etcd at http://") => return since,
                // It was not asked yet, or the connection is tried with patience.
                Known::Away(..) | Known::Nobody(_) => {}
                leader @ Known::Leader(..) => panic!("{leader:?}"),
            }
        }
    };
    let since = timeout(HANGS, away).await.expect("known to be away");
    campaigns(500).await;
    assert!(matches!(house.election.known(), Known::Away(still, _) if still == since));

    cluster.member(0).restart().await.unwrap();
    let won = timeout(HANGS, waiting).await.expect("it leads").unwrap();
    assert_eq!(house.store.incarnation(), won.incarnation);
    soon("it sees itself lead", async || leader(&house).as_deref() == Some("g1")).await;
}
