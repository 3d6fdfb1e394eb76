//! What a write becomes whose answer is lost, and whom nobody listens to any more.

use std::sync::Arc;
use std::time::Duration;

use picket_core::election::{Election, Lease};
use picket_core::ids::Version;
use picket_core::store::{Store, StoreError};
use picket_etcd_api::{Client, Error, LeaseGrantRequest, PutRequest, RangeRequest, RequestOp, TxnRequest};
use picket_tests::peers::{EtcdCluster, TcpFault};
use tokio::runtime::Builder;
use tonic::transport::Endpoint;

use crate::etcd::common::{node, plain, write_of};
use crate::etcd::house::{House, guard};

#[tokio::test]
async fn a_write_whose_answer_was_cut_off_is_unknown_and_was_done() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    let fault = TcpFault::before(cluster.member(0).client()).await.unwrap();
    let house = House::named(vec![format!("http://{}", fault.address())], "g1");
    let guard = guard(&house.lead().await);
    let first = house.store.write(guard, write_of(plain("r1n01", 1), 0)).await.unwrap();
    assert_eq!(first.version, Version(1));

    // What is heard first may be an answer to something else, which goes on beside it: then the write may not have been served.
    let mut rounds = 0;
    let stored = loop {
        fault.cut_after_the_request();
        let lost = house.store.write(guard, write_of(plain("r1n01", 2), 1)).await;
        assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
        let away = house.store.load(&node("r1n01")).await;
        assert!(matches!(away, Err(StoreError::Unavailable(_))), "{away:?}");
        fault.heal();
        let stored = house.store.load(&node("r1n01")).await.unwrap().unwrap();
        rounds += 1;
        if stored.version != Version(1) || rounds == 10 {
            break stored;
        }
    };
    assert_eq!((stored.version, stored.record.generation.0), (Version(2), 2), "it was done, once");
    let again = house.store.write(guard, write_of(plain("r1n01", 3), 1)).await;
    assert!(matches!(again, Err(StoreError::Conflict { found: Version(2), .. })), "{again:?}");
}

/// A second member knows what became of what the first one was asked: a write is not left unknown where it need not be.
#[tokio::test]
async fn a_write_whose_answer_was_cut_off_is_found_by_the_next_member() {
    let mut cluster = EtcdCluster::start(3).await.unwrap();
    let fault = TcpFault::before(cluster.member(0).client()).await.unwrap();
    let mut endpoints = cluster.endpoints();
    endpoints[0] = format!("http://{}", fault.address());
    for n in 0..6 {
        // A gateway that asks the first member first.
        let house = House::named(endpoints.clone(), "g1");
        let guard = guard(&house.lead().await);
        let (store, round) = (&house.store, n / 2);
        fault.cut_after_the_request();
        if n % 2 == 0 {
            let written = store.write(guard, write_of(plain("r1n01", round), round)).await.unwrap();
            assert_eq!(written.version, Version(round + 1));
            let stored = store.load(&node("r1n01")).await.unwrap().unwrap();
            assert_eq!((stored.version, stored.revision), (written.version, written.revision));
        } else {
            let note = store.put_note(guard, "pause/1", Version(round), Some(round.to_string())).await;
            assert_eq!(note, Ok(Version(round + 1)));
        }
        fault.heal();
        house.election.resign().await.unwrap();
    }
}

/// A transaction under a lease that is over changes nothing, whatever it compares: with the lease an attempt is given up wholly.
#[tokio::test]
async fn nothing_is_won_under_a_lease_that_was_given_back() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let endpoint = Endpoint::from_shared(cluster.endpoints()[0].clone()).unwrap();
    let etcd = Client::new(endpoint.connect_lazy());
    let lease = 0x70_1d;
    etcd.grant(LeaseGrantRequest { id: lease, ttl: 5 }).await.unwrap();
    etcd.keep_alive(lease).await.unwrap();
    etcd.revoke(lease).await.unwrap();
    let over = etcd.keep_alive(lease).await;
    assert!(matches!(over, Err(Error::NoLease)), "{over:?}");
    let under = PutRequest { key: b"/picket/election/leader".to_vec(), value: b"late".to_vec(), lease };
    let puts = [RequestOp::put("/picket/term", "2"), under.into()];
    let late = etcd.txn(TxnRequest::default().and_then(puts)).await;
    assert!(
        matches!(&late, Err(Error::Status(why)) if why.message().contains("lease not found")),
        "{late:?}"
    );
    let nothing = etcd.range(RangeRequest::one("/picket/term")).await.unwrap();
    assert!(nothing.kvs.is_empty(), "all of it or nothing, and etcd lives");
}

