//! Whom a learned identity was confirmed by, and for how long (S13).

use std::collections::BTreeMap;

use crate::device::Identity;
use crate::event::{Event, FenceRequest, Holder};
use crate::machine::Refused;
use crate::record::{IdentityProof, Then};
use crate::support::{Player, device, host, person, request};

fn serial(text: &str) -> Identity {
    Identity { uuid: None, serial: Some(text.to_owned()) }
}

fn learns(player: &mut Player, text: &str) {
    player.apply(Event::Learned { device: device("bmc"), identity: serial(text) });
}

fn proven(text: &str) -> Event<'static> {
    Event::IdentityProven {
        device: device("bmc"),
        identity: serial(text),
        by: "Node n1 says the same system UUID".to_owned(),
    }
}

fn proof(player: &Player) -> Option<&IdentityProof> {
    player.record().identity_proofs.get(&device("bmc"))
}

/// A drill by a BMC that is over but for the on.
fn drilled(player: &mut Player) {
    let then_on = |holder: Holder| Holder { then: Then::PowerOn, ..holder };
    let request = request(1, &[&[host("bmc")]], &[]);
    let holder = then_on(request.holder.clone());
    player.apply(Event::Drill(Box::new(FenceRequest { holder, ..request })));
    player.off_intent(&["bmc"]);
    player.confirm();
    player.close_all();
}

fn witnessed() -> Event<'static> {
    let by = BTreeMap::from([(device("bmc"), "drill: the liveness source saw it fall".to_owned())]);
    Event::Drilled { verified: BTreeMap::new(), identities: by, findings: Vec::new() }
}

#[test]
fn a_proof_is_of_the_identity_that_was_learned_last() {
    let mut player = Player::new();
    let refused = player.try_apply(proven("CN7"));
    assert!(matches!(refused, Err(Refused::ForeignProof(_))), "nothing was learned: {refused:?}");
    learns(&mut player, "CN7");
    assert!(player.try_apply(proven("CN8")).is_err(), "another identity was proven");
    player.apply(proven("CN7"));
    assert_eq!(proof(&player).map(|proof| proof.by.as_str()), Some("Node n1 says the same system UUID"));
}

#[test]
fn a_proof_ends_where_the_identity_is_learned_anew_or_accepted() {
    let mut player = Player::new();
    learns(&mut player, "CN7");
    player.apply(proven("CN7"));
    learns(&mut player, "CN8");
    assert_eq!(proof(&player), None, "learned anew");
    player.apply(proven("CN8"));
    player.apply(Event::Accepted { device: device("bmc"), identity: serial("CN9"), person: person() });
    assert_eq!(proof(&player), None, "a person accepted what the device says of itself");
}

#[test]
fn no_identity_is_proven_in_a_fence() {
    let mut player = Player::new();
    learns(&mut player, "CN7");
    player.fence(request(1, &[&[host("bmc")]], &[]));
    assert!(matches!(player.try_apply(proven("CN7")), Err(Refused::Phase { .. })));
    assert_eq!(proof(&player), None);
}

#[test]
fn a_drill_confirms_only_what_was_learned_and_only_at_its_end() {
    let mut player = Player::new();
    drilled(&mut player);
    if player.phase() != "unfencing" {
        player.unfence().unwrap();
    }
    let refused = player.try_apply(witnessed());
    assert!(matches!(refused, Err(Refused::NoSuch { what: "learned identity", .. })), "{refused:?}");

    let mut player = Player::new();
    learns(&mut player, "CN7");
    assert!(matches!(player.try_apply(witnessed()), Err(Refused::Phase { .. })), "no drill is under way");
    drilled(&mut player);
    if player.phase() != "unfencing" {
        player.unfence().unwrap();
    }
    player.apply(witnessed());
    assert!(proof(&player).is_some_and(|proof| proof.by.contains("liveness source")));
}

#[test]
fn no_fence_but_a_drill_confirms_an_identity() {
    let mut player = Player::new();
    learns(&mut player, "CN7");
    player.fence(request(1, &[&[host("bmc")]], &[]));
    player.off_intent(&["bmc"]);
    player.confirm();
    player.close_all();
    player.unfence().unwrap();
    assert!(matches!(player.try_apply(witnessed()), Err(Refused::ForeignProof(_))));
    assert_eq!(proof(&player), None);
}
