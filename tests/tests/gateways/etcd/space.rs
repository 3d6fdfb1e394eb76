//! An etcd without space, and stores that may not be used.

use std::time::Duration;

use picket_core::election::{Election, ElectionError};
use picket_core::ids::Version;
use picket_core::store::{Store, StoreError};
use picket_tests::peers::{Etcd, EtcdCluster};
use serde_json::json;

use crate::etcd::common::{node, plain, write_of};
use crate::etcd::house::{House, guard, raw, settings, soon};
use crate::etcd::raw::bytes;

#[tokio::test]
async fn without_space_nothing_is_written_and_leadership_lasts() {
    let cluster =
        EtcdCluster::start_with(Etcd::Present, 1, &["--quota-backend-bytes=2097152"]).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let leadership = house.permit().await;
    house.store.write(leadership.guard(), write_of(plain("r1n01", 1), 0)).await.unwrap();
    let raw = raw(&cluster.endpoints());
    let filler = vec![b'x'; 200_000];
    while raw.put("/filler", &filler).await.is_ok() {}

    let full = house.store.write(leadership.guard(), write_of(plain("r1n01", 2), 1)).await;
    assert!(
        matches!(&full, Err(StoreError::Unavailable(why)) if why.contains("--quota-backend-bytes")),
        "{full:?}"
    );
    tokio::time::sleep(Duration::from_secs(8)).await;
    leadership.check().expect("leases are kept without space");
    house.store.check(leadership.guard(), &node("r1n01"), Version(1)).await.unwrap();

    let revision = raw.delete("/filler").await;
    raw.ask("kv/compaction", json!({ "revision": revision })).await.unwrap();
    raw.ask("maintenance/defragment", json!({})).await.unwrap();
    let alarms = raw.ask("maintenance/alarm", json!({ "action": "GET", "alarm": "NOSPACE" })).await.unwrap();
    for alarm in alarms["alarms"].as_array().unwrap() {
        let ended = json!({ "action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": alarm["memberID"] });
        raw.ask("maintenance/alarm", ended).await.unwrap();
    }
    // One that was done and not answered in time is written, too: another one is refused then.
    soon("it is written", async || {
        house.store.write(leadership.guard(), write_of(plain("r1n01", 2), 1)).await.is_ok()
            || house.store.check(leadership.guard(), &node("r1n01"), Version(2)).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_record_that_is_too_large_is_refused_and_not_unknown() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let guard = guard(&house.lead().await);
    let huge = house.store.put_note(guard, "huge", Version(0), Some("x".repeat(2 << 20))).await;
    assert!(matches!(&huge, Err(StoreError::Unavailable(why)) if why.contains("too large")), "{huge:?}");
}

/// Many large records come in pages.
#[tokio::test]
async fn a_large_fleet_is_read_whole() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let guard = guard(&house.lead().await);
    let mut names = Vec::new();
    for n in 0..600 {
        let mut record = plain(&format!("n{n:04}"), n);
        record.wired =
            (0..100).map(|d| (crate::etcd::common::device(&format!("pdu-{d}")), "x".repeat(60))).collect();
        names.push(record.node.clone());
        house.store.write(guard, write_of(record, 0)).await.unwrap();
    }
    let read = House::named(cluster.endpoints(), "g2").store.load_all().await.unwrap();
    assert_eq!(read.iter().map(|one| one.record.node.clone()).collect::<Vec<_>>(), names);
    assert!(read.iter().all(|one| one.version == Version(1) && one.record.wired.len() == 100));
    let changed = house.store.changed_since(read[299].revision).await.unwrap();
    assert_eq!(changed.len(), 300);
}

#[tokio::test]
async fn a_store_that_may_not_be_used_says_why() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let raw = raw(&cluster.endpoints());
    let house = House::named(cluster.endpoints(), "g1");
    let won = house.lead().await;

    // Left for another one: not even the leader goes on.
    raw.put("/picket/marked", "etcd at b, 2026-11-21").await.unwrap();
    let left = house.store.write(guard(&won), write_of(plain("r1n01", 1), 0)).await;
    assert!(matches!(&left, Err(StoreError::Deposed(why)) if why.contains("moved to etcd at b")), "{left:?}");
    let fresh = || House::named(cluster.endpoints(), "g2");
    let refused = fresh().store.load_all().await;
    assert!(
        matches!(&refused, Err(StoreError::Moved(why)) if why.contains("moved to etcd at b")),
        "{refused:?}"
    );
    let refused = fresh().election.campaign().await;
    assert!(
        matches!(&refused, Err(ElectionError::Unavailable(why)) if why.contains("moved to etcd at b")),
        "{refused:?}"
    );
    raw.delete("/picket/marked").await;
    fresh().store.load_all().await.unwrap();

    raw.put("/picket/filling", "").await.unwrap();
    let refused = fresh().store.load_all().await;
    assert!(matches!(&refused, Err(StoreError::Damaged(why)) if why.contains("restore")), "{refused:?}");
    raw.delete("/picket/filling").await;

    raw.put("/picket/format", r#"{"v":9,"body":9}"#).await.unwrap();
    let refused = fresh().store.load_all().await;
    assert!(matches!(&refused, Err(StoreError::Damaged(why)) if why.contains("format 9")), "{refused:?}");

    // What lost its own values is damaged, and no new store, also to who never saw it.
    raw.delete("/picket/format").await;
    let refused = fresh().store.load_all().await;
    assert!(matches!(&refused, Err(StoreError::Damaged(why)) if why.contains("missing")), "{refused:?}");
    let all = json!({ "key": bytes("/picket/"), "range_end": bytes("/picket0") });
    raw.ask("kv/deleterange", all).await.unwrap();
    let refused = house.etcd.store().revision().await;
    assert!(matches!(&refused, Err(StoreError::Damaged(why)) if why.contains("is gone")), "{refused:?}");
}

/// Two fleets in one etcd, each with a leader of its own.
#[tokio::test]
async fn a_prefix_is_a_fleet() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let of = |prefix: &str| {
        let settings = settings(cluster.endpoints());
        let settings = picket_config::EtcdSettings { prefix: prefix.to_owned(), ..settings };
        House::new(settings, crate::etcd::house::candidate("g1"))
    };
    let (one, two) = (of("/one/"), of("/two/"));
    let (first, second) = (one.lead().await, two.lead().await);
    assert_ne!(first.incarnation, second.incarnation);
    one.store.write(guard(&first), write_of(plain("r1n01", 1), 0)).await.unwrap();
    assert_eq!(two.store.load_all().await.unwrap(), []);
}
