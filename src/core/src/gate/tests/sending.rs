//! S6, S7, S8: what lets an on, and an off, go out.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::executor::block_on;

use crate::device::{DeviceClass, DeviceSpec};
use crate::event::Event;
use crate::gate::{GateFault, off_serves, on_order};
use crate::ground::Look;
use crate::order::{Opened, PendingOn};
use crate::power::Power::{Off, On, Unknown};
use crate::store::StoreError;
use crate::support::{Player, device, host, ms, request, s};
use crate::time::Clock;

/// A node being brought back, and the on that stands in its ledger.
fn pending() -> (Player, PendingOn) {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    let pending = on_of(player.on_intent(&["bmc"]).unwrap());
    (player, pending)
}

fn on_of(opened: Vec<Opened>) -> PendingOn {
    match opened.into_iter().next() {
        Some(Opened::On(pending)) => pending,
        other => panic!("{other:?} is no on"),
    }
}

fn order(player: &Player, pending: &PendingOn) -> Result<(), GateFault> {
    order_after(player, pending, &player.look(pending.device().as_str(), Some(Off)), None)
}

/// The same after that look, in a session of that name.
fn order_after(
    player: &Player,
    pending: &PendingOn,
    look: &Look,
    session: Option<&str>,
) -> Result<(), GateFault> {
    let spec = player.open_fence().topology.device(pending.device());
    order_to(player, pending, look, spec.map(|spec| spec.class), session)
}

/// The same to a device that is of this class by the settings of now.
fn order_to(
    player: &Player,
    pending: &PendingOn,
    look: &Look,
    class: Option<DeviceClass>,
    session: Option<&str>,
) -> Result<(), GateFault> {
    let Player { store, leadership, stored, .. } = player;
    let order = block_on(on_order(store, leadership, stored, pending, look, class, session))?;
    assert_eq!((order.effect(), order.device()), (pending.effect(), pending.device()));
    Ok(())
}

fn is_barred(answer: Result<(), GateFault>) -> bool {
    matches!(answer, Err(GateFault::State(_)))
}

#[test]
fn each_sending_of_an_on_is_asked_for() {
    let (player, pending) = pending();
    order(&player, &pending).unwrap();
    order(&player, &pending).unwrap();
}

#[test]
fn an_on_wants_unfencing_and_its_entry() {
    let (mut player, pending) = pending();
    player.close_all();
    assert!(is_barred(order(&player, &pending)), "its entry is closed");
    let (mut player, pending) = self::pending();
    player.fence(request(2, &[&[host("bmc")]], &[]));
    assert!(is_barred(order(&player, &pending)), "a fence won");
}

#[test]
fn an_on_of_the_generation_before_stays_locked() {
    let (mut player, old) = pending();
    player.apply(Event::OnFailed { detail: String::new() });
    player.unfence().unwrap();
    assert!(is_barred(order(&player, &old)), "open, and of another generation");
    let new = on_of(player.on_intent(&["bmc"]).unwrap());
    order(&player, &new).unwrap();
}

#[test]
fn an_on_of_another_leadership_stays_locked() {
    let (mut player, pending) = pending();
    player.store.deposes();
    assert!(matches!(order(&player, &pending), Err(GateFault::Store(StoreError::Deposed(_)))));
    player.succeeds();
    assert!(is_barred(order(&player, &pending)), "it is waited out, not sent");
}

#[test]
fn whatever_the_record_says_s7_is_looked_at_again() {
    let (player, pending) = pending();
    let with = |change: &dyn Fn(&mut crate::record::NodeRecord)| {
        let mut stored = player.stored.clone();
        change(&mut stored.record);
        let (look, class) = (player.look("bmc", Some(Off)), Some(DeviceClass::Host));
        let order = on_order(&player.store, &player.leadership, &stored, &pending, &look, class, None);
        block_on(order).map(drop)
    };
    assert!(with(&|_| {}).is_ok());
    let kept = Player::fencing(&[&[host("bmc")]], &["detach"]);
    assert!(is_barred(with(&|record| record.holds = kept.record().holds.clone())));
    assert!(is_barred(with(&|record| {
        record.fence.as_mut().unwrap().releases = kept.open_fence().releases.clone();
    })));
    assert!(is_barred(with(&|record| record.node = crate::ids::NodeId::new("n2").unwrap())));
}

#[test]
fn an_on_is_not_sent_under_a_leadership_that_ended_or_on_a_record_that_changed() {
    let (player, pending) = pending();
    player.store.overtakes();
    assert!(matches!(order(&player, &pending), Err(GateFault::Store(StoreError::Conflict { .. }))));
    let (player, pending) = self::pending();
    player.leadership.end();
    assert!(matches!(order(&player, &pending), Err(GateFault::Ended(_))));
}

