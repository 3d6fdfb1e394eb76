//! Receipts: signed only once they are stored, and no on is sent before the last of them has expired or was handed back.

use std::time::Duration;

use picket_core::ids::{FenceId, ReceiptId};
use picket_core::receipt::{MOST, MOST_EACH};
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{EngineError, ReceiptCall, Receipted, Verified};
use picket_receipt::{Body, PublicKeys};

use crate::lab::{Answer, Lab, NODE, lab, node, person, s};

fn call(by: &str) -> ReceiptCall {
    ReceiptCall { by: by.to_owned(), fence: None, renews: None, audience: "storage".to_owned() }
}

async fn get(lab: &Lab) -> Result<Receipted, EngineError> {
    lab.engine.receipt(&node(), call("db")).await
}

async fn verify(lab: &Lab, id: ReceiptId, fresh: bool) -> Verified {
    lab.engine.verify_receipt(&node(), id, fresh).await.expect("answered")
}

async fn holds(lab: &Lab, id: ReceiptId) -> bool {
    matches!(verify(lab, id, false).await, Verified::Holds { .. })
}

async fn back(lab: &Lab, id: ReceiptId) -> Result<(), EngineError> {
    lab.engine.return_receipt(&node(), id, "db".to_owned()).await
}

fn ons(lab: &Lab) -> u64 {
    lab.received("bmc").ons
}

/// Fenced and released, with the key listed.
async fn released(seed: u64) -> Lab {
    let mut lab = lab(seed).await;
    lab.fence().await;
    lab
}

/// How long it takes from now until an on is sent.
async fn until_on(lab: &Lab) -> Duration {
    let from = lab.clock.boot();
    while ons(lab) == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(lab.clock.boot().since(from) < s(600), "no on at all");
    }
    lab.clock.boot().since(from)
}

#[tokio::test(start_paused = true)]
async fn what_is_signed_names_the_fence_and_is_verified_by_the_listed_key() {
    let lab = released(60).await;
    let record = lab.record();
    let got = get(&lab).await.expect("proven off");
    assert!(got.lasts <= s(60) && got.lasts > s(59), "{:?}", got.lasts);
    let (keys, present) = lab.engine.receipt_keys().await.expect("listed");
    assert_eq!((keys.len(), keys[0].gateway.as_str()), (1, "gateway"));
    assert_eq!(present.as_deref(), Some(got.signed.key_id.as_str()));
    let body: Body = got.signed.verify(&PublicKeys::of(&keys).expect("good keys")).expect("ours");
    let fence = record.fence.expect("open");
    assert_eq!((body.node.as_str(), body.fence_id), (NODE, fence.id.to_string()));
    assert_eq!((body.generation, body.audience.as_str()), (record.generation.to_string(), "storage"));
    assert_eq!(body.id, got.id.to_string());
    assert!(!body.system_uuid.is_empty());
    let said = body_times(&got);
    assert!(said.0 <= said.1 && said.2 - said.1 == 60_000, "{said:?}");
}

/// Read Off, issued, expires: milliseconds on the wall clock.
fn body_times(got: &Receipted) -> (u64, u64, u64) {
    let said = Body::read(&got.signed.body).and_then(|body| body.statement()).expect("a body");
    (said.off_at.millis(), said.issued_at.millis(), said.expires_at.millis())
}

