//! Who leads, from the first to the next.

use std::time::{Duration, Instant};

use picket_core::election::{Election, Known};
use picket_core::store::{Store, StoreError};
use picket_tests::peers::{EtcdCluster, HANGS, TcpFault};
use tokio::time::timeout;

use crate::etcd::common::{plain, write_of};
use crate::etcd::house::{House, SOONER, beside, guard, leader, raw, soon, sooner};

#[tokio::test]
async fn one_leads_the_others_know_and_a_handover_takes_no_lease() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let (one, two) =
        (House::at_leisure(cluster.endpoints(), "g1"), House::at_leisure(cluster.endpoints(), "g2"));
    let first = one.lead().await;
    let mut waiting = Box::pin(two.election.campaign());
    let knows = async || matches!(two.election.known(), Known::Leader(..));
    beside(&mut waiting, "it knows who leads", knows).await;
    match two.election.known() {
        Known::Leader(member, term) => {
            assert_eq!((member.gateway.as_str(), term), ("g1", first.term));
            assert_eq!(member.endpoints, ["https://g1:7070"]);
        }
        other => panic!("{other:?}"),
    }
    beside(&mut waiting, "each knows of the other", async || {
        let names =
            |house: &House| house.election.others().into_iter().map(|m| m.gateway).collect::<Vec<_>>();
        names(&one) == ["g2"] && names(&two) == ["g1"]
    })
    .await;

    one.election.resign().await.unwrap();
    let second = timeout(SOONER, waiting).await.expect("no lease is waited for").unwrap();
    assert_eq!(second.term, first.term.next());
    let late = one.store.write(guard(&first), write_of(plain("r1n01", 1), 0)).await;
    assert!(matches!(late, Err(StoreError::Deposed(_))), "{late:?}");
}

/// A key that outlives its gateway lets a leader that stops as well hand its nodes over to nobody.
#[tokio::test]
async fn a_gateway_that_leaves_takes_its_own_key_with_it() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let (one, two) = (House::named(cluster.endpoints(), "g1"), House::named(cluster.endpoints(), "g2"));
    one.lead().await;
    let mut waiting = Box::pin(two.election.campaign());
    let raw = raw(&cluster.endpoints());
    let mut is_there = async || raw.get("/picket/election/member/g2").await.is_some();
    beside(&mut waiting, "it is there", &mut is_there).await;
    two.election.resign().await.unwrap();
    assert!(is_there().await, "it takes part still");
    drop(waiting);
    two.election.leave().await.unwrap();
    assert!(!is_there().await);
    soon("who leads sees it", async || one.election.others().is_empty()).await;
    // It may take part again.
    let mut waiting = Box::pin(two.election.campaign());
    beside(&mut waiting, "it is there again", &mut is_there).await;
}

#[tokio::test]
async fn a_lease_is_kept_for_as_long_as_etcd_answers() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    // A machine that stands still for a lease ends it, and rightly: the best of some counts.
    for generation in 1..=10 {
        let leadership = house.permit().await;
        let from = Instant::now();
        while leadership.check().is_ok() && from.elapsed() < Duration::from_secs(7) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let write = write_of(plain("r1n01", generation), 0);
        if leadership.check().is_ok() && house.store.write(leadership.guard(), write).await.is_ok() {
            return;
        }
    }
    panic!("none is kept for more than two leases long");
}

#[tokio::test]
async fn a_permit_ends_before_its_lease_and_stays_ended() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::named(cluster.endpoints(), "g1");
    let leadership = house.permit().await;
    cluster.member(0).process().freeze();
    let from = Instant::now();
    loop {
        // Looked at before: whatever this machine does in between, the permit lasted longer than that.
        let lasted = from.elapsed();
        if leadership.check().is_err() {
            break;
        }
        assert!(lasted < Duration::from_millis(2_700), "three seconds less the margin");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cluster.member(0).process().thaw();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(leadership.check().is_err());
    let again = house.permit().await;
    assert!(again.term() > leadership.term() && again.check().is_ok());
}

