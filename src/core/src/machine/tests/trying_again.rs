//! S16: what a person tries again goes by the settings of now, and for a lower grade where that is enough.

use crate::device::{DeviceSpec, Grade, Identity};
use crate::event::Event;
use crate::ids::DeviceId;
use crate::machine::Refused;
use crate::outcome::Reason;
use crate::support::{Player, device, host, person, request, supply};
use crate::topology::Topology;

fn topology(levels: &[&[DeviceSpec]]) -> Topology {
    request(9, levels, &[]).topology
}

fn tried_again(player: &mut Player, levels: &[&[DeviceSpec]]) -> Result<(), Refused> {
    let found = vec![Event::NewTopology(topology(levels))];
    player.try_apply(Event::After { found, event: Box::new(Event::Retry(person())) }).map(drop)
}

fn devices(player: &Player) -> Vec<DeviceId> {
    player.open_fence().topology.devices().map(|spec| spec.id.clone()).collect()
}

#[test]
fn a_corrected_identity_and_a_new_device_hold_from_the_retry_on() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.give_up(Reason::IdentityMismatch);
    let identity = Identity { uuid: None, serial: Some("CN7".to_owned()) };
    let corrected = DeviceSpec { identity: identity.clone(), ..host("bmc") };
    tried_again(&mut player, &[&[corrected], &[supply("pdu")]]).unwrap();
    assert_eq!(player.phase(), "fencing");
    assert_eq!(devices(&player), [device("bmc"), device("pdu")]);
    assert_eq!(player.open_fence().topology.device(&device("bmc")).unwrap().identity, identity);
}

#[test]
fn a_device_that_is_switched_off_or_not_believed_is_not_forgotten() {
    let mut player = Player::fencing(&[&[host("bmc"), host("agent")]], &["detach"]);
    player.off_intent(&["bmc"]);
    player.close_all();
    player.give_up(Reason::LevelsSpent);
    tried_again(&mut player, &[&[host("agent")]]).unwrap();
    assert_eq!(devices(&player), [device("bmc"), device("agent")], "it is to be switched on again");

    let mut player = Player::fencing(&[&[host("bmc"), host("agent")]], &["detach"]);
    player.apply(Event::Lost { device: device("agent") });
    player.give_up(Reason::LevelsSpent);
    tried_again(&mut player, &[&[host("bmc")]]).unwrap();
    assert_eq!(devices(&player), [device("bmc"), device("agent")], "its loss is remembered");

    // By the same name it would be another kind of witness.
    player.give_up(Reason::LevelsSpent);
    tried_again(&mut player, &[&[host("bmc")], &[supply("agent")]]).unwrap();
    assert_eq!(devices(&player), [device("bmc"), device("agent")]);
    assert_eq!(player.open_fence().topology.levels().len(), 1);
}

/// A board that was exchanged while its node was off is found once that is let back in.
#[test]
fn a_node_that_is_let_back_in_goes_by_the_identities_of_the_settings_and_by_nothing_else() {
    let serial = |of: &str| Identity { uuid: None, serial: Some(of.to_owned()) };
    let bmc = |of: &str| DeviceSpec { identity: serial(of), ..host("bmc") };
    let mut player = Player::unfencing(&[&[bmc("CN7")]]);
    let identity =
        |player: &Player| player.open_fence().topology.device(&device("bmc")).unwrap().identity.clone();
    player.give_up(Reason::IdentityMismatch);
    tried_again(&mut player, &[&[bmc("CN8")], &[supply("pdu")]]).unwrap();
    assert_eq!((player.phase(), identity(&player)), ("unfencing", serial("CN7")), "another device");
    assert_eq!(devices(&player), [device("bmc")]);
    player.give_up(Reason::IdentityMismatch);
    let slower = DeviceSpec { call: host("bmc").call * 2, ..bmc("CN8") };
    tried_again(&mut player, &[&[slower]]).unwrap();
    assert_eq!((player.phase(), identity(&player)), ("unfencing", serial("CN8")));
    assert_eq!(player.open_fence().topology.device(&device("bmc")).unwrap().call, host("bmc").call);
}

#[test]
fn no_settings_change_a_fence_that_goes_on_by_itself() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let refused = player.try_apply(Event::NewTopology(topology(&[&[host("other")]])));
    assert!(matches!(refused, Err(Refused::Phase { phase: "fencing", .. })));
}

#[test]
fn less_is_enough_only_where_a_better_grade_is_waited_for() {
    let asked = |grade| Event::AskedForLess { grade, person: person() };
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.give_up(Reason::LevelsSpent);
    assert!(player.try_apply(asked(Grade::Attested)).is_err(), "nothing waits for a grade");

    let mut wanting = request(1, &[&[host("bmc")]], &["detach"]);
    wanting.min_grade = Grade::Observed;
    let mut player = Player::new();
    player.fence(wanting);
    player.give_up(Reason::GradeTooLow);
    assert!(player.try_apply(asked(Grade::Observed)).is_err(), "that is no less");
    player.apply(asked(Grade::Claimed));
    assert_eq!((player.phase(), player.open_fence().min_grade), ("fencing", Grade::Claimed));
    assert!(player.open_fence().evidence.is_none(), "evidence from zero");
}
