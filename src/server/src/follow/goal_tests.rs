//! How streams end, over records made by hand.

use picket_core::ids::{Generation, NodeId};
use picket_core::record::{Cause, Evidence, Hold, Moment};
use picket_core::time::WallTime;
use picket_core::topology::{Level, Topology};

use super::*;

fn id(n: u8) -> FenceId {
    FenceId::mint(WallTime::from_millis(1), [n; 10])
}

pub(crate) fn a_fence(n: u8, outcome: Option<Outcome>) -> Fence {
    let at = WallTime::from_millis(1);
    let spec = picket_core::device::DeviceSpec {
        id: picket_core::ids::DeviceId::new("bmc").expect("a good name"),
        class: picket_core::device::DeviceClass::Host,
        grade: Grade::Observed,
        has_epochs: true,
        longest_cycle: Duration::from_secs(15),
        call: Duration::from_secs(5),
        dwell: Duration::from_secs(1),
        readings: 2,
        max_in_flight: picket_core::device::MaxInFlight { off: None, on: None },
        trust_after_restart: None,
        verified: true,
        identity: picket_core::device::Identity::default(),
    };
    Fence {
        id: id(n),
        node: NodeId::new("n1").expect("a good name"),
        generation: Generation(u64::from(n)),
        cause: Cause::Asked,
        reason: "why".to_owned(),
        by: "me".to_owned(),
        holder: "me".to_owned(),
        by_person: false,
        opened_at: at,
        confirming_since: Some(at),
        deadline: Duration::from_secs(600),
        min_grade: Grade::Claimed,
        topology: Topology::new(vec![Level { devices: vec![spec] }]).expect("a topology"),
        level: 0,
        first_level: 0,
        round: 0,
        off_sent: true,
        boot: None,
        gave_way: false,
        switched_off: Default::default(),
        identified: Default::default(),
        seen_off: Default::default(),
        said: Default::default(),
        proved_held: Default::default(),
        was_proven: false,
        lost: Default::default(),
        handed_over: Default::default(),
        silent: Default::default(),
        holds: Default::default(),
        releases: Vec::new(),
        attestation: None,
        evidence: Some(Evidence {
            grade: Grade::Claimed,
            lowered_by: Vec::new(),
            level: 1,
            off_since: at,
            confirmed_at: at,
            devices: Vec::new(),
        }),
        outcome,
        ended_at: None,
        audit: None,
        budget_override: None,
        quorum_override: None,
        interrupted: None,
        moments: Vec::new(),
    }
}

fn a_record(phase: Phase, generation: u64, fence: Option<Fence>) -> NodeRecord {
    let node = NodeId::new("n1").expect("a good name");
    NodeRecord { phase, generation: Generation(generation), fence, ..NodeRecord::new(node) }
}

fn released() -> Option<Outcome> {
    Some(Outcome::Fenced { released: true })
}

fn ends(record: &NodeRecord, fence: &Fence, then: Then) -> v1::OutcomeKind {
    let reached = fence.outcome.clone().or(fence.ended_at.map(|_| Outcome::Superseded));
    let end = fence_end(record, Some(fence), reached, then, false, None);
    end.map_or(v1::OutcomeKind::Unspecified, |end| end.kind())
}

#[test]
fn fenced_is_told_of_the_present_fence_alone() {
    let fence = a_fence(1, released());
    let present = a_record(Phase::Released, 1, Some(fence.clone()));
    assert_eq!(ends(&present, &fence, Then::StayOff), v1::OutcomeKind::Fenced);

    let unfencing = a_record(Phase::Unfencing, 2, Some(fence.clone()));
    assert_eq!(ends(&unfencing, &fence, Then::StayOff), v1::OutcomeKind::Superseded);
    assert_eq!(ends(&unfencing, &fence, Then::PowerOn), v1::OutcomeKind::Fenced, "as this caller asked");

    let ended = Fence { ended_at: Some(WallTime::from_millis(9)), ..fence };
    let breached = a_record(Phase::Fencing, 2, Some(a_fence(2, None)));
    let back = a_record(Phase::Normal, 2, None);
    for record in [&breached, &back] {
        for then in [Then::StayOff, Then::PowerOn] {
            assert_eq!(ends(record, &ended, then), v1::OutcomeKind::Superseded, "{:?}", record.phase);
        }
    }
    let end =
        fence_end(&back, Some(&ended), ended.outcome.clone(), Then::StayOff, false, None).expect("an end");
    let had = end.superseded.expect("what it had come to");
    assert!(had.kind() == v1::OutcomeKind::Fenced && had.released && !end.released);
}

#[test]
fn a_fence_that_is_under_way_has_no_end_and_one_that_is_not_kept_is_superseded() {
    let fence = a_fence(1, None);
    let record = a_record(Phase::Fencing, 1, Some(fence.clone()));
    assert_eq!(ends(&record, &fence, Then::StayOff), v1::OutcomeKind::Unspecified);
    let gone = fence_end(&record, None, None, Then::StayOff, false, None).expect("an end");
    assert_eq!((gone.kind(), gone.superseded), (v1::OutcomeKind::Superseded, None));
}

