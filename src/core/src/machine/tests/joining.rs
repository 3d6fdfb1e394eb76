//! Other callers of an open fence: their holds, their keys.

use crate::event::{BoundKey, Event, Holder, JoinRequest, Overrides, Person};
use crate::ids::NodeId;
use crate::machine::Refused;
use crate::outcome::Reason;
use crate::parent::hold_of;
use crate::record::{NodeRecord, SetAside, Then};
use crate::support::{Player, device, fence_id, holder, host, person, request, s};

fn join(player: &mut Player, name: &str, then: Then) -> Result<(), Refused> {
    player.try_apply(crate::support::join(holder(name, then), None)).map(drop)
}

#[test]
fn a_caller_who_joins_places_a_hold_of_its_own() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    join(&mut player, "scheduler", Then::StayOff).unwrap();
    player.confirm();
    player.complete("detach");
    player.close_all();
    player.unfence().unwrap();
    assert_eq!(player.phase(), "released", "the scheduler still holds it");
    let refused = player.unfence().unwrap_err();
    assert_eq!(refused.to_string(), "\"ops\" holds nothing here; holds: scheduler");
}

/// Each caller's deadline is its own: the opener's binds nobody who has longer, and a shorter one ends nobody's fence.
#[test]
fn a_fence_has_as_long_as_the_caller_who_has_longest() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let first = player.open_fence().deadline;
    let joins_as = |player: &mut Player, by_person: bool, seconds: u64| {
        let holder = Holder { by_person, ..holder("b", Then::StayOff) };
        let request = JoinRequest { holder, key: None, deadline: Some(s(seconds)) };
        player.apply(Event::Join(Box::new(request)));
        player.open_fence().deadline
    };
    let joins = |player: &mut Player, seconds: u64| joins_as(player, false, seconds);
    player.clock.advance(s(100));
    assert_eq!(joins(&mut player, 30), first, "it is told by its own clock");
    assert_eq!(joins(&mut player, first.as_secs() - 50), first + s(50), "it counts from when it joined");
    let moment = |player: &Player| player.open_fence().moments.last().map(|moment| moment.what.clone());
    assert_eq!(
        moment(&player),
        Some(format!("its deadline is {}s now, as b@example asked", first.as_secs() + 50))
    );
    player.give_up(Reason::LevelsSpent);
    player.clock.advance(s(10_000));
    assert_eq!(
        joins(&mut player, 5_000),
        first + s(50),
        "a program renews no time that a person decides about"
    );
    assert_eq!(joins_as(&mut player, true, first.as_secs()), first + s(50), "a retry begins its time anew");
    assert_eq!(joins_as(&mut player, true, 5_000), s(5_000));
}

#[test]
fn joining_is_possible_until_the_unfence_and_in_every_phase_between() {
    let mut player = Player::new();
    assert!(join(&mut player, "a", Then::StayOff).is_err());
    player.fence(request(1, &[&[host("bmc")]], &["detach"]));
    join(&mut player, "a", Then::StayOff).unwrap();
    player.confirm();
    join(&mut player, "b", Then::StayOff).unwrap();
    player.give_up(Reason::ReleaseDeadline);
    join(&mut player, "c", Then::StayOff).unwrap();
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    assert!(join(&mut player, "a", Then::StayOff).is_err());
}

#[test]
fn a_fence_that_an_unfence_ended_cannot_be_joined_but_a_new_one_wins() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.give_up(Reason::UnboundedEffect);
    assert!(join(&mut player, "a", Then::StayOff).is_err(), "nobody switches it off any more");
    assert!(player.record().holds.is_empty());
    player.fence(request(2, &[&[host("bmc")]], &[]));
    assert_eq!((player.phase(), player.open_fence().id), ("fencing", fence_id(2)));
}

#[test]
fn a_hold_is_dropped_by_itself_only_if_everybody_under_that_name_wanted_it() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    join(&mut player, "a", Then::PowerOn).unwrap();
    join(&mut player, "b", Then::PowerOn).unwrap();
    join(&mut player, "b", Then::StayOff).unwrap();
    join(&mut player, "ops", Then::PowerOn).unwrap();
    player.confirm();
    player.complete("detach");
    let holds: Vec<_> = player.record().holds.keys().cloned().collect();
    assert_eq!(holds, ["b", "ops"], "only a's was meant to last until the release");
}

#[test]
fn with_every_hold_gone_the_release_brings_it_back() {
    let mut player = Player::new();
    let first = holder("a", Then::PowerOn);
    player.fence(crate::event::FenceRequest { holder: first, ..request(1, &[&[host("bmc")]], &["detach"]) });
    join(&mut player, "b", Then::PowerOn).unwrap();
    player.confirm();
    player.complete("detach");
    assert_eq!(player.phase(), "unfencing");
}

