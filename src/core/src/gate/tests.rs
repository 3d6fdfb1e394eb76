//! S4, S6, S7: what the last gate lets through.

#![allow(clippy::unwrap_used)] // A fixture that cannot be made ends its test.

mod sending;

use std::time::Duration;

use futures::executor::block_on;

use super::{GateFault, release_permit};
use crate::device::{DeviceClass, DeviceSpec};
use crate::event::Event;
use crate::ground::{AttestedOff, Look, LookFault, ReleaseGround};
use crate::power::Power::{Off, On, Unknown};
use crate::power::{Epoch, Power};
use crate::record::ReleaseStage;
use crate::store::StoreError;
use crate::support::{Player, device, host, ms, person, s, supply};
use crate::time::{BootTime, Clock, WallTime};

/// A node that is proven off, with something to release.
fn fenced() -> (Player, ReleaseGround) {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let proof = player.confirm();
    player.clock.advance(s(1_000));
    (player, ReleaseGround::Confirmed(proof))
}

fn vouched() -> (Player, ReleaseGround) {
    let mut player = Player::fencing(&[&[host("bmc"), host("agent")]], &["detach"]);
    player.clock.advance(s(1_000));
    player.attest(&[player.look("bmc", None), player.look("agent", Some(Off))]).unwrap();
    let word = AttestedOff::of(player.record(), player.leadership.term()).unwrap();
    (player, ReleaseGround::Attested(word))
}

fn permit(player: &Player, ground: &ReleaseGround, looks: &[Look]) -> Result<u64, GateFault> {
    let Player { store, leadership, clock, stored } = player;
    let permit = block_on(release_permit(store, leadership, &**clock, stored, ground, looks))?;
    Ok(permit.not_after().millis())
}

/// One look at the BMC, just now.
fn look(player: &Player, power: Power) -> Vec<Look> {
    vec![player.look("bmc", Some(power))]
}

#[test]
fn a_fresh_off_permits_one_attempt_for_a_minute() {
    let (player, ground) = fenced();
    let looks = look(&player, Off);
    let Player { store, leadership, clock, stored } = &player;
    let permit = block_on(release_permit(store, leadership, &**clock, stored, &ground, &looks)).unwrap();
    assert_eq!((permit.node(), permit.fence()), (&crate::support::node(), crate::support::fence_id(1)));
    assert_eq!((permit.generation().0, permit.term()), (1, leadership.term()));
    assert_eq!(permit.evidence(), ground.evidence());
    assert!(permit.needs_off());
    let now = clock.wall().millis();
    assert_eq!(permit.not_after().millis() - now, 60_000);
}

#[test]
fn a_look_older_than_two_seconds_does_not() {
    let (player, ground) = fenced();
    let looks = look(&player, Off);
    player.clock.advance(s(2));
    assert!(permit(&player, &ground, &looks).is_ok());
    player.clock.advance(ms(1));
    assert_eq!(permit(&player, &ground, &looks), Err(GateFault::Look(LookFault::Stale(device("bmc")))));
}

/// Time passes by so much whenever it is read: between the reading before the store is asked and the one after it has answered.
#[derive(Debug)]
struct SlowStore<'a>(&'a Player, Duration);

impl Clock for SlowStore<'_> {
    fn boot(&self) -> BootTime {
        let now = self.0.clock.boot();
        self.0.clock.advance(self.1);
        now
    }

    fn wall(&self) -> WallTime {
        self.0.clock.wall()
    }
}

#[test]
fn a_person_s_word_and_a_parent_s_proof_need_no_off_of_the_node_s_own_devices() {
    let needs_off = |player: &Player, ground: &ReleaseGround, looks: &[Look]| {
        let Player { store, leadership, clock, stored } = player;
        block_on(release_permit(store, leadership, &**clock, stored, ground, looks)).unwrap().needs_off()
    };
    let (player, ground) = vouched();
    assert!(!needs_off(&player, &ground, &[player.look("bmc", None), player.look("agent", None)]));
    let parent = DeviceSpec { class: DeviceClass::Parent, ..host("hypervisor") };
    let mut player = Player::fencing(&[&[parent]], &["detach"]);
    let ground = ReleaseGround::Confirmed(player.confirm());
    player.clock.advance(s(1_000));
    assert!(!needs_off(&player, &ground, &[player.look("hypervisor", Some(Off))]));
}

