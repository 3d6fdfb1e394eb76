//! S5: effects open with the proof that their own step is stored, and with nothing else.

#![allow(clippy::unwrap_used)] // A fixture that cannot be made ends its test.

use std::collections::BTreeMap;

use futures::executor::block_on;

use super::save;
use crate::event::Event;
use crate::order::Opened;
use crate::record::AuditHead;
use crate::store::{Store, StoreError};
use crate::support::{Player, Trouble, device, host, node};

fn off() -> Event<'static> {
    Event::OffIntent { devices: vec![device("bmc")], identified: Vec::new() }
}

fn saving(player: &Player) -> Result<(), StoreError> {
    let step = player.step(off()).unwrap();
    block_on(save(&player.store, &player.leadership, &step)).map(drop)
}

#[test]
fn what_is_stored_opens() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    let step = player.step(off()).unwrap();
    let record = step.record().clone();
    let saved = block_on(save(&player.store, &player.leadership, &step)).unwrap();
    let landed = step.open(saved);
    assert_eq!((landed.stored().version, &landed.stored().record), (player.stored.version.next(), &record));
    assert!(matches!(landed.orders(), [Opened::Off(_)]));
    let (stored, orders) = landed.into_parts();
    assert_eq!(orders[0].effect(), record.ledger.open()[0].id);
    assert_eq!(block_on(player.store.load(&node())).unwrap().unwrap(), stored);
}

#[test]
fn a_step_begins_something_where_it_enters_an_effect() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let (off, lost) =
        (player.step(off()).unwrap(), player.step(Event::Lost { device: device("bmc") }).unwrap());
    assert_eq!((off.begins(player.record()), lost.begins(player.record())), (true, false));
    let opened = player.off_intent(&["bmc"]);
    assert_eq!(opened[0].effect(), player.record().ledger.open()[0].id);
    let lost = player.step(Event::Lost { device: device("bmc") }).unwrap();
    assert!(!lost.begins(player.record()), "the off was open before");
}

#[test]
fn an_event_that_carries_another_has_its_word() {
    let carried = || Box::new(off());
    let sessions = Event::InSessions { event: carried(), sessions: BTreeMap::new(), lives: BTreeMap::new() };
    assert_eq!(sessions.label(), "off_intent");
    let after =
        Event::After { found: vec![Event::Lost { device: device("bmc") }], event: Box::new(sessions) };
    assert_eq!(after.label(), "off_intent");
}

#[test]
#[should_panic(expected = "the proof of their own step")]
fn the_proof_of_another_step_opens_nothing() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    let (one, other) = (player.step(off()).unwrap(), player.step(off()).unwrap());
    let saved = block_on(save(&player.store, &player.leadership, &one)).unwrap();
    let _ = other.open(saved);
}

/// A write that the store does not answer is looked for, and is there: it was written the first time.
#[test]
#[should_panic(expected = "a step is opened once")]
fn a_step_that_is_saved_twice_is_opened_once() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    let step = player.step(off()).unwrap();
    let first = block_on(save(&player.store, &player.leadership, &step)).unwrap();
    player.store.fails_next(Trouble::SilentlyLost);
    let second = block_on(save(&player.store, &player.leadership, &step)).unwrap();
    assert_eq!(step.open(first).orders().len(), 1);
    let _ = step.open(second);
}

#[test]
fn a_step_on_an_old_version_is_not_saved() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    player.store.overtakes();
    assert!(matches!(saving(&player), Err(StoreError::Conflict { .. })));
}

#[test]
fn a_deposed_leader_saves_nothing() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    player.store.deposes();
    assert!(matches!(saving(&player), Err(StoreError::Deposed(_))));
}

#[test]
fn a_write_that_did_not_happen_is_not_saved() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    player.store.fails_next(Trouble::Unavailable);
    assert!(matches!(saving(&player), Err(StoreError::Unavailable(_))));
}

#[test]
fn where_the_store_does_not_say_it_is_read_again() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    player.store.fails_next(Trouble::SilentlyLost);
    assert_eq!(saving(&player), Ok(()), "it is not there, and is written again");
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    player.store.fails_next(Trouble::SilentlyDone);
    assert_eq!(saving(&player), Ok(()));
}

#[test]
fn a_write_that_lands_after_it_was_looked_for_is_not_said_not_to_have_happened() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    player.store.fails_next(Trouble::Late);
    let told = saving(&player);
    let there = player.store.in_the_end().unwrap().version == player.stored.version.next();
    assert!(!matches!(told, Err(StoreError::Unavailable(_))) || !there, "{told:?}, and it is there");
    assert_eq!((told, there), (Ok(()), true));
}

#[test]
fn where_another_write_stands_there_it_is_a_conflict() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    let other = player.step(Event::Lost { device: device("bmc") }).unwrap();
    block_on(save(&player.store, &player.leadership, &other)).unwrap();
    player.store.fails_next(Trouble::SilentlyLost);
    assert!(matches!(saving(&player), Err(StoreError::Conflict { .. })));
}

#[test]
fn where_the_audit_stood_is_stored_with_the_fence_and_opens_as_any_step() {
    let player = Player::fencing(&[&[host("bmc")]], &[]);
    let head = AuditHead { seq: 57, hash: "ab".repeat(32) };
    let step = player.step(off()).unwrap().anchor(&head);
    assert!(step.fences().iter().all(|fence| fence.audit.as_ref() == Some(&head)));
    let saved = block_on(save(&player.store, &player.leadership, &step)).unwrap();
    let (stored, opened) = step.open(saved).into_parts();
    assert_eq!(stored.record.fence.and_then(|fence| fence.audit), Some(head));
    assert!(matches!(opened.as_slice(), [Opened::Off(_)]));
}
