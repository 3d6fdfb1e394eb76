//! S19: a receipt stands in the ledger before it is signed, bars the on until its end, and is void once its fence is.

use std::time::Duration;

use crate::event::Event;
use crate::ground::{AttestedOff, LookFault, ReleaseGround};
use crate::ids::{EffectId, ReceiptId};
use crate::ledger::EffectKind;
use crate::machine::Refused;
use crate::order::Opened;
use crate::outcome::Reason;
use crate::power::Power::{Off, On, Unknown};
use crate::receipt::{MOST, MOST_EACH, NotSeen, ReceiptOrder, ReceiptRequest, SeenOff};
use crate::record::{Ended, Issued, Standing};
use crate::support::{Player, fence_id, host, person, s};
use crate::time::{Clock, WallTime};

fn receipt_id(number: u8) -> ReceiptId {
    ReceiptId::mint(WallTime::from_millis(u64::from(number)), [number; 10])
}

/// Proven off, and the release is still to be made.
fn fenced() -> (Player, ReleaseGround) {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.off_intent(&["bmc"]);
    let proof = player.confirm();
    player.close_all();
    player.clock.advance(s(1_000));
    (player, ReleaseGround::Confirmed(proof))
}

fn released() -> (Player, ReleaseGround) {
    let (mut player, ground) = fenced();
    player.complete("detach");
    (player, ground)
}

fn seen<'g>(player: &Player, ground: &'g ReleaseGround) -> SeenOff<'g> {
    let looks = [player.look("bmc", Some(Off))];
    SeenOff::of(ground, &looks, player.clock.boot(), player.clock.wall()).unwrap()
}

fn request<'g>(player: &Player, ground: &'g ReleaseGround, number: u8, by: &str) -> ReceiptRequest<'g> {
    ReceiptRequest {
        id: receipt_id(number),
        seen: seen(player, ground),
        by: by.to_owned(),
        audience: "storage".to_owned(),
        system_uuid: String::new(),
        renews: None,
        life: s(60),
        margin: s(5),
    }
}

fn get(player: &mut Player, ground: &ReleaseGround, number: u8, by: &str) -> Result<ReceiptOrder, Refused> {
    ask(player, request(player, ground, number, by))
}

fn ask(player: &mut Player, request: ReceiptRequest<'_>) -> Result<ReceiptOrder, Refused> {
    let mut opened = player.try_apply(Event::ReceiptIntent(Box::new(request)))?;
    match opened.pop() {
        Some(Opened::Receipt(order)) => Ok(order),
        other => panic!("an intent opens an order to sign: {other:?}"),
    }
}

fn renew(
    player: &mut Player,
    ground: &ReleaseGround,
    number: u8,
    old: u8,
    by: &str,
    life: Duration,
) -> Result<ReceiptOrder, Refused> {
    let renews = Some(receipt_id(old));
    ask(player, ReceiptRequest { renews, life, ..request(player, ground, number, by) })
}

fn hand_back(player: &mut Player, number: u8, by: &str) -> Result<(), Refused> {
    player.try_apply(Event::ReceiptReturned { id: receipt_id(number), by: by.to_owned() }).map(drop)
}

fn issued(player: &Player, number: u8) -> &Issued {
    player.record().receipts.iter().find(|issued| issued.id == receipt_id(number)).expect("it is kept")
}

fn standing(player: &Player, number: u8) -> Standing {
    issued(player, number).standing(player.record())
}

fn expire(player: &mut Player) {
    player.clock.advance(s(65));
    player.close_all();
}

