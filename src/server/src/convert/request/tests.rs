//! Requests, good and bad.

use picket_core::record::Then;
use picket_engine::Until;
use picket_proto::v1;
use tonic_types::StatusExt;

use super::{fence, page_size, retry, unfence};
use crate::digest::Digest;
use crate::fault::{Fault, Fields};

fn named(name: &str) -> Option<v1::NodeSelector> {
    Some(v1::NodeSelector { by: Some(v1::node_selector::By::Name(name.to_owned())) })
}

fn good() -> v1::FenceRequest {
    v1::FenceRequest { node: named("n1"), reason: "why".to_owned(), ..Default::default() }
}

fn faults(fault: Fault) -> Vec<String> {
    let details = fault.status().get_error_details();
    let bad = details.bad_request().expect("a bad request");
    bad.field_violations.iter().map(|violation| violation.field.clone()).collect()
}

#[test]
fn what_is_not_said_is_the_default() {
    let asked = fence(&good(), "uid:7").expect("good");
    assert_eq!((asked.until, asked.call.deadline, asked.call.min_grade), (Until::Released, None, None));
    assert_eq!((asked.call.holder.name.as_str(), asked.call.holder.by.as_str()), ("uid:7", "uid:7"));
    assert_eq!((asked.call.holder.then, asked.call.key), (Then::StayOff, None));
}

#[test]
fn all_faults_of_a_request_are_told_at_once() {
    let bad = v1::FenceRequest {
        node: named("a b"),
        reason: " ".to_owned(),
        idempotency_key: "k".repeat(129),
        holder: "x\n".to_owned(),
        until: 77,
        then: 78,
        minimum_grade: 79,
        deadline: Some(prost_types::Duration { seconds: 9, nanos: 0 }),
        not_after: Some(prost_types::Timestamp { seconds: -1, nanos: 0 }),
        ..Default::default()
    };
    let found = faults(fence(&bad, "uid:7").expect_err("bad"));
    let want = [
        "node.name",
        "reason",
        "holder",
        "until",
        "then",
        "minimum_grade",
        "deadline",
        "not_after",
        "idempotency_key",
    ];
    assert_eq!(found, want);
}

#[test]
fn a_text_that_is_stored_has_no_control_characters() {
    let typed = v1::FenceRequest { reason: " kernel\tpanic,\r\nnobody answers\n".to_owned(), ..good() };
    let asked = fence(&typed, "me").expect("people type these");
    assert_eq!(asked.call.holder.reason, "kernel panic,  nobody answers");
    let bad = "a\u{1}b".to_owned();
    let limit = Some(v1::LimitOverride { reason: bad.clone() });
    let asked = v1::FenceRequest {
        reason: bad.clone(),
        override_budget: limit.clone(),
        override_quorum: limit,
        ..good()
    };
    let found = faults(fence(&asked, "me").expect_err("bad"));
    assert_eq!(found, ["reason", "override_budget.reason", "override_quorum.reason"]);
    let retire = v1::RetireRequest { node: named("n1"), reason: bad.clone(), ..Default::default() };
    assert_eq!(faults(super::retire(&retire, "me").expect_err("bad")), ["reason"]);
    let accept = v1::AcceptIdentityRequest {
        node: named("n1"),
        device: "bmc".to_owned(),
        serial: bad.clone(),
        reason: bad.clone(),
        ..Default::default()
    };
    assert_eq!(faults(super::accept_identity(&accept, "me").expect_err("bad")), ["serial", "reason"]);
    let group = v1::PauseScope { of: Some(v1::pause_scope::Of::Group(bad.clone())) };
    let pause = v1::ResumeRequest { scope: Some(group), reason: bad };
    assert_eq!(faults(super::pause::resume(&pause, "me").expect_err("bad")), ["scope.group", "reason"]);
}

/// A repeat is found by the digest of a version before (S20).
#[test]
fn a_key_is_bound_to_the_reason_as_it_was_written() {
    let asked =
        v1::FenceRequest { reason: "two\nlines".to_owned(), idempotency_key: "k".to_owned(), ..good() };
    let key = fence(&asked, "me").expect("good").call.key.expect("a key");
    let before = Digest::of("fence").with("holder", "me").with("reason", "two\nlines").hex();
    assert_eq!(key.digest, before);
}

#[test]
fn a_deadline_is_taken_within_its_bounds_alone() {
    for (seconds, nanos, taken) in
        [(10, 0, true), (86_400, 0, true), (9, 999_999_999, false), (86_400, 1, false), (-10, 0, false)]
    {
        let deadline = Some(prost_types::Duration { seconds, nanos });
        let asked = fence(&v1::FenceRequest { deadline, ..good() }, "me");
        assert_eq!(asked.is_ok(), taken, "{seconds}.{nanos}");
    }
}