#[tokio::test]
async fn a_write_that_was_never_sent_is_unavailable() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let guard = guard(&house.lead().await);
    cluster.member(0).process().kill();
    // The first may find the connection as it breaks; from then on none comes to be.
    let _ = house.store.write(guard, write_of(plain("r1n01", 1), 0)).await;
    let refused = house.store.write(guard, write_of(plain("r1n01", 1), 0)).await;
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("etcd at http://")),
        "{refused:?}"
    );
}

/// A gateway that was stopped (here: its whole runtime) wakes after another one was elected.
#[test]
fn who_slept_through_its_lease_changes_nothing_and_may_send_nothing() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let (observer, sleeper, other) = (runtime(), runtime(), runtime());
    let cluster = observer.block_on(EtcdCluster::start(1)).unwrap();
    let (house, leadership) = sleeper.block_on(async {
        let house = House::named(cluster.endpoints(), "g1");
        let leadership = house.permit().await;
        let written = house.store.write(leadership.guard(), write_of(plain("r1n01", 1), 0)).await;
        assert_eq!(written.unwrap().version, Version(1));
        leadership.check().unwrap();
        (house, leadership)
    });

    let (successor, won) = other.block_on(async {
        let successor = House::named(cluster.endpoints(), "g2");
        let won = successor.lead().await;
        successor.store.write(guard(&won), write_of(plain("r1n01", 2), 1)).await.unwrap();
        (successor, won)
    });
    assert!(won.term > leadership.term());

    assert!(leadership.check().is_err(), "its permit ended by itself, asking nobody");
    sleeper.block_on(async {
        // Asked before anything else of it has run: the store itself refuses, by its own comparison.
        let late = house.store.write(leadership.guard(), write_of(plain("r1n01", 3), 2)).await;
        assert!(
            matches!(&late, Err(StoreError::Deposed(why)) if why.contains("term 2 has begun")),
            "{late:?}"
        );
        let late = house.store.check(leadership.guard(), &node("r1n01"), Version(2)).await;
        assert!(matches!(late, Err(StoreError::Deposed(_))), "{late:?}");
        let late =
            house.store.put_note(leadership.guard(), "pause/1", Version(0), Some("{}".to_owned())).await;
        assert!(matches!(late, Err(StoreError::Deposed(_))), "{late:?}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(leadership.check().is_err(), "and is never renewed");
    });
    other.block_on(async {
        let stored = successor.store.load(&node("r1n01")).await.unwrap().unwrap();
        assert_eq!((stored.version, stored.record.generation.0), (Version(2), 2));
    });
}

/// Its own count of the term does not help who has lost the leader's key alone.
#[test]
fn whose_key_is_gone_leads_no_more_also_where_nobody_else_leads() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let (observer, gateway) = (runtime(), runtime());
    let cluster = observer.block_on(EtcdCluster::start(1)).unwrap();
    let (house, won) = gateway.block_on(async {
        let house = House::named(cluster.endpoints(), "g1");
        let won = house.lead().await;
        (house, won)
    });
    observer.block_on(async {
        crate::etcd::house::raw(&cluster.endpoints()).delete("/picket/election/leader").await;
    });
    gateway.block_on(async {
        let late = house.store.write(guard(&won), write_of(plain("r1n01", 1), 0)).await;
        assert!(
            matches!(&late, Err(StoreError::Deposed(why)) if why.contains("lease of term 1 in etcd is over")),
            "{late:?}"
        );
        let again = house.lead().await;
        assert!(again.term > won.term);
        assert!(over(&won.lease), "the first one's lease has ended");
        house.election.resign().await.unwrap();
        assert!(over(&again.lease));
    });
}

/// Whether a lease is over for good: it cannot be asked, so a permit is made of it.
fn over(lease: &Arc<Lease>) -> bool {
    format!("{lease:?}").contains("ended: true")
}
