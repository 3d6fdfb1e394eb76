//! The history of a fence: one timeline, equal answers folded, and short ids that lead to it.

use crate::common::gateway::{Gateway, Script};
use crate::common::make::{at, fence, outcome, span};
use crate::common::{ask, golden, see};
use picket_proto::v1::*;

fn exchange(millis: i64, device: &str, asked: &str, answered: &str) -> Exchange {
    let rest = i32::try_from(millis % 1_000).expect("below a second");
    Exchange {
        at: at(millis / 1_000, rest),
        device: device.to_owned(),
        asked: asked.to_owned(),
        answered: answered.to_owned(),
        took: span(0, 14),
    }
}

/// The BMC takes two offs, and reads on for all that.
fn ignored() -> Fence {
    let power = "is it on or off";
    let on = |n: i64| exchange(140 + n * 257, "bmc", power, "on (chassis status 0x61)");
    let mut exchanges = vec![
        exchange(30, "bmc", "what machine is it", "uuid b279452e-0000-4000-8000-000000000001"),
        exchange(90, "bmc", "power off, hard", "taken"),
    ];
    exchanges.extend((0..60).map(on));
    exchanges.push(exchange(15_310, "pdu", power, "timed out: no answer"));
    exchanges.push(exchange(15_320, "bmc", "power off, hard", "taken"));
    exchanges.extend((0..18).map(|n| exchange(15_400 + n * 250, "bmc", power, "on (chassis status 0x61)")));
    let moment = |at, phase: Phase, what: &str| Moment { at, phase: phase.into(), what: what.to_owned() };
    Fence {
        node: "r2n03".to_owned(),
        outcome: Some(outcome(
            OutcomeKind::NeedsOperator,
            Reason::LevelsSpent,
            "not off within 20 s: bmc reads On",
        )),
        ended_at: None,
        evidence: None,
        timings: None,
        releases: Vec::new(),
        exchanges_cut: false,
        moments: vec![
            moment(at(0, 0), Phase::Fencing, "opened for alice"),
            moment(at(0, 80), Phase::Fencing, "off: bmc"),
            moment(at(20, 0), Phase::NeedsOperator, "needs an operator (levels spent): not off within 20 s"),
        ],
        exchanges,
        ..fence()
    }
}

const ID: &str = "01990000-0000-7000-8000-000000000007";

#[tokio::test]
async fn a_fence_is_one_timeline_with_equal_answers_folded() {
    let gateway = Gateway::start(Script { fences: vec![ignored()], ..Default::default() }).await;
    for (columns, name) in [(80, "timeline_80.txt"), (60, "timeline_60.txt")] {
        let (code, shown) = see(&gateway, &format!("history --fence {ID}"), columns).await;
        assert_eq!(code, 0, "{shown}");
        assert!(shown.starts_with("r2n03  NEEDS OPERATOR: STILL ON, volumes NOT let go\n"), "{shown}");
        assert_eq!(shown.matches("reads ON").count(), 2, "{shown}");
        assert_eq!(shown.matches("OFF sent").count(), 2, "the second off is there: {shown}");
        assert!(shown.contains("60 times in 15.2 s"), "{shown}");
        golden(name, &shown);
    }
}

#[tokio::test]
async fn raw_has_every_exchange_as_it_was() {
    let gateway = Gateway::start(Script { fences: vec![ignored()], ..Default::default() }).await;
    let raw = ask(&gateway, &format!("history --fence {ID} --raw")).await;
    assert_eq!(raw.out.matches("bmc: is it on or off -> on (chassis status 0x61) (14 ms)").count(), 78);
    assert_eq!(raw.out.matches("bmc: power off, hard -> taken").count(), 2, "{}", raw.out);
    let without = ask(&gateway, "history --raw").await;
    assert!(without.code == 2 && without.err.contains("--fence"), "{without:?}");
}

#[tokio::test]
async fn without_exchanges_the_moments_tell_of_the_off() {
    let none = Fence { exchanges: Vec::new(), ..ignored() };
    let gateway = Gateway::start(Script { fences: vec![none], ..Default::default() }).await;
    let told = ask(&gateway, &format!("history --fence {ID}")).await.out;
    assert!(
        told.contains("OFF sent") && told.contains("to bmc") && told.contains("NOT PROVEN OFF"),
        "{told}"
    );
}

#[tokio::test]
async fn the_end_of_an_id_names_a_fence_where_it_fits_only_one() {
    let other = |id: &str| Fence { id: id.to_owned(), ..fence() };
    let fences = vec![
        ignored(),
        other("01990000-0000-7000-8000-000011112222"),
        other("01990000-0000-7000-8000-000033332222"),
    ];
    let gateway = Gateway::start(Script { fences, ..Default::default() }).await;
    let one = ask(&gateway, "history --fence 00000007").await;
    assert!(one.code == 0 && one.out.contains(ID), "{one:?}");
    let two = ask(&gateway, "history --fence 2222").await;
    assert!(two.code == 2 && two.err.contains("fits 2 fences"), "{two:?}");
    let none = ask(&gateway, "history --fence 4444").await;
    assert!(none.code == 6 && none.err.contains("picket history"), "{none:?}");
}

#[tokio::test]
async fn a_list_on_a_terminal_has_ages_and_short_ids_that_are_unique() {
    let now = prost_types::Timestamp::from(std::time::SystemTime::now());
    // Half a minute off from where the words would change.
    let opened_at = Some(prost_types::Timestamp { seconds: now.seconds - 3 * 3_600 - 330, nanos: 0 });
    let with =
        |fence: Fence, id: &str| Fence { id: format!("01990000-0000-7000-8000-{id}"), opened_at, ..fence };
    let fences = || {
        vec![
            with(fence(), "0000aaaa1234"),
            with(ignored(), "0000bbbb5678"),
            with(Fence { cause: FenceCause::Breach.into(), ..fence() }, "0001bbbb5678"),
        ]
    };
    for (columns, name) in [(80, "history_80.txt"), (60, "history_60.txt")] {
        let gateway = Gateway::start(Script { fences: fences(), ..Default::default() }).await;
        let (code, shown) = see(&gateway, "history", columns).await;
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains("3 h 5 min") == (columns == 80) && !shown.contains("01990000"), "{shown}");
        golden(name, &shown);
        let wide = see(&gateway, "history --wide", 200).await.1;
        assert!(wide.contains("01990000-0000-7000-8000-0000bbbb5678"), "{wide}");
    }
}
