//! A fence that ends as recovered although an off was sent: each was waited out, and the node is well in the same boot (S15).

use crate::device::DeviceSpec;
use crate::event::Event;
use crate::ids::EffectId;
use crate::machine::Refused;
use crate::outcome::Outcome;
use crate::record::{Bringing, Phase};
use crate::support::{Player, host, person, supply};

/// The first off was stored in boot `b`.
fn sent(devices: &[&str]) -> Player {
    let mut player = Player::fencing(&[&[host("bmc")], &[supply("a"), supply("b")]], &["detach"]);
    player.apply(Event::Boot("b".to_owned()));
    player.off_intent(devices);
    player.apply(Event::Boot("later".to_owned()));
    player
}

fn recovered(player: &mut Player, boot: &str) -> Result<(), Refused> {
    player.try_apply(Event::Recovered { boot: boot.to_owned(), why: "ready".to_owned() }).map(drop)
}

#[test]
fn it_ends_in_the_boot_before_the_off_once_each_off_ended() {
    let mut player = sent(&["bmc"]);
    assert_eq!(recovered(&mut player, "b"), Err(Refused::OpenEffects(vec!["off of bmc".to_owned()])));
    player.close_all();
    assert_eq!(
        recovered(&mut player, "later"),
        Err(Refused::OffSent),
        "it was off in between, or may have been"
    );
    assert_eq!(recovered(&mut player, "b"), Ok(()));
    let record = player.record();
    assert_eq!((&record.phase, record.bringing), (&Phase::Unfencing, Bringing::Abort));
    assert_eq!(
        record.fence.as_ref().and_then(|fence| fence.outcome.clone()),
        Some(Outcome::AbortedRecovered)
    );
    assert!(record.holds.is_empty());
}

#[test]
fn where_nobody_knows_the_boot_before_the_off_it_runs_to_its_end() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.off_intent(&["bmc"]);
    player.close_all();
    assert_eq!(recovered(&mut player, "b"), Err(Refused::OffSent));
}

/// Redundant outlets may be off while the node is well: that is for a person to put right.
#[test]
fn where_an_outlet_may_be_off_it_runs_to_its_end() {
    let mut player = sent(&["a"]);
    player.close_all();
    assert_eq!(recovered(&mut player, "b"), Err(Refused::OffSent));
}

#[test]
fn one_that_somebody_holds_off_stays_off() {
    let mut player = sent(&["bmc"]);
    player.apply(Event::Hold { holder: "hands".to_owned(), person: person() });
    player.close_all();
    assert_eq!(recovered(&mut player, "b"), Err(Refused::Held(vec!["hands".to_owned()])));
}

#[test]
fn a_name_of_a_boot_that_is_longer_than_any_is_not_stored() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.apply(Event::Boot("b".repeat(257)));
    assert_eq!(player.open_fence().boot, None);
    player.apply(Event::Boot("b".repeat(256)));
    assert!(player.open_fence().boot.is_some());
}

/// That the off of this leadership did not happen says nothing of the one before.
#[test]
fn an_off_of_another_leadership_is_not_forgotten_with_ours() {
    let mut player = sent(&["bmc"]);
    player.succeeds();
    player.off_intent(&["bmc"]);
    let effects: Vec<EffectId> = player.record().ledger.open().iter().map(|open| open.id).collect();
    for effects in [effects.clone(), effects[1..].to_vec()] {
        let not_sent = Event::NotSent { effects, why: "refused".to_owned() };
        assert_eq!(player.try_apply(not_sent).map(drop), Err(Refused::OffSent));
    }
    assert_eq!(player.open_effects(), ["off of bmc", "off of bmc"]);
}

/// S15: an off that was stored, and then not sent, did not happen.
#[test]
fn a_first_off_that_was_not_sent_leaves_the_fence_as_it_was_before() {
    let not_sent = |player: &mut Player, effects| {
        player.try_apply(Event::NotSent { effects, why: "paused meanwhile".to_owned() }).map(drop)
    };
    let ids = |player: &Player| player.record().ledger.open().iter().map(|open| open.id).collect::<Vec<_>>();
    let levels: &[&[DeviceSpec]] = &[&[host("bmc"), host("second")]];
    let mut player = Player::fencing(levels, &[]);
    player.off_intent(&["bmc", "second"]);
    let effects = ids(&player);
    assert_eq!(not_sent(&mut player, effects[..1].to_vec()), Err(Refused::OffSent), "the other one may be");
    not_sent(&mut player, effects).unwrap();
    let fence = player.open_fence();
    assert!(!fence.off_sent && fence.switched_off.is_empty() && ids(&player).is_empty());
    player.apply(Event::Abort { why: "it recovered".to_owned() });

    // One that ended was sent, and so may be one of whoever led before.
    let mut player = Player::fencing(levels, &[]);
    player.off_intent(&["bmc"]);
    player.close_all();
    player.off_intent(&["second"]);
    let effects = ids(&player);
    assert_eq!(not_sent(&mut player, effects), Err(Refused::OffSent));
    let mut player = Player::fencing(levels, &[]);
    player.off_intent(&["bmc"]);
    let effects = ids(&player);
    player.succeeds();
    assert_eq!(not_sent(&mut player, effects), Err(Refused::OffSent));
}