#[test]
fn an_abort_and_a_stand_down_are_told_as_what_they_are() {
    for (stored, kind) in [
        (Outcome::AbortedRecovered, v1::OutcomeKind::AbortedRecovered),
        (Outcome::StoodDown, v1::OutcomeKind::StoodDown),
    ] {
        let fence = a_fence(1, Some(stored));
        assert_eq!(ends(&a_record(Phase::Unfencing, 2, Some(fence.clone())), &fence, Then::StayOff), kind);
        let ended = Fence { ended_at: Some(WallTime::from_millis(9)), ..fence };
        assert_eq!(ends(&a_record(Phase::Normal, 2, None), &ended, Then::StayOff), kind);
    }
}

#[test]
fn already_is_said_to_whom_it_was_and_a_grade_is_each_callers_own() {
    let fence = a_fence(1, released());
    let record = a_record(Phase::Released, 1, Some(fence.clone()));
    let already = fence_end(&record, Some(&fence), released(), Then::StayOff, true, None).expect("an end");
    assert!(already.kind() == v1::OutcomeKind::AlreadyFenced && already.released);
    let too_low = Some(Outcome::NeedsOperator(Reason::GradeTooLow));
    let end = fence_end(&record, Some(&fence), too_low, Then::StayOff, false, Some(Grade::Observed))
        .expect("an end");
    assert_eq!((end.kind(), end.reason()), (v1::OutcomeKind::NeedsOperator, v1::Reason::GradeTooLow));
    assert!(end.detail.contains("claimed") && end.detail.contains("observed"), "{}", end.detail);
}

#[test]
fn an_unfence_ends_where_the_node_comes_to_rest() {
    let fence = a_fence(1, released());
    let with = |phase| a_record(phase, 2, Some(fence.clone()));
    let kind =
        |record: &NodeRecord, fence: &Fence| back_end(record, id(1), Some(fence)).map(|end| end.kind());
    assert_eq!(kind(&with(Phase::Unfencing), &fence), None);
    assert_eq!(kind(&with(Phase::PowerOnFailed), &fence), Some(v1::OutcomeKind::PowerOnFailed));
    let asks = with(Phase::NeedsOperator(Reason::UnboundedEffect));
    assert_eq!(kind(&asks, &fence), Some(v1::OutcomeKind::NeedsOperator));
    assert_eq!(kind(&a_record(Phase::Normal, 2, None), &fence), Some(v1::OutcomeKind::Unfenced));
    let stood_down = a_fence(1, Some(Outcome::StoodDown));
    assert_eq!(kind(&a_record(Phase::Normal, 2, None), &stood_down), Some(v1::OutcomeKind::StoodDown));
    let fenced_again = a_record(Phase::Fencing, 3, Some(a_fence(3, None)));
    assert_eq!(kind(&fenced_again, &fence), Some(v1::OutcomeKind::Superseded));

    let mut held = with(Phase::Released);
    let hold = Hold {
        reason: String::new(),
        by: String::new(),
        since: WallTime::from_millis(1),
        drop_when_released: false,
        breached: false,
        ended: false,
        placed_alone: false,
        kept: false,
        askers: Vec::new(),
    };
    held.holds.insert("db".to_owned(), hold);
    let end = back_end(&held, id(1), Some(&fence)).expect("an end");
    assert_eq!((end.kind(), end.detail.as_str()), (v1::OutcomeKind::StillHeld, "still held by db"));
}

/// S16: the exits that a person has go by it.
#[test]
fn the_reason_why_a_person_is_asked_is_not_replaced_by_who_joins_or_holds() {
    let why = Reason::LevelsSpent;
    let moment = |phase: &str, what: &str| Moment {
        at: WallTime::from_millis(1),
        phase: phase.to_owned(),
        what: what.to_owned(),
    };
    let moments = vec![
        moment("needs_operator", "needs an operator (levels spent): an older try"),
        moment("fencing", "retry, asked by ada: it is plugged in"),
        moment("needs_operator", "needs an operator (levels spent): bmc: no answer"),
        moment("needs_operator", "joined by web for web: it is silent"),
        moment("needs_operator", "held for web by web: all is well, unfence it"),
    ];
    let fence = Fence { moments, ..a_fence(1, Some(Outcome::NeedsOperator(why))) };
    let record = a_record(Phase::NeedsOperator(why), 1, Some(fence.clone()));
    let end = fence_end(&record, Some(&fence), fence.outcome.clone(), Then::StayOff, false, None);
    let end = end.expect("a person is asked");
    assert_eq!((end.kind(), end.detail.as_str()), (v1::OutcomeKind::NeedsOperator, "bmc: no answer"));
}