#[test]
fn who_joins_when_everything_is_released_and_wants_it_back_holds_nothing() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.confirm();
    join(&mut player, "scheduler", Then::PowerOn).unwrap();
    let holds: Vec<_> = player.record().holds.keys().cloned().collect();
    assert_eq!((player.phase(), holds), ("released", vec!["ops".to_owned()]));
}

#[test]
fn keys_are_bound_in_the_record_s_own_write() {
    let mut player = Player::new();
    let key = |name: &str| Some(BoundKey { key: name.to_owned(), digest: "d".to_owned() });
    let fence = crate::event::FenceRequest { key: key("k1"), ..request(1, &[&[host("bmc")]], &[]) };
    player.fence(fence);
    player.apply(crate::support::join(holder("b", Then::StayOff), key("k2")));
    let keys = player.store.last_write().keys;
    let bound: Vec<_> = keys.iter().map(|(key, entry)| (key.as_str(), entry.fence)).collect();
    assert_eq!(bound, [("k2", Some(fence_id(1)))]);
    let retry = Box::new(Event::Retry(person()));
    let keyed = Event::Keyed { event: retry, key: key("k3").unwrap(), by: "ops".to_owned() };
    assert!(player.step(keyed).is_err(), "a refused request binds nothing");
}

#[test]
fn the_key_of_what_is_so_already_is_bound_of_no_fence_and_nothing_changes() {
    let mut player = Player::new();
    let keyed = |key: &str| Event::Keyed {
        event: Box::new(Event::SoAlready),
        key: BoundKey { key: key.to_owned(), digest: "d".to_owned() },
        by: "ops".to_owned(),
    };
    let before = player.record().clone();
    player.apply(keyed("k1"));
    assert_eq!(player.record().idle_keys.get("k1").map(|entry| entry.fence), Some(None));
    assert_eq!(NodeRecord { idle_keys: before.idle_keys.clone(), ..player.record().clone() }, before);
    player.fence(request(1, &[&[host("bmc")]], &[]));
    assert!(player.step(keyed("k2")).is_err(), "a node that is fenced is not unfenced already");
    player.confirm();
    assert!(player.step(keyed("k2")).is_err());
    player.unfence().unwrap();
    player.apply(keyed("k2"));
    let bound = player.record().idle_keys.get("k2").expect("bound").fence;
    assert_eq!((player.phase(), bound), ("unfencing", Some(fence_id(1))));
}

/// S20: a caller repeats what changes nothing as often as it likes, each time with another key, and fills no store.
#[test]
fn the_keys_of_what_changes_nothing_are_bounded_by_holder_and_node() {
    let mut player = Player::new();
    so_already(&mut player, "db", "db", 0);
    for number in 0..100 {
        so_already(&mut player, "mallory", "mallory", number);
    }
    assert_eq!(player.record().idle_keys.len(), 9);
    assert!(is_bound(&player, "db", 0), "another holder's stays");
    let bound: Vec<usize> = (0..100).filter(|number| is_bound(&player, "mallory", *number)).collect();
    assert_eq!(bound, (92..100).collect::<Vec<_>>(), "the oldest are given up");
    for number in 0..100 {
        so_already(&mut player, &format!("c{number}"), &format!("h{number}"), 0);
    }
    assert_eq!(player.record().idle_keys.len(), 64);
    assert!(is_bound(&player, "h99", 0));
}

/// S20: nor by many names, or many addresses of this machine, does a caller drive out another one's.
#[test]
fn a_caller_who_acts_for_many_holders_drives_out_its_own_keys() {
    for by in ["mallory", "tcp:127.0.0."] {
        let mut player = Player::new();
        let caller = |number: usize| match by.strip_suffix('.') {
            Some(_) => format!("{by}{number}"),
            None => by.to_owned(),
        };
        so_already(&mut player, "zoe", "zoe", 0);
        for number in 1..=200 {
            so_already(&mut player, &caller(number), &format!("a-{number}"), 0);
        }
        assert!(is_bound(&player, "zoe", 0) && is_bound(&player, "a-200", 0));
        assert_eq!(player.record().idle_keys.len(), 17);
    }
    // Several together fill the node: each gives up of its own, and whoever has fewer keeps them.
    let mut player = Player::new();
    for number in 0..8 {
        so_already(&mut player, "zoe", "zoe", number);
    }
    for number in 0..100 {
        for caller in 0..5 {
            so_already(&mut player, &format!("m{caller}"), &format!("m{caller}-{number}"), 0);
        }
    }
    assert_eq!(player.record().idle_keys.len(), 64);
    assert!((0..8).all(|number| is_bound(&player, "zoe", number)));
    so_already(&mut player, "new", "new", 0);
    so_already(&mut player, "m0", "m0-last", 0);
    assert!(is_bound(&player, "new", 0) && (0..8).all(|number| is_bound(&player, "zoe", number)));
}