#[test]
fn a_look_that_grows_too_old_while_the_store_is_asked_does_not() {
    let after = |takes: Duration| {
        let (player, ground) = fenced();
        let (looks, clock) = (look(&player, Off), SlowStore(&player, takes));
        let Player { store, leadership, stored, .. } = &player;
        block_on(release_permit(store, leadership, &clock, stored, &ground, &looks)).map(drop)
    };
    assert_eq!(after(s(2)), Ok(()));
    assert_eq!(after(ms(2_001)), Err(GateFault::Look(LookFault::Stale(device("bmc")))));
}

#[test]
fn of_an_attempt_s_packets_none_goes_out_once_its_leadership_has_ended_or_its_look_is_old() {
    let ended = |end: &dyn Fn(&Player)| {
        let (player, ground) = fenced();
        let looks = look(&player, Off);
        let Player { store, leadership, clock, stored } = &player;
        let permit = block_on(release_permit(store, leadership, &**clock, stored, &ground, &looks)).unwrap();
        clock.advance(s(2));
        assert_eq!(permit.may_send(), Ok(()), "the look is fresh still");
        end(&player);
        permit.may_send().unwrap_err()
    };
    let given_up = ended(&|player| player.leadership.end());
    assert!(given_up.contains("has ended: its lease is over"), "{given_up}");
    let jumped = ended(&|player| player.clock.jump(s(2)));
    assert!(jumped.contains("has ended: the wall clock jumped"), "{jumped}");
    let old = ended(&|player| player.clock.advance(ms(1)));
    assert!(old.contains("seen off longer than 2s ago"), "{old}");
}

#[test]
fn the_reading_s_own_asking_counts_whatever_the_look_says() {
    let (player, ground) = fenced();
    let mut looks = look(&player, Off);
    player.clock.advance(s(3));
    looks[0].asked_at = player.clock.boot();
    assert_eq!(permit(&player, &ground, &looks), Err(GateFault::Look(LookFault::Stale(device("bmc")))));
}

#[test]
fn unknown_silence_and_nothing_at_all_do_not() {
    let (player, ground) = fenced();
    let not_off = Err(GateFault::Look(LookFault::NotOff(device("bmc"))));
    assert_eq!(permit(&player, &ground, &look(&player, Unknown)), not_off);
    assert_eq!(permit(&player, &ground, &[player.look("bmc", None)]), not_off);
    assert_eq!(permit(&player, &ground, &[]), Err(GateFault::Look(LookFault::Stale(device("bmc")))));
    assert!(permit(&player, &ground, &[player.look("other", Some(Off))]).is_err());
}

#[test]
fn the_newest_look_counts() {
    let (player, ground) = fenced();
    let mut looks = look(&player, Off);
    player.clock.advance(ms(500));
    looks.push(player.look("bmc", Some(Unknown)));
    assert_eq!(permit(&player, &ground, &looks), Err(GateFault::Look(LookFault::NotOff(device("bmc")))));
    player.clock.advance(ms(500));
    looks.push(player.look("bmc", Some(Off)));
    assert!(permit(&player, &ground, &looks).is_ok());
}

#[test]
fn on_is_a_breach_whichever_host_device_says_so_and_however_old_it_is() {
    let (player, ground) = fenced();
    let mut looks = vec![player.look("agent", Some(On))];
    player.clock.advance(s(5));
    looks.extend(look(&player, Off));
    assert_eq!(permit(&player, &ground, &looks), Err(GateFault::Look(LookFault::On(device("agent")))));
}

#[test]
fn a_new_epoch_sends_back_to_fencing() {
    let (player, ground) = fenced();
    let mut looks = look(&player, Off);
    let epoch = Some(Epoch::FIRST.next());
    looks[0].reading.as_mut().unwrap().epoch = epoch;
    assert_eq!(permit(&player, &ground, &looks), Err(GateFault::Look(LookFault::NewEpoch(device("bmc")))));
}

#[test]
fn every_device_of_the_level_is_looked_at() {
    let mut player = Player::fencing(&[&[supply("a"), supply("b")]], &["detach"]);
    let ground = ReleaseGround::Confirmed(player.confirm());
    player.clock.advance(s(1_000));
    let plain = |name: &str, power| {
        let mut look = player.look(name, Some(power));
        look.reading.as_mut().unwrap().epoch = None;
        look
    };
    assert_eq!(ground.to_look_at(), [device("a"), device("b")]);
    let one = permit(&player, &ground, &[plain("a", Off)]);
    assert_eq!(one, Err(GateFault::Look(LookFault::Stale(device("b")))));
    assert!(permit(&player, &ground, &[plain("a", Off), plain("b", Off)]).is_ok());
    assert!(permit(&player, &ground, &[plain("a", Off), plain("b", On)]).is_err());
}

