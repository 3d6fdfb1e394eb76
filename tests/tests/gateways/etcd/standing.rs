//! Who may stand: settings and versions.

use std::time::Duration;

use picket_core::election::{Election, Known, Member};
use picket_etcd::{AcceptedSettings, Candidate, Version};
use picket_tests::peers::{EtcdCluster, HANGS, TcpFault};
use tokio::time::timeout;

use crate::etcd::house::{House, beside, candidate, raw, settings, soon};

/// Whether it leads at once: who may not stand never does.
async fn stands(house: &House) -> bool {
    match timeout(Duration::from_millis(1_200), house.election.campaign()).await {
        Ok(won) => {
            won.unwrap();
            true
        }
        Err(_) => {
            house.election.resign().await.unwrap();
            false
        }
    }
}

#[tokio::test]
async fn who_has_other_settings_waits_until_it_has_them_or_is_told_to() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let one = House::named(cluster.endpoints(), "g1");
    one.election.set_fleet("sha256:a").await.unwrap();
    one.lead().await;
    let two = House::named(cluster.endpoints(), "g2");
    two.election.set_fleet("sha256:b").await.unwrap();
    one.election.resign().await.unwrap();
    assert!(!stands(&two).await, "its settings are others");
    let mut waiting = Box::pin(two.election.campaign());
    beside(&mut waiting, "it says why", async || {
        let others = one.election.others();
        others.iter().any(|m| {
            m.gateway == "g2" && m.aside.as_deref().is_some_and(|why| why.contains("picketd accept-settings"))
        })
    })
    .await;
    assert_eq!(two.election.me().aside, one.election.others()[0].aside);
    assert!(matches!(two.election.known(), Known::Nobody(_)), "{:?}", two.election.known());

    // A reload while it waits is enough.
    assert!(timeout(Duration::from_millis(300), &mut waiting).await.is_err());
    two.election.set_fleet("sha256:a").await.unwrap();
    let won = timeout(HANGS, waiting).await.expect("it stands").unwrap();
    assert_eq!(won.term.0, 2);
    assert_eq!(two.election.me().aside, None);

    // A leader's reload binds the others from then on, also where it leads no more.
    two.election.set_fleet("sha256:c").await.unwrap();
    two.election.resign().await.unwrap();
    assert!(!stands(&one).await);
    let told = Candidate { take_over_settings: true, ..candidate("g3") };
    let told = House::new(settings(cluster.endpoints()), told);
    told.election.set_fleet("sha256:d").await.unwrap();
    // It was told to.
    told.lead().await;
    told.election.resign().await.unwrap();
    assert!(!stands(&two).await, "now these are the settings");
}

/// A reload while etcd does not answer is stored once it does: else nobody could follow that leader, whose settings all have.
#[tokio::test]
async fn settings_that_were_taken_while_etcd_was_away_are_known_once_it_is_back() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    let way = TcpFault::before(cluster.member(0).client()).await.unwrap();
    let house = House::named(vec![format!("http://{}", way.address())], "g1");
    house.election.set_fleet("sha256:a").await.unwrap();
    let leadership = house.permit().await;
    way.shut();
    house.election.set_fleet("sha256:b").await.expect_err("etcd does not hear it");
    way.heal();
    let raw = raw(&cluster.endpoints());
    soon("it is stored", async || {
        raw.get("/picket/election/digest").await.expect("there is one") == b"sha256:b"
    })
    .await;
    leadership.check().expect("it led all the while");
}

#[tokio::test]
async fn a_word_of_a_person_makes_other_settings_the_fleets_once() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let one = House::named(cluster.endpoints(), "g1");
    let none = one.etcd.accept_settings("b").await.unwrap_err().to_string();
    assert!(none.contains("there is no store"), "nothing is made: {none}");
    one.etcd.look().await.unwrap();
    assert_eq!(one.etcd.accept_settings("b").await.unwrap(), AcceptedSettings::NobodyLedYet);
    one.election.set_fleet("a").await.unwrap();
    one.lead().await;
    assert_eq!(one.etcd.accept_settings("a").await.unwrap(), AcceptedSettings::Already);
    let refused = one.etcd.accept_settings("b").await.unwrap_err().to_string();
    assert!(refused.contains("g1 leads by other settings (a): give it these (b) and reload it"), "{refused}");
    one.election.resign().await.unwrap();

    // Both have the new ones; neither stands, until the word is given, and then at once.
    let two = House::named(cluster.endpoints(), "g2");
    for house in [&one, &two] {
        house.election.set_fleet("b").await.unwrap();
        assert!(!stands(house).await);
        assert!(house.election.digests().differ());
    }
    let mut waiting = Box::pin(two.election.campaign());
    assert!(timeout(Duration::from_millis(300), &mut waiting).await.is_err());
    assert_eq!(one.etcd.accept_settings("b").await.unwrap(), AcceptedSettings::Now("a".to_owned()));
    timeout(HANGS, waiting).await.expect("it stands").unwrap();
    let seen = one.election.digests();
    assert_eq!((seen.own.as_str(), seen.led_by.as_str(), seen.differ()), ("b", "b", false));
    soon("the other's is known", async || {
        one.election.digests().others.get("g2").is_some_and(|its| its == "b")
    })
    .await;
    // Used up: who has the old ones does not stand any more, and nobody was told to take over for ever.
    two.election.resign().await.unwrap();
    one.election.set_fleet("a").await.unwrap();
    assert!(!stands(&one).await);
}

#[tokio::test]
async fn an_older_version_follows() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let of = |gateway: &str, version: &str, least: Option<&str>| {
        let me = Member { version: version.to_owned(), ..candidate(gateway).me };
        let least_version = least.map(|least| Version::parse(least).unwrap());
        House::new(settings(cluster.endpoints()), Candidate { me, least_version, ..candidate(gateway) })
    };
    let new = of("g1", "0.5.0", Some("0.4.0"));
    new.lead().await;
    new.election.resign().await.unwrap();
    let old = of("g2", "0.3.9", Some("0.1.0"));
    assert!(!stands(&old).await);
    assert!(old.election.me().aside.unwrap().contains("0.4.0 or a later one"));
    let same = of("g3", "0.4.0", None);
    same.lead().await;
    same.election.resign().await.unwrap();
    // It is never lowered again.
    let newest = of("g4", "0.9.0", Some("0.2.0"));
    newest.lead().await;
    let least = raw(&cluster.endpoints()).get("/picket/election/least-version").await;
    assert_eq!(least.as_deref(), Some(&b"0.4.0"[..]));
}

#[tokio::test]
async fn what_the_engine_sets_aside_is_told_to_the_others() {
    let cluster = EtcdCluster::start(1).await.unwrap();
    let (one, two) = (House::named(cluster.endpoints(), "g1"), House::named(cluster.endpoints(), "g2"));
    one.lead().await;
    let waiting = two.election.campaign();
    let told = async {
        let aside = async |wanted: Option<&str>| {
            soon("it is told", async || {
                let others = one.election.others();
                others.iter().any(|m| m.gateway == "g2" && m.aside.as_deref() == wanted)
            })
            .await;
        };
        two.election.set_aside(Some("it stands on r1n01, which is being fenced".to_owned()));
        aside(Some("it stands on r1n01, which is being fenced")).await;
        two.election.set_aside(None);
        aside(None).await;
    };
    tokio::select! {
        biased;
        () = told => {}
        won = waiting => panic!("{won:?}"),
    }
}