#[test]
fn it_stands_in_the_ledger_with_its_life_and_the_margin_before_it_can_be_signed() {
    for (mut player, ground) in [fenced(), released()] {
        let wall = player.clock.wall();
        let order = get(&mut player, &ground, 1, "db").unwrap();
        let entry = player.record().ledger.get(order.effect()).unwrap();
        assert_eq!(entry.kind, EffectKind::Receipt(receipt_id(1).to_string()));
        assert_eq!((entry.life, entry.generation), (Some(s(65)), player.record().generation));
        let said = order.statement();
        assert_eq!((said.id, said.fence, said.generation.0), (receipt_id(1), fence_id(1), 1));
        assert_eq!(said.incarnation, player.leadership.guard().incarnation);
        assert_eq!((said.off_at, said.issued_at, said.expires_at), (wall, wall, wall.after(s(60))));
        assert_eq!((said.node.as_str(), said.audience.as_str()), ("n1", "storage"));
        assert_eq!(standing(&player, 1), Standing::Stands);
        assert_eq!(issued(&player, 1).life(), s(60));
    }
}

#[test]
fn it_says_whether_the_devices_of_its_fence_are_simulated() {
    for simulated in [false, true] {
        let mut asked = crate::support::request(1, &[&[host("bmc")]], &["detach"]);
        asked.topology = asked.topology.of_simulated(simulated);
        let mut player = Player::new();
        player.fence(asked);
        player.off_intent(&["bmc"]);
        let proof = player.confirm();
        player.close_all();
        player.clock.advance(s(1_000));
        let order = get(&mut player, &ReleaseGround::Confirmed(proof), 1, "db").unwrap();
        assert_eq!(order.statement().simulated, simulated);
        assert_eq!(issued(&player, 1).simulated, simulated);
    }
}

#[test]
fn off_is_said_to_be_seen_when_the_device_was_asked_and_not_when_it_was_signed() {
    let (mut player, ground) = fenced();
    let looks = [player.look("bmc", Some(Off))];
    let asked = player.clock.wall();
    player.clock.advance(s(2));
    let seen = SeenOff::of(&ground, &looks, player.clock.boot(), player.clock.wall()).unwrap();
    let request = ReceiptRequest { seen, ..request(&player, &ground, 1, "db") };
    let order = ask(&mut player, request).unwrap();
    assert_eq!(order.statement().off_at, asked);
    assert_eq!(order.statement().issued_at, asked.after(s(2)));
}

#[test]
fn only_an_off_seen_just_now_under_a_proof_carries_one() {
    let (player, ground) = fenced();
    let of = |looks: &[crate::ground::Look]| {
        SeenOff::of(&ground, looks, player.clock.boot(), player.clock.wall()).map(|_| ()).unwrap_err()
    };
    let bmc = crate::support::device("bmc");
    assert_eq!(of(&[]), NotSeen::Look(LookFault::Stale(bmc.clone())));
    assert_eq!(of(&[player.look("bmc", None)]), NotSeen::Look(LookFault::NotOff(bmc.clone())));
    assert_eq!(of(&[player.look("bmc", Some(Unknown))]), NotSeen::Look(LookFault::NotOff(bmc.clone())));
    assert_eq!(of(&[player.look("bmc", Some(On))]), NotSeen::Look(LookFault::On(bmc.clone())));
    let old = [player.look("bmc", Some(Off))];
    player.clock.advance(s(3));
    assert_eq!(of(&old), NotSeen::Look(LookFault::Stale(bmc)));

    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.attest(&[player.look("bmc", None)]).unwrap();
    let word = ReleaseGround::Attested(AttestedOff::of(player.record(), player.leadership.term()).unwrap());
    let looks = [player.look("bmc", Some(Off))];
    let attested = SeenOff::of(&word, &looks, player.clock.boot(), player.clock.wall()).map(|_| ());
    assert_eq!(attested, Err(NotSeen::Attested));
}

#[test]
fn a_proof_of_another_leadership_or_round_carries_none() {
    let (mut player, ground) = fenced();
    player.succeeds();
    assert!(matches!(get(&mut player, &ground, 1, "db"), Err(Refused::ForeignProof(_))));

    let (mut player, old) = fenced();
    player.apply(Event::Unproven { why: "for the test".to_owned(), seen: true });
    assert!(matches!(get(&mut player, &old, 1, "db"), Err(Refused::Phase { .. })));
    let new = ReleaseGround::Confirmed(player.confirm());
    assert!(matches!(get(&mut player, &old, 1, "db"), Err(Refused::ForeignProof(_))));
    get(&mut player, &new, 1, "db").unwrap();
}