#[test]
fn what_only_bounds_a_request_does_not_bind_its_key_and_all_else_does() {
    let digest = |request: &v1::FenceRequest| {
        let request = v1::FenceRequest { idempotency_key: "k".to_owned(), ..request.clone() };
        fence(&request, "me").expect("good").call.key.expect("a key").digest
    };
    let plain = digest(&good());
    let same = v1::FenceRequest {
        until: v1::FenceUntil::Confirmed.into(),
        then: v1::FenceThen::StayOff.into(),
        not_after: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
        expected_generation: Some(7),
        holder: "me".to_owned(),
        ..good()
    };
    assert_eq!(digest(&same), plain);
    for other in [
        v1::FenceRequest { reason: "another".to_owned(), ..good() },
        v1::FenceRequest { holder: "db".to_owned(), ..good() },
        v1::FenceRequest { then: v1::FenceThen::PowerOn.into(), ..good() },
        v1::FenceRequest { minimum_grade: v1::Grade::Observed.into(), ..good() },
        v1::FenceRequest { deadline: Some(prost_types::Duration { seconds: 60, nanos: 0 }), ..good() },
    ] {
        assert_ne!(digest(&other), plain, "{other:?}");
    }
}

#[test]
fn one_key_is_not_good_for_two_calls() {
    let unfence_request = v1::UnfenceRequest {
        node: named("n1"),
        reason: "why".to_owned(),
        idempotency_key: "k".to_owned(),
        ..Default::default()
    };
    let fence_request = v1::FenceRequest { idempotency_key: "k".to_owned(), ..good() };
    let of_fence = fence(&fence_request, "me").expect("good").call.key;
    let of_unfence = unfence(&unfence_request, "me").expect("good").ask.key;
    assert_ne!(of_fence, of_unfence);
}

#[test]
fn what_is_to_be_set_aside_has_a_reason_and_a_wait_has_bounds() {
    let limit = |reason: &str| Some(v1::LimitOverride { reason: reason.to_owned() });
    let wish = |seconds| Some(v1::QueueWish { at_most: Some(prost_types::Duration { seconds, nanos: 0 }) });
    let bad = v1::FenceRequest {
        override_budget: limit(" "),
        override_quorum: limit(&"x".repeat(1_025)),
        queue: wish(0),
        ..good()
    };
    let found = faults(fence(&bad, "me").expect_err("bad"));
    assert_eq!(found, ["override_budget.reason", "override_quorum.reason", "queue.at_most"]);
    let asked =
        v1::FenceRequest { override_budget: limit("storm"), queue: wish(60), dry_run: true, ..good() };
    let asked = fence(&asked, "me").expect("good");
    let asides = asked.call.set_aside.expect("set aside");
    assert_eq!(asides.quorum, None, "each by its own name");
    let aside = asides.budget.expect("set aside");
    assert_eq!((aside.by.as_str(), aside.reason.as_str(), asked.dry_run), ("me", "storm", true));
    assert_eq!(asked.queue, Some(Some(std::time::Duration::from_secs(60))));
    let default = fence(&v1::FenceRequest { queue: Some(v1::QueueWish::default()), ..good() }, "me");
    assert_eq!(default.expect("good").queue, Some(None));
    assert_eq!(fence(&good(), "me").expect("good").queue, None);
}

#[test]
fn a_pause_has_a_scope_a_reason_and_an_end() {
    let found = faults(super::pause::pause(&v1::PauseRequest::default(), "me").expect_err("bad"));
    assert_eq!(found, ["lasts", "scope", "reason"]);
    let scope = |of| Some(v1::PauseScope { of: Some(of) });
    for (of, field) in [
        (v1::pause_scope::Of::Everything(false), "scope.everything"),
        (v1::pause_scope::Of::Group(String::new()), "scope.group"),
        (v1::pause_scope::Of::Node("a b".to_owned()), "scope.node"),
    ] {
        let bad = v1::ResumeRequest { scope: scope(of), reason: "why".to_owned() };
        assert_eq!(faults(super::pause::resume(&bad, "me").expect_err("bad")), [field]);
    }
    let long = v1::PauseRequest {
        scope: scope(v1::pause_scope::Of::Everything(true)),
        reason: "why".to_owned(),
        lasts: Some(prost_types::Duration { seconds: 31 * 86_400, nanos: 0 }),
    };
    assert_eq!(faults(super::pause::pause(&long, "me").expect_err("bad")), ["lasts"]);
}

#[test]
fn pages_have_bounds() {
    let size = |given| {
        let mut fields = Fields::default();
        let size = page_size(given, &mut fields);
        fields.done().ok().map(|()| size)
    };
    assert_eq!(
        [size(0), size(1), size(1_000), size(1_001), size(-1)],
        [Some(100), Some(1), Some(1_000), None, None]
    );
}

/// S2: who looked at the machine saw it in one fence, and another may have begun since.
#[test]
fn who_says_that_the_machine_is_off_says_in_which_fence() {
    let asked = |seen_off, expected_generation| {
        let reason = "why".to_owned();
        v1::RetryRequest { node: named("n1"), reason, seen_off, expected_generation, ..Default::default() }
    };
    let refused = retry(&asked(true, None), "ada").expect_err("of which fence?");
    assert_eq!(faults(refused), ["expected_generation"]);
    let taken = retry(&asked(true, Some(7)), "ada").expect("of that one");
    assert_eq!(taken.ask.expected_generation.map(|generation| generation.0), Some(7));
    assert!(retry(&asked(false, None), "ada").is_ok(), "nothing is believed by it");
}