/// `by` asks for what is so already, for `holder`.
fn so_already(player: &mut Player, by: &str, holder: &str, number: usize) {
    let key = BoundKey::of(holder, &format!("k{number}"), "d".to_owned());
    player.apply(Event::Keyed { event: Box::new(Event::SoAlready), key, by: by.to_owned() });
    assert!(player.store.last_write().keys.is_empty(), "none is kept as long as the history");
}

fn is_bound(player: &Player, holder: &str, number: usize) -> bool {
    player.record().idle_keys.get(&format!("{holder}\nk{number}")).is_some()
}

/// A hold that is placed again as it stands adds nothing; another word for it is stored, and its key is one of few.
#[test]
fn a_hold_that_is_renewed_fills_neither_the_history_nor_the_store() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let hold = |reason: &str| {
        let person = Person { name: "ada".to_owned(), reason: reason.to_owned() };
        Event::Hold { holder: "ops 2".to_owned(), person }
    };
    player.apply(hold("why"));
    let before = player.record().clone();
    assert!(player.step(hold("why")).unwrap().changes_nothing(&before));
    for number in 0..20 {
        let key = BoundKey::of("ops 2", &format!("k{number}"), "d".to_owned());
        let reason = if number == 10 { "another" } else { "why" };
        player.apply(Event::Keyed { event: Box::new(hold(reason)), key, by: "ada".to_owned() });
        assert!(player.store.last_write().keys.is_empty());
    }
    assert_eq!(player.record().idle_keys.len(), 8);
    let words = player.open_fence().moments.iter().map(|moment| moment.what.as_str());
    let told: Vec<&str> = words.filter(|words| words.starts_with("held for ops 2")).collect();
    assert_eq!(
        told,
        ["held for ops 2 by ada: why", "held for ops 2 by ada: another", "held for ops 2 by ada: why"]
    );
}

#[test]
fn what_is_asked_with_a_key_of_a_node_that_was_never_fenced_is_done() {
    let mut player = Player::new();
    let identity = crate::device::Identity { uuid: None, serial: Some("s2".to_owned()) };
    let accepted = Event::Accepted { device: device("bmc"), identity: identity.clone(), person: person() };
    let key = BoundKey { key: "k1".to_owned(), digest: "d".to_owned() };
    player.apply(Event::Keyed { event: Box::new(accepted), key, by: "ada".to_owned() });
    assert_eq!(*player.record().learned[&device("bmc")], identity);
    assert_eq!(player.store.last_write().keys[0].1.fence, None);
}

/// S14, S17: limits are set aside by name for a fence that they bar, also once it is open.
#[test]
fn limits_are_set_aside_for_a_fence_that_has_sent_nothing() {
    let who = |reason: &str| SetAside { by: "ada".to_owned(), reason: reason.to_owned() };
    let aside = |budget: Option<&str>, quorum: Option<&str>| {
        let told = |reason: &str| (who(reason), "its rack has its one".to_owned());
        Event::SetAside(Overrides { budget: budget.map(told), quorum: quorum.map(told) })
    };
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.apply(aside(Some("it burns"), None));
    player.give_up(Reason::LevelsSpent);
    player.apply(aside(None, Some("its member is gone")));
    player.apply(Event::Retry(person()));
    let fence = player.open_fence();
    assert_eq!(fence.budget_override, Some(who("it burns")), "the other one takes none away");
    assert_eq!(fence.quorum_override, Some(who("its member is gone")));
    let told = "the budget was set aside by ada: it burns (its rack has its one)";
    assert!(fence.moments.iter().any(|moment| moment.what == told), "{:?}", fence.moments);
    player.off_intent(&["bmc"]);
    assert_eq!(player.try_apply(aside(Some("again"), None)).unwrap_err(), Refused::OffSent);
}

fn hold(player: &mut Player, name: &str, by: &str) -> Result<(), Refused> {
    let person = Person { name: by.to_owned(), reason: "why".to_owned() };
    player.try_apply(Event::Hold { holder: name.to_owned(), person }).map(drop)
}