#[tokio::test(start_paused = true)]
async fn no_on_is_sent_before_the_last_one_has_expired() {
    let lab = released(61).await;
    get(&lab).await.expect("proven off");
    tokio::time::sleep(s(30)).await;
    let last = get(&lab).await.expect("proven off");
    lab.unfence().await.expect("let in");
    assert!(matches!(verify(&lab, last.id, false).await, Verified::Void(_)), "its fence has ended");
    let took = until_on(&lab).await;
    assert!(took >= s(64) && took < s(70), "the whole life of the last one and the margin: {took:?}");
    assert!(lab.clock.wall().millis() > body_times(&last).2, "it had expired before the on");
    lab.reach("normal", s(60)).await;
    assert_eq!(lab.record().receipts, []);
    assert_eq!(verify(&lab, last.id, false).await, Verified::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_death_and_a_new_leader_do_not_shorten_it() {
    let mut lab = released(62).await;
    let got = get(&lab).await.expect("proven off");
    tokio::time::sleep(s(20)).await;
    lab.crash().await;
    assert!(holds(&lab, got.id).await, "it is stored, and the fence goes on");
    let Verified::Holds { lasts, .. } = verify(&lab, got.id, false).await else { panic!("it holds") };
    assert!(lasts <= s(40), "no longer than its own words say: {lasts:?}");
    lab.unfence().await.expect("let in");
    let took = until_on(&lab).await;
    assert!(took >= s(64), "counted by the new leader from when it read the record: {took:?}");
    assert!(lab.clock.wall().millis() > body_times(&got).2);
}

#[tokio::test(start_paused = true)]
async fn killed_at_each_point_of_the_issue_no_on_is_sent_under_a_receipt_that_was_told() {
    for point in ["saving receipt_intent", "saved receipt_intent"] {
        let mut lab = released(63).await;
        let next = lab.points.count() + 1 + usize::from(point.starts_with("saved"));
        *lab.points.die_at.lock() = Some(next);
        let engine = lab.engine.clone();
        let asked = tokio::spawn(async move { engine.receipt(&node(), call("db")).await });
        assert!(lab.died(s(30)).await, "{:?}", lab.points.seen.lock().last());
        assert_eq!(lab.points.seen.lock().last().map(String::as_str), Some(point));
        lab.crash().await;
        asked.abort();
        let open = lab.record().ledger.open().iter().filter(|open| open.kind.is_receipt()).count();
        assert_eq!(open, usize::from(point.starts_with("saved")), "{point}");
        lab.unfence().await.expect("let in");
        let took = until_on(&lab).await;
        assert_eq!(took >= s(64), open == 1, "{point}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn handed_back_the_on_waits_for_it_no_more() {
    let lab = released(64).await;
    let got = get(&lab).await.expect("proven off");
    lab.unfence().await.expect("let in");
    tokio::time::sleep(s(5)).await;
    assert_eq!((lab.phase(), ons(&lab)), ("unfencing", 0));
    let wait = lab.view().live.wait.clone().expect("every wait is told");
    assert!(wait.what.contains(&format!("receipt {}", got.id)), "{wait:?}");
    let eve = lab.engine.return_receipt(&node(), got.id, "eve".to_owned()).await;
    assert!(eve.is_err(), "{eve:?}");
    back(&lab, got.id).await.expect("its own holder");
    back(&lab, got.id).await.expect("twice is no error");
    assert!(until_on(&lab).await < s(5));
    lab.reach("normal", s(60)).await;
}

#[tokio::test(start_paused = true)]
async fn renewed_again_and_again_it_holds_without_a_gap() {
    let lab = released(65).await;
    let mut got = get(&lab).await.expect("proven off");
    for _ in 0..20 {
        tokio::time::sleep(s(20)).await;
        let renews = Some(got.id);
        let next = lab.engine.receipt(&node(), ReceiptCall { renews, ..call("db") }).await.expect("renewed");
        assert_eq!(verify(&lab, got.id, false).await, Verified::Returned(Some(next.id)));
        got = next;
        assert_eq!(lab.record().ledger.open().iter().filter(|open| open.kind.is_receipt()).count(), 1);
        assert!(lab.record().receipts.len() <= 5, "what would have expired is forgotten");
    }
    assert!(holds(&lab, got.id).await);
    tokio::time::sleep(s(61)).await;
    assert_eq!(verify(&lab, got.id, false).await, Verified::Expired);
    tokio::time::sleep(s(30)).await;
    assert_eq!(lab.record().receipts.iter().filter(|issued| issued.ended.is_none()).count(), 0);
    assert_eq!(verify(&lab, got.id, false).await, Verified::Gone);
}

/// Nobody watches while a store hangs over it: it is read once more before it is signed.
#[tokio::test(start_paused = true)]
async fn none_is_signed_over_what_came_on_while_the_store_hung() {
    for comes_on in [false, true] {
        let lab = released(67).await;
        lab.store.linger(s(3));
        if comes_on {
            lab.schedule(s(1), Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        }
        let got = get(&lab).await;
        assert_eq!(matches!(got, Err(EngineError::NotProven(_))), comes_on, "{got:?}");
        assert_eq!(got.is_ok(), !comes_on);
        lab.store.linger(s(0));
        assert_eq!(lab.record().breaches, u32::from(comes_on));
    }
}

/// Its answer is not told, and what it renewed is true offline for as long as it says.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_not_told_bars_the_on_in_the_place_of_what_it_renewed() {
    let lab = released(72).await;
    let got = get(&lab).await.expect("proven off");
    tokio::time::sleep(s(10)).await;
    lab.store.linger(s(3));
    let (renews, node) = (Some(got.id), node());
    let renewed = lab.engine.receipt(&node, ReceiptCall { renews, ..call("db") });
    let (renewed, ()) = tokio::join!(renewed, async {
        tokio::time::sleep(s(1)).await;
        lab.fault("bmc", Fault::Silent);
    });
    says(renewed, "bmc was not looked at within 2s");
    lab.store.linger(s(0));
    lab.mend("bmc");
    lab.unfence().await.expect("let in");
    until_on(&lab).await;
    assert!(lab.clock.wall().millis() > body_times(&got).2, "it says that no on is sent before");
}

/// Whoever leads next has not proven it: it asks what proved it, and tells where that was too long ago.
#[tokio::test(start_paused = true)]
async fn fresh_asks_what_proved_it_also_where_another_leadership_had_proven_it() {
    let mut lab = Lab::with(68, &[&["pdu-a"]], |world| {
        world.add_machine(NODE).add_supply(NODE, "pdu-a");
    })
    .await;
    lab.fence().await;
    let got = get(&lab).await.expect("proven off");
    lab.crash().await;
    for (takes, unsure) in [(s(0), false), (s(3), true)] {
        lab.store.reads_take(takes);
        let told = verify(&lab, got.id, true).await;
        let Verified::Holds { unsure: words, .. } = &told else { panic!("{told:?}") };
        assert_eq!(words.is_some(), unsure, "{told:?}");
    }
    lab.store.reads_take(s(0));
    lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: Verb::On });
    let told = verify(&lab, got.id, true).await;
    assert!(matches!(told, Verified::Void(_)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_breach_makes_it_void_and_fresh_finds_it_at_once() {
    let lab = released(66).await;
    let got = get(&lab).await.expect("proven off");
    let fresh = verify(&lab, got.id, true).await;
    assert!(matches!(fresh, Verified::Holds { unsure: None, .. }), "{fresh:?}");
    // What its devices said is fresh only for so long; also to whoever leads next, who has not proven it.
    lab.store.reads_take(s(3));
    let fresh = verify(&lab, got.id, true).await;
    assert!(
        matches!(&fresh, Verified::Holds { unsure: Some(words), .. } if words.contains("when the store had answered")),
        "{fresh:?}"
    );
    lab.store.reads_take(s(0));
    lab.fault("bmc", Fault::Silent);
    let fresh = verify(&lab, got.id, true).await;
    assert!(
        matches!(&fresh, Verified::Holds { unsure: Some(words), .. } if words.contains("bmc")),
        "{fresh:?}"
    );
    lab.mend("bmc");
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    while !lab.is_on() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(matches!(verify(&lab, got.id, true).await, Verified::Void(_)));
    assert_eq!(lab.phase(), "fencing");
    lab.reach("released", s(120)).await;
    assert!(
        matches!(verify(&lab, got.id, false).await, Verified::Void(_)),
        "proven anew it is another fence"
    );
}

/// It is refused with these words.
#[track_caller]
fn says(answer: Result<Receipted, EngineError>, words: &str) {
    match answer {
        Err(EngineError::NotProven(why)) => assert!(why.contains(words), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn only_an_off_seen_just_now_by_a_leader_who_proved_it_is_signed() {
    let mut lab = lab(67).await;
    says(get(&lab).await, "it is normal");
    lab.fence().await;
    let other = ReceiptCall { fence: Some(FenceId::mint(lab.clock.wall(), [3; 10])), ..call("db") };
    says(lab.engine.receipt(&node(), other).await, "is not its present one");
    lab.crash().await;
    says(get(&lab).await, "or was another leadership's");
    // Fenced again it is proven anew.
    lab.open_again().await;
    lab.reach("fencing", s(5)).await;
    lab.reach("released", s(120)).await;
    get(&lab).await.expect("proven by this leadership");
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    while !lab.is_on() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    says(get(&lab).await, "reads On");
    assert_eq!(lab.phase(), "fencing", "who finds it on says so");
    lab.reach("released", s(120)).await;
    lab.fault("bmc", Fault::Silent);
    says(get(&lab).await, "bmc was not looked at within 2s");
}

#[tokio::test(start_paused = true)]
async fn a_person_s_word_is_not_signed() {
    let mut lab = lab(68).await;
    lab.answers(&[Answer::Refuse]);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    tokio::time::sleep(s(10)).await;
    lab.fault("bmc", Fault::Silent);
    lab.open().await;
    tokio::time::sleep(s(30)).await;
    lab.engine.attest(&node(), person()).await.expect("nobody says On");
    lab.reach("fenced", s(30)).await;
    says(get(&lab).await, "a person vouches");
}

#[tokio::test(start_paused = true)]
async fn so_many_and_no_more_and_when_there_is_room_is_told() {
    let lab = released(69).await;
    for number in 0..MOST {
        let by = format!("c{}", number / MOST_EACH);
        lab.engine.receipt(&node(), call(&by)).await.expect("room");
    }
    let full = |answer: Result<Receipted, EngineError>| match answer {
        Err(EngineError::ReceiptsFull { open, own, room_in }) => {
            (open, own, room_in <= s(65) && room_in > s(50))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(full(lab.engine.receipt(&node(), call("c0")).await), (MOST_EACH, true, true));
    assert_eq!(full(lab.engine.receipt(&node(), call("late")).await), (MOST, false, true));
    tokio::time::sleep(s(66)).await;
    lab.engine.receipt(&node(), call("late")).await.expect("room again");
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_nothing_is_signed_or_vouched_for() {
    let lab = released(70).await;
    let got = get(&lab).await.expect("proven off");
    lab.store.away(s(10));
    assert!(matches!(get(&lab).await, Err(EngineError::Store(_))));
    let asked = lab.engine.verify_receipt(&node(), got.id, false).await;
    assert!(matches!(asked, Err(EngineError::Store(_))), "{asked:?}");
    tokio::time::sleep(s(11)).await;
    assert!(holds(&lab, got.id).await);
}

#[tokio::test(start_paused = true)]
async fn while_volumes_are_let_go_it_is_had_too() {
    let mut lab = lab(71).await;
    lab.answers(&[Answer::Accept, Answer::Accept, Answer::Accept, Answer::Complete]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    let got = get(&lab).await.expect("proven off");
    lab.reach("released", s(120)).await;
    assert!(holds(&lab, got.id).await);
    assert_eq!(lab.attempts(), 1);
}