#[test]
fn no_on_before_the_last_one_has_expired() {
    let (mut player, ground) = released();
    get(&mut player, &ground, 1, "db").unwrap();
    player.clock.advance(s(30));
    get(&mut player, &ground, 2, "db").unwrap();
    player.unfence().unwrap();
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::OpenEffects(open)) if open.len() == 2));
    let first = player.record().ledger.open()[0].id;
    player.apply(Event::Closed { effects: vec![first], why: "its longest life has passed" });
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::OpenEffects(open)) if open.len() == 1));
    // Another leadership finds the same ledger.
    player.succeeds();
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::OpenEffects(_))));
    expire(&mut player);
    player.on_intent(&["bmc"]).unwrap();
    assert_eq!(player.record().receipts, [], "expired ones leave the record");
}

#[test]
fn handed_back_it_bars_nothing_any_more_and_twice_is_no_error() {
    let (mut player, ground) = released();
    get(&mut player, &ground, 1, "db").unwrap();
    player.unfence().unwrap();
    hand_back(&mut player, 1, "db").unwrap();
    assert_eq!(standing(&player, 1), Standing::Ended(Ended::Returned));
    hand_back(&mut player, 1, "db").unwrap();
    player.on_intent(&["bmc"]).unwrap();
    player.close_all();
    player.back().unwrap();
    assert_eq!(player.record().receipts, []);
}

#[test]
fn only_its_holder_hands_it_back_or_renews_it() {
    let (mut player, ground) = released();
    get(&mut player, &ground, 1, "db").unwrap();
    let not_theirs = Refused::NotTheirs { receipt: receipt_id(1).to_string(), of: "db".to_owned() };
    assert_eq!(hand_back(&mut player, 1, "eve"), Err(not_theirs.clone()));
    assert_eq!(renew(&mut player, &ground, 2, 1, "eve", s(60)).map(drop), Err(not_theirs));
    assert!(
        matches!(hand_back(&mut player, 7, "db"), Err(Refused::NoSuch { known, .. }) if known.len() == 1)
    );
    assert_eq!(standing(&player, 1), Standing::Stands);
}

#[test]
fn renewed_the_new_one_takes_its_place_in_one_write() {
    let (mut player, ground) = released();
    get(&mut player, &ground, 1, "db").unwrap();
    player.clock.advance(s(20));
    renew(&mut player, &ground, 2, 1, "db", s(60)).unwrap();
    assert_eq!(player.open_effects(), [format!("receipt {}", receipt_id(2))]);
    assert_eq!(standing(&player, 1), Standing::Ended(Ended::Renewed(receipt_id(2))));
    let again = renew(&mut player, &ground, 3, 1, "db", s(60)).map(drop);
    assert!(matches!(again, Err(Refused::NoSuch { known, .. }) if known == [receipt_id(2).to_string()]));
}

#[test]
fn a_shorter_renewal_does_not_shorten_what_the_old_one_said() {
    let (mut player, ground) = released();
    get(&mut player, &ground, 1, "db").unwrap();
    renew(&mut player, &ground, 2, 1, "db", s(10)).unwrap();
    assert_eq!(player.open_effects().len(), 2, "whoever reads the old one offline counts on its time");
}