fn joined_by(player: &mut Player, name: &str, by: &str) -> Result<(), Refused> {
    let holder = Holder { by: by.to_owned(), ..holder(name, Then::StayOff) };
    player.try_apply(crate::support::join(holder, None)).map(drop)
}

#[test]
fn a_caller_with_many_holds_takes_no_other_s_place() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    for number in 0..8 {
        hold(&mut player, &format!("h{number}"), "mallory").unwrap();
        joined_by(&mut player, &format!("j{number}"), "mallory").unwrap();
    }
    let refused = joined_by(&mut player, "one more", "mallory").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "\"mallory\" holds the node under 16 names, and no more may be: drop one of h0, h1, h2, h3, h4, h5, h6, h7, j0, j1, \
         j2, j3, j4, j5, j6, j7"
    );
    assert_eq!(hold(&mut player, "one more", "mallory"), Err(refused));
    // Nothing is added by a name that is there already.
    joined_by(&mut player, "h3", "mallory").unwrap();
    hold(&mut player, "j3", "mallory").unwrap();
    joined_by(&mut player, "scheduler", "scheduler").unwrap();
}

#[test]
fn one_process_has_no_more_holds_by_many_addresses() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    for number in 1..=16 {
        hold(&mut player, &format!("h{number}"), &format!("tcp:127.0.0.{number}")).unwrap();
    }
    let refused = hold(&mut player, "one more", "tcp:::1").unwrap_err();
    assert!(matches!(refused, Refused::TooManyHolds { by: Some(_), .. }), "{refused}");
}

#[test]
fn a_full_node_takes_the_hold_of_a_child_and_a_breach() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    for number in 0..63 {
        hold(&mut player, &format!("h{number}"), &format!("c{}", number / 8)).unwrap();
    }
    assert!(matches!(hold(&mut player, "one more", "new"), Err(Refused::TooManyHolds { by: None, .. })));
    assert!(joined_by(&mut player, "one more", "new").is_err());
    for number in 0..100 {
        let child = hold_of(&NodeId::new(&format!("vm{number}")).unwrap());
        joined_by(&mut player, &child, "new").unwrap();
    }
    player.confirm();
    player.apply(Event::Breach { id: fence_id(2), device: device("bmc") });
    assert_eq!((player.phase(), player.record().holds.len()), ("fencing", 164));
}

/// S22: by the rights of those who asked the machine on which a node runs may be fenced; how they are shown gives no right, and takes no room.
#[test]
fn who_sits_behind_one_user_takes_no_place_of_others_who_ask() {
    use crate::roles::{Person, Proof};
    let root = |shown: Option<String>| Person {
        name: "uid:0".to_owned(),
        proof: Proof::Kernel { uid: 0, gids: [0].into(), shown: shown.map(Into::into) },
    };
    let asked =
        |asker: Person| Holder { by: asker.name.clone(), asker: Some(asker), ..holder("ops", Then::StayOff) };
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    for number in 0..20 {
        let asker = root(Some(format!("person{number} as root")));
        player.try_apply(crate::support::join(asked(asker), None)).expect("it joins");
    }
    let other = Person { name: "db".to_owned(), proof: Proof::Certificate };
    player.try_apply(crate::support::join(asked(other.clone()), None)).expect("it joins");
    let hold = &player.record().holds["ops"];
    assert!(hold.askers.contains(&other), "{:?}", hold.askers);
    assert_eq!(hold.askers.iter().filter(|asker| asker.name == "uid:0").count(), 1);
    let moments = player.open_fence().moments.iter().map(|moment| moment.what.as_str());
    assert!(moments.clone().any(|what| what.starts_with("joined by person7 as root for ops: ")));
}

#[test]
fn a_hold_is_shown_as_whoever_placed_it_and_as_nobody_who_came_later() {
    use crate::roles::{Person, Proof};
    let asked = |shown: &str| Holder {
        by: "uid:0".to_owned(),
        asker: Some(Person {
            name: "uid:0".to_owned(),
            proof: Proof::Kernel { uid: 0, gids: [0].into(), shown: Some(shown.into()) },
        }),
        ..holder("rack", Then::StayOff)
    };
    let join = |player: &mut Player, shown: &str| {
        player.try_apply(crate::support::join(asked(shown), None)).expect("it joins");
    };
    let shown = |player: &Player| player.record().holds["rack"].shown().map(str::to_owned);
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    join(&mut player, "alice as root");
    join(&mut player, "bob as root");
    assert_eq!(shown(&player).as_deref(), Some("alice as root"));
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    hold(&mut player, "rack", "uid:0").expect("it holds");
    join(&mut player, "bob as root");
    assert_eq!(shown(&player), None, "somebody else placed it");
}
