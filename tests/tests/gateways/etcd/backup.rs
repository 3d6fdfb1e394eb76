//! S21 in etcd: what is taken out is what was put in; a backup fills an empty prefix alone; what is half filled is nobody's.

use picket_core::election::Election;
use picket_core::ids::Version;
use picket_core::record::{NodeRecord, Phase};
use picket_core::store::{Content, Guard, Store, StoreError, Write};
use picket_store::MemoryStore;
use picket_tests::peers::EtcdCluster;

use crate::etcd::common::*;
use crate::etcd::house::{House, guard, raw};

/// Enough for several transactions.
const NODES: usize = 150;

async fn content() -> Content {
    let store = MemoryStore::new(life(9)).unwrap();
    let guard = Guard { term: store.take_term().await.unwrap(), incarnation: store.incarnation() };
    for number in 0..NODES {
        let name = format!("n{number:03}");
        let mut record = NodeRecord { node: node(&name), ..rich(Phase::Fencing) };
        if let Some(fence) = &mut record.fence {
            fence.node = node(&name);
            fence.id = fence_id(1_795_250_372_042 + number as u64, 7);
        }
        let fences: Vec<_> = record.fence.clone().into_iter().collect();
        let keys =
            vec![(format!("a/key/{name}"), entry("sha256:aa", fences[0].id, at(1_795_250_372_050), None))];
        store.write(guard, Write { expected: Version(0), record, fences, keys }).await.unwrap();
    }
    store.put_note(guard, "restored", Version(0), Some("{}".to_owned())).await.unwrap();
    store.dump().await.unwrap()
}

/// Versions and revisions are etcd's own.
fn without_numbers(mut content: Content) -> Content {
    for stored in &mut content.records {
        stored.version = Version(1);
        stored.revision = Default::default();
    }
    content
}

#[tokio::test]
async fn what_is_filled_is_what_is_taken_out_and_is_led_in_the_next_term() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let content = content().await;
    house.store.fill(&content).await.unwrap();
    assert_eq!(house.life().await, life(9));
    assert_eq!(without_numbers(house.store.dump().await.unwrap()), without_numbers(content.clone()));
    let won = house.lead().await;
    assert_eq!((won.term, won.incarnation), (content.term.next(), life(9)));
    let first = house.store.load(&node("n000")).await.unwrap().unwrap();
    house.store.check(guard(&won), &node("n000"), first.version).await.unwrap();
    // Once it is a store nothing fills it again.
    let refused = house.store.fill(&content).await.unwrap_err().to_string();
    assert!(refused.contains("under /picket/ in etcd something stands already"), "{refused}");
}

#[tokio::test]
async fn what_is_half_filled_is_nobodys() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let raw = raw(&cluster.endpoints());
    raw.put("/picket/filling", "somebody").await.unwrap();
    raw.put("/picket/node/n1", "half").await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let refused = house.etcd.look().await.unwrap_err().to_string();
    assert!(refused.contains("is being filled by a restore, or one did not end"), "{refused}");
    let refused = house.store.fill(&content().await).await.unwrap_err().to_string();
    assert!(refused.contains("something stands already"), "{refused}");
    assert!(house.store.dump().await.is_err());
}

#[tokio::test]
async fn a_store_is_left_only_as_the_backup_saw_it_and_nobody_leads_over_it_then() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let nothing = house.store.snapshot().await.unwrap_err().to_string();
    assert!(nothing.contains("there is no store under /picket/ in etcd"), "{nothing}");
    assert_eq!(house.etcd.check().await.unwrap(), None, "and none is made by looking");
    house.store.fill(&content().await).await.unwrap();
    assert_eq!(house.etcd.check().await.unwrap(), Some(life(9)));

    // Somebody leads: what it writes next would be lost.
    house.lead().await;
    let led = house.store.snapshot().await.unwrap();
    assert_eq!(led.leader.as_deref(), Some("g1"));
    house.election.resign().await.unwrap();
    let refused = house.store.seal("etcd at b", &led).await.unwrap_err().to_string();
    assert!(refused.contains("g1 led when the backup was taken"), "{refused}");

    // Somebody led between the backup and the mark.
    let before = house.store.snapshot().await.unwrap();
    let other = House::named(cluster.endpoints(), "g2");
    other.lead().await;
    for resigned in [false, true] {
        let refused = house.store.seal("etcd at b", &before).await.unwrap_err().to_string();
        assert!(
            refused.contains("is not marked: a gateway led since the backup was taken"),
            "{resigned}: {refused}"
        );
        other.election.resign().await.unwrap();
    }
    assert_eq!(house.store.moved().await.unwrap(), None);

    let now = house.store.snapshot().await.unwrap();
    house.store.seal("etcd at b", &now).await.unwrap();
    house.store.seal("etcd at b", &now).await.expect("asked again it is so already");
    let refused = house.store.seal("etcd at c", &now).await.unwrap_err().to_string();
    assert!(refused.contains("is marked already, as moved to etcd at b"), "{refused}");
    assert_eq!(house.store.moved().await.unwrap().as_deref(), Some("etcd at b"));
    let words = "moved to etcd at b, and is not used any more";
    // Also one that knew the store before, and stood by.
    for house in [&other, &House::named(cluster.endpoints(), "g3")] {
        let refused = house.election.campaign().await.unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
        let checked = house.etcd.check().await.unwrap_err();
        assert!(matches!(&checked, StoreError::Moved(why) if why.contains(words)), "{checked}");
    }
    let refused = house.store.snapshot().await.unwrap_err();
    assert!(matches!(&refused, StoreError::Moved(why) if why.contains(words)), "{refused}");

    assert_eq!(house.store.unseal().await.unwrap().as_deref(), Some("etcd at b"));
    assert_eq!(house.store.unseal().await.unwrap(), None);
    let again = House::named(cluster.endpoints(), "g3").lead().await;
    assert_eq!(again.term, now.content.term.next());
}