#[test]
fn another_phase_permits_nothing() {
    let (mut player, ground) = fenced();
    player.apply(Event::Unproven { why: "unknown".to_owned(), seen: true });
    let looks = look(&player, Off);
    assert!(matches!(permit(&player, &ground, &looks), Err(GateFault::State(_))));
    let (mut player, ground) = fenced();
    player.complete("detach");
    let looks = look(&player, Off);
    assert!(matches!(permit(&player, &ground, &looks), Err(GateFault::State(_))));
}

#[test]
fn a_ground_that_is_not_the_stored_one_permits_nothing() {
    let (mut player, old) = fenced();
    player.apply(Event::Unproven { why: "unknown".to_owned(), seen: true });
    player.clock.advance(s(60));
    // Proven anew, in the same fence and generation, by other readings.
    let looks = |player: &Player| vec![player.look("bmc", None)];
    player.attest(&looks(&player)).unwrap();
    assert!(matches!(permit(&player, &old, &look(&player, Off)), Err(GateFault::State(_))));
    let word = ReleaseGround::Attested(AttestedOff::of(player.record(), player.leadership.term()).unwrap());
    assert!(permit(&player, &word, &looks(&player)).is_ok());
    let mut forged = player.record().clone();
    forged.fence.as_mut().unwrap().attestation.as_mut().unwrap().by = "somebody else".to_owned();
    let forged = ReleaseGround::Attested(AttestedOff::of(&forged, player.leadership.term()).unwrap());
    assert!(matches!(permit(&player, &forged, &looks(&player)), Err(GateFault::State(_))));
}

#[test]
fn a_ground_of_a_fence_before_permits_nothing() {
    let (mut player, ground) = fenced();
    player.breach(2, "bmc").unwrap();
    player.confirm();
    assert!(matches!(permit(&player, &ground, &look(&player, Off)), Err(GateFault::State(_))));
}

#[test]
fn another_term_permits_nothing() {
    let (mut player, ground) = fenced();
    player.store.deposes();
    let deposed = permit(&player, &ground, &look(&player, Off));
    assert!(matches!(deposed, Err(GateFault::Store(StoreError::Deposed(_)))), "{deposed:?}");
    player.succeeds();
    let other = permit(&player, &ground, &look(&player, Off));
    assert!(matches!(other, Err(GateFault::Ended(_))), "{other:?}");
}

#[test]
fn leadership_that_ended_permits_nothing() {
    let (player, ground) = fenced();
    player.leadership.end();
    assert!(matches!(permit(&player, &ground, &look(&player, Off)), Err(GateFault::Ended(_))));
    let (player, ground) = fenced();
    player.clock.jump(s(2));
    assert!(matches!(permit(&player, &ground, &look(&player, Off)), Err(GateFault::Ended(_))));
}

#[test]
fn a_record_that_somebody_else_changed_permits_nothing() {
    let (player, ground) = fenced();
    player.store.overtakes();
    let changed = permit(&player, &ground, &look(&player, Off));
    assert!(matches!(changed, Err(GateFault::Store(StoreError::Conflict { .. }))), "{changed:?}");
}

#[test]
fn on_a_person_s_word_all_host_devices_were_asked_and_none_says_on() {
    let (player, ground) = vouched();
    let (bmc, agent) = (player.look("bmc", None), player.look("agent", Some(Unknown)));
    assert!(permit(&player, &ground, &[bmc.clone(), agent.clone()]).is_ok());
    assert_eq!(
        permit(&player, &ground, std::slice::from_ref(&bmc)),
        Err(GateFault::Look(LookFault::Stale(device("agent"))))
    );
    let on = player.look("agent", Some(On));
    assert_eq!(
        permit(&player, &ground, &[bmc.clone(), on]),
        Err(GateFault::Look(LookFault::On(device("agent"))))
    );
    player.clock.advance(ms(2_001));
    assert!(permit(&player, &ground, &[bmc, agent]).is_err());
}

#[test]
fn a_person_s_word_is_a_ground_only_while_it_is_stored() {
    let (mut player, _) = vouched();
    let of = |player: &Player| AttestedOff::of(player.record(), player.leadership.term());
    assert!(of(&player).is_some());
    player.attempt("detach");
    player.progress("detach", ReleaseStage::Accepted, None);
    assert!(of(&player).is_some());
    player.give_up(crate::outcome::Reason::ReleaseDeadline);
    player.apply(Event::Retry(person()));
    assert!(of(&player).is_none());
}