#[tokio::test]
async fn a_leader_whose_key_was_removed_hears_of_it_at_once() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::at_leisure(cluster.endpoints(), "g1");
    let leadership = house.permit().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    leadership.check().unwrap();
    raw(&cluster.endpoints()).delete("/picket/election/leader").await;
    sooner("its permit ends", async || leadership.check().is_err()).await;
}

/// What was given up while etcd did not answer is not renewed once it does: nobody else could ever lead.
#[tokio::test]
async fn a_leadership_that_could_not_be_given_back_ends_by_itself() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    let way = TcpFault::before(cluster.member(0).client()).await.unwrap();
    let house = House::named(vec![format!("http://{}", way.address())], "g1");
    let leadership = house.permit().await;
    way.shut();
    house.election.resign().await.expect_err("etcd does not hear it");
    assert!(leadership.check().is_err(), "here it has ended all the same");
    way.heal();
    let other = House::named(cluster.endpoints(), "g2");
    let next = timeout(HANGS, other.election.campaign()).await;
    let next = next.expect("its lease of 3 s is over, and another one leads").unwrap();
    assert!(next.term > leadership.term());
}

/// Whoever stops waiting resigns, and what was won unheard goes with it: the next one need not wait for a lease.
#[tokio::test]
async fn a_campaign_that_nobody_waits_for_leaves_nothing_behind() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let house = House::at_leisure(cluster.endpoints(), "g1");
    house.lead().await;
    house.election.resign().await.unwrap();
    let raw = raw(&cluster.endpoints());
    let (mut heard, mut unheard) = (0, 0);
    for round in 0..40_u64 {
        let waited = timeout(Duration::from_micros(round * 500), house.election.campaign()).await;
        match waited {
            Ok(won) => {
                won.unwrap();
                heard += 1;
            }
            Err(_) => unheard += 1,
        }
        house.election.resign().await.unwrap();
        sooner("no leader's key is left", async || raw.get("/picket/election/leader").await.is_none()).await;
    }
    // A grant that was dropped on its way leaves a lease with nothing under it, which ends by itself.
    soon("no lease is left but the one of its presence", async || {
        let leases = raw.ask("lease/leases", serde_json::json!({})).await.unwrap();
        leases["leases"].as_array().is_none_or(|leases| leases.len() <= 1)
    })
    .await;
    println!("{heard} heard, {unheard} not");
    assert!(unheard > 0);
    soon("it is seen", async || leader(&house).is_none()).await;
    timeout(SOONER, house.lead()).await.expect("no lease is waited for");
}

/// Many stand, and are dropped at any moment: terms only grow, and of two writers only the later one is heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_only_grow_whoever_stands() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    let (told, mut terms) = tokio::sync::mpsc::unbounded_channel();
    for gateway in 0..3 {
        let (endpoints, told) = (cluster.endpoints(), told.clone());
        tasks.spawn(async move {
            let house = House::named(endpoints, &format!("g{gateway}"));
            for _ in 0..8 {
                let won = house.lead().await;
                let version = house
                    .store
                    .load(&crate::etcd::common::node("r1n01"))
                    .await
                    .unwrap()
                    .map_or(0, |s| s.version.0);
                let record = plain("r1n01", won.term.0);
                house.store.write(guard(&won), write_of(record, version)).await.unwrap();
                told.send((gateway, won.term)).unwrap();
                house.election.resign().await.unwrap();
                tokio::time::sleep(Duration::from_millis(20 * gateway)).await;
            }
        });
    }
    drop(told);
    let mut seen = Vec::new();
    while let Some((gateway, term)) = terms.recv().await {
        assert!(seen.last().is_none_or(|(_, last)| *last < term), "{seen:?} then {term}");
        seen.push((gateway, term));
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(seen.len(), 24);
    let stored = House::named(cluster.endpoints(), "g9");
    let record = stored.store.load(&crate::etcd::common::node("r1n01")).await.unwrap().unwrap();
    assert_eq!((record.version.0, record.record.generation.0), (24, seen.last().unwrap().1.0));
}
