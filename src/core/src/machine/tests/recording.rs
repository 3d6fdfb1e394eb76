//! The record itself: numbers that only grow, moments, identities, and that it comes back from JSON as it was.

use crate::device::Identity;
use crate::event::{Event, Person};
use crate::machine::Refused;
use crate::outcome::Reason;
use crate::record::{Fence, NodeRecord, ReleaseStage};
use crate::support::{Player, device, host, person, release};

#[test]
fn an_effect_s_number_is_never_used_again() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        player.off_intent(&["bmc"]);
        seen.push(player.record().ledger.open()[0].id.0);
        player.close_all();
    }
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn closing_twice_or_what_is_not_open_changes_nothing() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let moments = player.open_fence().moments.len();
    player.apply(Event::Closed { effects: vec![crate::ids::EffectId(9)], why: "for the test" });
    assert_eq!(player.open_fence().moments.len(), moments);
}

#[test]
fn the_moments_are_bounded_and_keep_the_beginning_and_the_end() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    for _ in 0..300 {
        player.off_intent(&["bmc"]);
    }
    player.apply(Event::Lost { device: device("bmc") });
    let moments = &player.open_fence().moments;
    assert_eq!(moments.len(), Fence::MOMENTS);
    assert!(moments[0].what.starts_with("fence opened by ops@example for ops"), "{:?}", moments[0]);
    assert!(moments[Fence::MOMENTS - 1].what.contains("session lost"));
}

#[test]
fn who_opened_a_fence_is_told_for_people_also_without_its_hold() {
    let mut fence = Player::fencing(&[&[host("bmc")]], &[]).open_fence().clone();
    assert_eq!(crate::machine::opened_by(&fence), None, "the name that counts: {:?}", fence.moments[0]);
    fence.moments[0].what =
        "fence opened by alice as root for ops: it is dead for good: for ops: x".to_owned();
    assert_eq!(crate::machine::opened_by(&fence), Some("alice as root"));
    fence.moments[0].what = "found on".to_owned();
    assert_eq!(crate::machine::opened_by(&fence), None);
}

/// etcd takes 1.5 MiB in a request, and a fence that ends goes into one with its record (S16).
#[test]
fn a_record_stays_small_whatever_is_said_of_its_releases_and_however_often() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let long = || "ä".repeat(40_000);
    for _ in 0..150 {
        player.confirm();
        let known = Some(player.attempt("detach"));
        let (release, stage) = (release("detach"), ReleaseStage::Pending);
        player.apply(Event::ReleaseProgress { release, stage, detail: long(), known });
        player.apply(Event::GiveUp { reason: Reason::ReleaseDeadline, detail: long() });
        player.apply(Event::Retry(person()));
    }
    let size = serde_json::to_vec(player.record()).unwrap().len();
    assert!(size < 300_000, "{size}");
    let detail = &player.open_fence().releases[0].detail;
    assert!(detail.starts_with("ää") && detail.ends_with("bytes more"), "{detail}");
}

/// In JSON one control character is six bytes.
#[test]
fn a_record_stays_small_whatever_its_callers_write() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let person = |number: usize| Person { name: format!("c{}", number / 8), reason: "\u{1}".repeat(1_024) };
    for number in 0..64 {
        let _ = player.try_apply(Event::Hold { holder: format!("h{number}"), person: person(number) });
    }
    for number in 0..200 {
        player.apply(Event::GiveUp { reason: Reason::Deadline, detail: person(number).reason });
        player.apply(Event::Retry(person(number)));
    }
    let size = serde_json::to_vec(player.record()).unwrap().len();
    assert!(size < 400_000, "{size}");
}

#[test]
fn an_identity_is_learned_in_normal_and_never_in_a_fence() {
    let mut player = Player::new();
    let identity = Identity { uuid: None, serial: Some("CN7".to_owned()) };
    let learned = || Event::Learned { device: device("bmc"), identity: identity.clone() };
    player.apply(learned());
    assert_eq!(*player.record().learned[&device("bmc")], identity);
    player.fence(crate::support::request(1, &[&[host("bmc")]], &[]));
    assert!(matches!(player.try_apply(learned()), Err(Refused::Phase { .. })));
    assert_eq!(*player.record().learned[&device("bmc")], identity, "and it outlives the fence's opening");
}

#[test]
fn a_record_comes_back_from_json_as_it_was() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.off_intent(&["bmc"]);
    player.confirm();
    player.attempt("detach");
    let text = serde_json::to_string(player.record()).unwrap();
    let back: NodeRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(back, *player.record());
}

#[test]
fn a_refusal_says_what_would_be_right() {
    let mut player = Player::new();
    let refused = player.try_apply(Event::Retry(person())).unwrap_err();
    assert_eq!(refused.to_string(), "a retry is not possible in phase normal: nothing waits for a person");
}

/// S16: the reason is told to all who come later.
#[test]
fn the_reason_why_a_person_is_asked_is_kept_whatever_is_added() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    // Not among those that are kept because they say how it began.
    for _ in 0..Fence::MOMENTS / 4 {
        player.off_intent(&["bmc"]);
    }
    player.give_up(Reason::LevelsSpent);
    for number in 0..2 * Fence::MOMENTS {
        let person = Person { reason: number.to_string(), ..person() };
        player.apply(Event::Hold { holder: "db".to_owned(), person });
    }
    let moments = &player.open_fence().moments;
    assert_eq!(moments.len(), Fence::MOMENTS);
    let asks = Reason::LevelsSpent.asks();
    assert_eq!(moments.iter().filter(|moment| moment.what.starts_with(&asks)).count(), 1);
}