#[test]
fn a_breach_makes_it_void_and_so_do_the_end_of_the_fence_and_of_the_proof() {
    let is_void = |player: &Player| matches!(standing(player, 1), Standing::Void(_));
    let (mut player, ground) = released();
    get(&mut player, &ground, 1, "db").unwrap();
    player.breach(2, "bmc").unwrap();
    assert!(is_void(&player));
    assert_eq!(player.open_effects().len(), 1, "void or not, no on is sent before its time");
    player.confirm();
    assert!(is_void(&player), "what is proven anew is another fence");

    let (mut player, ground) = released();
    get(&mut player, &ground, 1, "db").unwrap();
    player.unfence().unwrap();
    assert!(is_void(&player));

    let (mut player, ground) = fenced();
    get(&mut player, &ground, 1, "db").unwrap();
    player.apply(Event::Unproven { why: "for the test".to_owned(), seen: true });
    assert!(is_void(&player));
    player.confirm();
    assert!(is_void(&player), "the proof is another one");

    let (mut player, ground) = fenced();
    get(&mut player, &ground, 1, "db").unwrap();
    player.give_up(Reason::ReleaseDeadline);
    assert_eq!(standing(&player, 1), Standing::Stands, "it is kept off, and the proof stands");
    player.attest(&[player.look("bmc", None)]).unwrap();
    assert!(is_void(&player), "a person's word has taken the place of the proof");
}

#[test]
fn a_stand_down_waits_for_it_too() {
    let (mut player, ground) = fenced();
    get(&mut player, &ground, 1, "db").unwrap();
    player.give_up(Reason::ReleaseDeadline);
    player.apply(Event::StandDown(person()));
    assert!(matches!(player.back(), Err(Refused::OpenEffects(_))));
    expire(&mut player);
    player.back().unwrap();
}

#[test]
fn so_many_and_no_more_and_none_takes_all() {
    let (mut player, ground) = released();
    let mut number = 0;
    for caller in 0..MOST / MOST_EACH {
        for _ in 0..MOST_EACH {
            number += 1;
            get(&mut player, &ground, number, &format!("c{caller}")).unwrap();
        }
        let more = get(&mut player, &ground, 200, &format!("c{caller}")).map(drop);
        assert_eq!(more, Err(Refused::TooManyReceipts(MOST_EACH)));
    }
    assert_eq!(get(&mut player, &ground, 200, "late").map(drop), Err(Refused::TooManyReceipts(MOST)));
    // A renewal takes the place of the old one.
    renew(&mut player, &ground, 201, 1, "c0", s(60)).unwrap();
    expire(&mut player);
    get(&mut player, &ground, 202, "late").unwrap();
    assert_eq!(player.record().receipts.len(), 1);
}

#[test]
fn one_process_has_no_more_by_many_addresses() {
    let (mut player, ground) = released();
    for number in 1..=MOST_EACH {
        let number = u8::try_from(number).unwrap();
        get(&mut player, &ground, number, &format!("tcp:127.0.0.{number}")).unwrap();
    }
    let more = get(&mut player, &ground, 200, "tcp:127.0.0.200").map(drop);
    assert_eq!(more, Err(Refused::TooManyReceipts(MOST_EACH)));
    get(&mut player, &ground, 201, "db").unwrap();
}

#[test]
fn what_was_handed_back_is_kept_within_bounds() {
    let (mut player, ground) = released();
    for number in 0..100 {
        get(&mut player, &ground, number, "db").unwrap();
        hand_back(&mut player, number, "db").unwrap();
    }
    assert_eq!(player.record().receipts.len(), MOST);
    assert_eq!(standing(&player, 99), Standing::Ended(Ended::Returned));
    assert_eq!(player.open_effects(), [] as [&str; 0]);
}

#[test]
fn the_history_is_not_filled_with_them() {
    let (mut player, ground) = released();
    let before = player.open_fence().moments.len();
    get(&mut player, &ground, 1, "db").unwrap();
    expire(&mut player);
    assert_eq!(player.open_fence().moments.len(), before);
    assert_eq!(player.record().ledger.get(EffectId(1)), None);
}

#[test]
fn no_node_that_is_not_proven_off_has_one() {
    let (mut player, ground) = fenced();
    player.give_up(Reason::ReleaseDeadline);
    assert!(matches!(get(&mut player, &ground, 1, "db"), Err(Refused::Phase { .. })));
    let (mut player, ground) = released();
    player.unfence().unwrap();
    assert!(matches!(get(&mut player, &ground, 1, "db"), Err(Refused::Phase { .. })));
}