#[test]
fn an_off_that_was_entered_after_the_on_bars_it() {
    let (mut player, pending) = pending();
    let mut other = Player::fencing(&[&[host("bmc")]], &["detach"]);
    other.off_intent(&["bmc"]);
    other.off_intent(&["bmc"]);
    let text = serde_json::to_value(&player.record().ledger).unwrap();
    let mut open = text["open"].as_array().unwrap().clone();
    open.push(serde_json::to_value(&other.record().ledger.open()[0]).unwrap());
    let ledger = serde_json::json!({ "next": 9, "open": open });
    player.stored.record.ledger = serde_json::from_value(ledger).unwrap();
    assert!(is_barred(order(&player, &pending)));
}

#[test]
fn an_on_wants_a_reading_of_its_device_whatever_it_says() {
    let (player, pending) = pending();
    let after = |look: Look| order_after(&player, &pending, &look, None);
    for power in [On, Off, Unknown] {
        assert_eq!(after(player.look("bmc", Some(power))), Ok(()));
    }
    let unread = Err(GateFault::Unread(device("bmc")));
    assert_eq!(after(player.look("bmc", None)), unread);
    assert_eq!(after(player.look("agent", Some(Off))), unread);
    player.store.deposes();
    assert_eq!(after(player.look("bmc", None)), unread, "the store is not asked for nothing");
}

/// A device that takes up to five seconds for a call is read as long before the on.
#[test]
fn an_on_wants_a_reading_of_just_now() {
    let lasts = |call: Duration| {
        let spec = DeviceSpec { call, ..host("bmc") };
        let mut player = Player::unfencing(&[&[spec]]);
        let pending = on_of(player.on_intent(&["bmc"]).unwrap());
        let mut look = player.look("bmc", Some(Off));
        player.clock.advance(s(30));
        look.reading.as_mut().unwrap().answered_at = player.clock.boot();
        let after = |wait| {
            player.clock.advance(wait);
            order_after(&player, &pending, &look, None)
        };
        let life = call.max(s(2));
        assert_eq!(after(life), Ok(()), "asked for long ago, and answered in time");
        assert_eq!(after(ms(1)), Err(GateFault::OldLook(device("bmc"))));
    };
    lasts(s(5));
    lasts(ms(100));
}

#[test]
fn an_on_goes_in_the_session_that_is_stored_with_it_and_in_no_other() {
    let (mut player, nameless) = pending();
    let look = player.look("bmc", Some(Off));
    let is_new = Err(GateFault::NewSession(device("bmc")));
    assert_eq!(order_after(&player, &nameless, &look, Some("5")), is_new);
    let event = Box::new(Event::OnIntent { devices: vec![device("bmc")] });
    let sessions = BTreeMap::from([(device("bmc"), "5".to_owned())]);
    let named = on_of(player.apply(Event::InSessions { event, sessions, lives: BTreeMap::new() }));
    assert_eq!(order_after(&player, &named, &look, Some("5")), Ok(()));
    assert_eq!(order_after(&player, &named, &look, Some("6")), is_new);
    assert_eq!(order_after(&player, &named, &look, None), is_new);
}

#[test]
fn a_parent_is_let_go_without_its_word() {
    let parent = DeviceSpec { class: DeviceClass::Parent, ..host("hypervisor") };
    let mut player = Player::unfencing(&[&[parent]]);
    let pending = on_of(player.on_intent(&["hypervisor"]).unwrap());
    let unread = player.look("hypervisor", None);
    assert_eq!(order_after(&player, &pending, &unread, None), Ok(()));
    let is_new = Err(GateFault::NewSession(device("hypervisor")));
    assert_eq!(order_after(&player, &pending, &unread, Some("5")), is_new);
}

/// The gateway restarts with settings by which the record's parent is a BMC, or with none for it.
#[test]
fn a_host_is_read_before_its_on_though_the_record_has_it_as_a_parent() {
    let parent = DeviceSpec { class: DeviceClass::Parent, ..host("hypervisor") };
    let mut player = Player::unfencing(&[&[parent]]);
    let pending = on_of(player.on_intent(&["hypervisor"]).unwrap());
    for class in [Some(DeviceClass::Host), Some(DeviceClass::Supply), None] {
        let after = |look: Look| order_to(&player, &pending, &look, class, None);
        assert_eq!(after(player.look("hypervisor", None)), Err(GateFault::Unread(device("hypervisor"))));
        assert_eq!(after(player.look("hypervisor", Some(Off))), Ok(()));
    }
    let (player, pending) = self::pending();
    let unread = player.look("bmc", None);
    let told = order_to(&player, &pending, &unread, Some(DeviceClass::Parent), None);
    assert_eq!(told, Err(GateFault::Unread(device("bmc"))));
}

#[test]
fn an_off_goes_out_until_its_look_serves_no_more() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let opened = player.off_intent(&["bmc"]);
    let Some(Opened::Off(order)) = opened.first() else { panic!("{opened:?} is no off") };
    let until = player.clock.boot();
    assert_eq!(off_serves(order, until, until), Ok(()));
    assert_eq!(off_serves(order, until, until + ms(1)), Err(GateFault::OldLook(device("bmc"))));
}
