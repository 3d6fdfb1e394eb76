//! Members that die, freeze or are cut off: the next one is asked.

use std::time::{Duration, Instant};

use picket_core::election::Election;
use picket_core::ids::Version;
use picket_core::store::{Store, StoreError};
use picket_tests::peers::{EtcdCluster, EtcdMember, HANGS, TcpFault};
use tokio::runtime::Builder;

use crate::etcd::common::{node, plain, write_of};
use crate::etcd::house::{House, guard, raw};

/// Writes until it is written, as the engine does, and says how long that took.
async fn write_on(house: &House, won: picket_core::store::Guard, generation: u64) -> Duration {
    written(house, won, generation).await.expect("it leads")
}

/// The same; `None`: it does not lead any more, as where the machine stood still for a lease.
async fn written(house: &House, won: picket_core::store::Guard, generation: u64) -> Option<Duration> {
    let from = Instant::now();
    loop {
        let late = from.elapsed() > HANGS;
        let stored = match house.store.load(&node("r1n01")).await {
            Ok(stored) => stored,
            Err(StoreError::Unavailable(_)) if !late => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        if stored.as_ref().is_some_and(|stored| stored.record.generation.0 == generation) {
            return Some(from.elapsed());
        }
        let version = stored.map_or(0, |stored| stored.version.0);
        match house.store.write(won, write_of(plain("r1n01", generation), version)).await {
            Ok(_) | Err(StoreError::Unknown(_)) => {}
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(StoreError::Deposed(_)) => return None,
            Err(error) => panic!("{error}"),
        }
        assert!(!late, "not written");
    }
}

/// Which member leads etcd.
async fn etcds_leader(cluster: &mut EtcdCluster) -> usize {
    for n in 0..3 {
        let endpoint = cluster.endpoints()[n].clone();
        let status = raw(&[endpoint]).ask("maintenance/status", serde_json::json!({})).await.unwrap();
        if status["leader"] == status["header"]["member_id"] {
            return n;
        }
    }
    panic!("no member leads");
}

/// How often something is tried that a busy machine may make late: the best of them counts.
const TRIES: u64 = 5;

/// A member is asked first that does not lead etcd, and stops to answer: how long a write takes then, and whether the others keep the lease.
async fn without_the_first(stops: impl Fn(&mut EtcdMember), within: Duration) {
    let mut cluster = EtcdCluster::start(3).await.unwrap();
    let first = (etcds_leader(&mut cluster).await + 1) % 3;
    let mut endpoints = cluster.endpoints();
    endpoints.rotate_left(first);
    let mut seen = Vec::new();
    for round in 1..=TRIES {
        let house = House::named(endpoints.clone(), &format!("g{round}"));
        let leadership = house.permit().await;
        let won = leadership.guard();
        let before = written(&house, won, 3 * round).await;
        stops(cluster.member(first));
        let took = written(&house, won, 3 * round + 1).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        let is_kept = leadership.check().is_ok();
        cluster.member(first).process().thaw();
        if cluster.member(first).process().ended().is_some() {
            cluster.member(first).restart().await.unwrap();
        }
        let after = written(&house, won, 3 * round + 2).await;
        seen.push((took, is_kept));
        if before.is_some() && after.is_some() && is_kept && took.is_some_and(|took| took < within) {
            return;
        }
        let _ = house.election.resign().await;
    }
    panic!("in less than {within:?}, and its lease is kept by the others: {seen:?}");
}

#[tokio::test]
async fn the_member_that_is_asked_dies() {
    without_the_first(|member| member.process().kill(), Duration::from_secs(2)).await;
}

#[tokio::test]
async fn the_member_that_is_asked_freezes() {
    without_the_first(|member| member.process().freeze(), Duration::from_secs(4)).await;
}

#[tokio::test]
async fn etcds_leader_dies_while_a_gateway_leads_and_another_waits() {
    let mut cluster = EtcdCluster::start(3).await.unwrap();
    let within = Duration::from_secs(2 * 3 + 3);
    let mut took = Vec::new();
    for round in 1..=TRIES {
        let house = House::named(cluster.endpoints(), &format!("g{round}"));
        let won = house.lead().await;
        write_on(&house, guard(&won), 2 * round).await;
        let leads = etcds_leader(&mut cluster).await;
        cluster.member(leads).process().kill();
        // Whether it still leads is a matter of etcd's own election; whoever does goes on.
        let from = Instant::now();
        loop {
            let won = house.lead().await;
            let stored = house.store.load(&node("r1n01")).await;
            let Ok(Some(stored)) = stored else { continue };
            let write = write_of(plain("r1n01", 2 * round + 1), stored.version.0);
            if house.store.write(guard(&won), write).await.is_ok() {
                break;
            }
        }
        took.push(from.elapsed());
        if from.elapsed() < within {
            return;
        }
        cluster.member(leads).restart().await.unwrap();
        let _ = house.election.resign().await;
    }
    panic!("written by a new leadership after {took:?}");
}

/// A member that lost the quorum must not say that a leadership still holds: it cannot know.
#[tokio::test]
async fn who_is_alone_answers_nothing() {
    let mut cluster = EtcdCluster::start(3).await.unwrap();
    let endpoint = cluster.endpoints()[0].clone();
    let house = House::named(vec![endpoint], "g1");
    let leadership = house.permit().await;
    let won = leadership.guard();
    write_on(&house, won, 1).await;
    house.store.check(won, &node("r1n01"), Version(1)).await.unwrap();
    cluster.member(1).process().freeze();
    cluster.member(2).process().freeze();
    let from = Instant::now();
    let mut said = Vec::new();
    while from.elapsed() < Duration::from_secs(5) {
        said.push(house.store.check(won, &node("r1n01"), Version(1)).await);
        said.push(house.store.load(&node("r1n01")).await.map(drop));
    }
    assert!(said.iter().all(Result::is_err), "{said:?}");
    cluster.member(1).process().thaw();
    cluster.member(2).process().thaw();
}

/// One that was cut off from us alone: others are asked, and the way is taken again when they fail.
#[tokio::test]
async fn the_way_to_a_member_is_cut() {
    let mut cluster = EtcdCluster::start(3).await.unwrap();
    let mut ways = Vec::new();
    for n in 0..3 {
        ways.push(TcpFault::before(cluster.member(n).client()).await.unwrap());
    }
    let endpoints = ways.iter().map(|way| format!("http://{}", way.address())).collect();
    let house = House::at_leisure(endpoints, "g1");
    let leadership = house.permit().await;
    for round in 0..6 {
        ways[round % 3].shut();
        write_on(&house, leadership.guard(), 1 + round as u64).await;
        leadership.check().unwrap();
        ways[round % 3].heal();
    }
    house.election.resign().await.unwrap();
}

/// How long it takes from a leader's last keep-alive to the next leadership, whatever dies with it. The sleeper's runtime stands
/// still, as a gateway that was killed or stopped does.
#[test]
fn a_successor_waits_for_the_lease_and_hardly_longer() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let observer = runtime();
    let mut cluster = observer.block_on(EtcdCluster::start(3)).unwrap();
    for (etcds_leader_too, within) in
        [(false, Duration::from_millis(3_000 + 1_000)), (true, Duration::from_secs(2 * 3 + 3))]
    {
        let mut took = Vec::new();
        while took.len() < TRIES as usize && took.last().is_none_or(|took| *took >= within) {
            let (sleeper, other) = (runtime(), runtime());
            // Before it leads: of its lease nothing is over by then.
            let begun = Instant::now();
            let (house, won) = sleeper.block_on(async {
                let house = House::named(cluster.endpoints(), "g1");
                let won = house.lead().await;
                (house, won)
            });
            let leads = observer.block_on(etcds_leader(&mut cluster));
            if etcds_leader_too {
                cluster.member(leads).process().kill();
            }
            let from = Instant::now();
            let next = other.block_on(async {
                let successor = House::named(cluster.endpoints(), "g2");
                let next = successor.lead().await;
                write_on(&successor, guard(&next), next.term.0).await;
                successor.election.resign().await.unwrap();
                next
            });
            took.push(from.elapsed());
            assert_eq!(next.term, won.term.next());
            assert!(begun.elapsed() > Duration::from_millis(2_000), "the lease is waited for: {took:?}");
            if etcds_leader_too {
                observer.block_on(cluster.member(leads).restart()).unwrap();
            }
            drop((house, sleeper));
        }
        println!("etcd's leader died as well: {etcds_leader_too}; a successor wrote after {took:?}");
        assert!(took.iter().any(|took| *took < within), "{took:?}");
    }
}
