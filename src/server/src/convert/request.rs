//! What callers ask, checked: all faults of a request are told at once.

use std::time::Duration;

use picket_core::device::Grade;
use picket_core::event::{BoundKey, Holder, Person};
use picket_core::ids::Generation;
use picket_core::record::Then;
use picket_core::time::WallTime;
use picket_engine::{Ask, FenceCall, Until};
use picket_proto::v1::{self, ErrorReason};

use super::time::{span, wall};
use super::words;
use crate::digest::Digest;
use crate::fault::{Fault, Fields};
use crate::select::Wanted;

/// The longest reason, in bytes.
const REASON: usize = 1_024;
/// The longest key, in bytes.
const KEY: usize = 128;
/// The longest name of a holder, in bytes.
const HOLDER: usize = 253;
/// The deadlines that a caller may ask for.
const DEADLINE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(86_400));

/// A fence that is asked for.
#[derive(Debug)]
pub(crate) struct FenceAsked {
    /// The node.
    pub(crate) node: Wanted,
    /// What the engine is asked.
    pub(crate) call: FenceCall,
    /// When the caller's stream ends.
    pub(crate) until: Until,
}

/// Something else that sets a node in motion.
#[derive(Debug)]
pub(crate) struct MotionAsked {
    /// The node.
    pub(crate) node: Wanted,
    /// The hold that is meant.
    pub(crate) holder: String,
    /// What the engine is asked.
    pub(crate) ask: Ask,
    /// The caller's own deadline.
    pub(crate) deadline: Option<Duration>,
}

/// Checks a fence request of `caller`.
pub(crate) fn fence(request: &v1::FenceRequest, caller: &str) -> Result<FenceAsked, Fault> {
    let mut fields = Fields::default();
    let node = Wanted::of(request.node.as_ref(), "node", &mut fields);
    let reason = reason(&request.reason, &mut fields);
    let holder = holder(&request.holder, caller, &mut fields);
    let until: v1::FenceUntil = choice("until", request.until, &mut fields);
    let then: v1::FenceThen = choice("then", request.then, &mut fields);
    let grade: v1::Grade = choice("minimum_grade", request.minimum_grade, &mut fields);
    let deadline = deadline(request.deadline.as_ref(), &mut fields);
    let not_after = not_after(request.not_after.as_ref(), &mut fields);
    let key = key(&request.idempotency_key, &mut fields);
    fields.done()?;
    not_offered_yet(request)?;
    let then = match then {
        v1::FenceThen::Unspecified | v1::FenceThen::StayOff => Then::StayOff,
        v1::FenceThen::PowerOn => Then::PowerOn,
    };
    let min_grade = words::grade_of(grade);
    let digest = fence_digest(&holder, &reason, then, min_grade, deadline);
    Ok(FenceAsked {
        node: node.ok_or_else(|| lost("node"))?,
        call: FenceCall {
            holder: Holder { name: holder, by: caller.to_owned(), reason, then },
            key: key.map(|key| BoundKey { key, digest }),
            min_grade,
            deadline,
            not_after,
            expected_generation: request.expected_generation.map(Generation),
        },
        until: match until {
            v1::FenceUntil::Confirmed => Until::Confirmed,
            v1::FenceUntil::Unspecified | v1::FenceUntil::Released => Until::Released,
        },
    })
}

/// What would make a request safer, or set a limit aside, is never ignored in silence.
fn not_offered_yet(request: &v1::FenceRequest) -> Result<(), Fault> {
    let what = match request {
        request if request.dry_run => "dry runs",
        request if request.override_budget.is_some() => {
            "override_budget: it has no budget that could be set aside"
        }
        request if request.override_quorum.is_some() => "override_quorum: its store has no quorum",
        _ => return Ok(()),
    };
    Err(Fault::new(
        ErrorReason::NotOffered,
        format!("this gateway does not offer {what} yet; nothing was changed"),
    ))
}

fn fence_digest(
    holder: &str,
    reason: &str,
    then: Then,
    grade: Option<Grade>,
    deadline: Option<Duration>,
) -> String {
    let mut digest = Digest::of("fence").with("holder", holder).with("reason", reason);
    if then == Then::PowerOn {
        digest = digest.with("then", "power_on");
    }
    if let Some(grade) = grade {
        digest = digest.with("minimum_grade", words::grade_word(grade));
    }
    with_deadline(digest, deadline).hex()
}

fn with_deadline(digest: Digest, deadline: Option<Duration>) -> Digest {
    match deadline {
        Some(deadline) => digest.with("deadline", &deadline.as_millis().to_string()),
        None => digest,
    }
}

/// Checks an unfence request of `caller`.
pub(crate) fn unfence(request: &v1::UnfenceRequest, caller: &str) -> Result<MotionAsked, Fault> {
    let mut fields = Fields::default();
    let holder = holder(&request.holder, caller, &mut fields);
    let not_after = not_after(request.not_after.as_ref(), &mut fields);
    let deadline = deadline(request.deadline.as_ref(), &mut fields);
    let asked = Asked {
        call: "unfence",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: &request.idempotency_key,
        generation: request.expected_generation,
    };
    asked.check(caller, holder, deadline, not_after, fields)
}

/// Checks a retry of `caller`.
pub(crate) fn retry(request: &v1::RetryRequest, caller: &str) -> Result<MotionAsked, Fault> {
    let mut fields = Fields::default();
    let deadline = deadline(request.deadline.as_ref(), &mut fields);
    let asked = Asked {
        call: "retry",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: &request.idempotency_key,
        generation: request.expected_generation,
    };
    asked.check(caller, String::new(), deadline, None, fields)
}

/// Checks a stand-down of `caller`.
pub(crate) fn stand_down(request: &v1::StandDownRequest, caller: &str) -> Result<MotionAsked, Fault> {
    let asked = Asked {
        call: "stand_down",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: &request.idempotency_key,
        generation: request.expected_generation,
    };
    asked.check(caller, String::new(), None, None, Fields::default())
}

/// Checks the abandoning of a release by `caller`.
pub(crate) fn abandon(
    request: &v1::AbandonReleaseRequest,
    caller: &str,
) -> Result<(MotionAsked, picket_core::ids::ReleaseId), Fault> {
    let mut fields = Fields::default();
    let release = picket_core::ids::ReleaseId::new(&request.release);
    if let Err(error) = &release {
        fields.wrong("release", error.to_string());
    }
    let asked = Asked {
        call: "abandon",
        node: request.node.as_ref(),
        reason: &request.reason,
        key: "",
        generation: request.expected_generation,
    };
    let checked = asked.check(caller, String::new(), None, None, fields)?;
    Ok((checked, release.map_err(|_| lost("release"))?))
}

/// What requests that set a node in motion have in common.
struct Asked<'a> {
    call: &'static str,
    node: Option<&'a v1::NodeSelector>,
    reason: &'a str,
    key: &'a str,
    generation: Option<u64>,
}

impl Asked<'_> {
    fn check(
        self,
        caller: &str,
        holder: String,
        deadline: Option<Duration>,
        not_after: Option<WallTime>,
        mut fields: Fields,
    ) -> Result<MotionAsked, Fault> {
        let node = Wanted::of(self.node, "node", &mut fields);
        let reason = reason(self.reason, &mut fields);
        let key = key(self.key, &mut fields);
        fields.done()?;
        let digest = Digest::of(self.call).with("holder", &holder).with("reason", &reason);
        let digest = with_deadline(digest, deadline).hex();
        Ok(MotionAsked {
            node: node.ok_or_else(|| lost("node"))?,
            holder,
            ask: Ask {
                person: Person { name: caller.to_owned(), reason },
                key: key.map(|key| BoundKey { key, digest }),
                not_after,
                expected_generation: self.generation.map(Generation),
            },
            deadline,
        })
    }
}

/// A field that was found wrong was not told; cannot be reached, and is an error all the same.
fn lost(field: &str) -> Fault {
    let mut fields = Fields::default();
    fields.wrong(field, "is missing");
    fields.done().err().unwrap_or_else(|| Fault::new(ErrorReason::BadRequest, "a field is missing"))
}

/// Says why: required, and bounded, since it is stored and told.
fn reason(text: &str, fields: &mut Fields) -> String {
    let text = text.trim();
    if text.is_empty() {
        fields.wrong("reason", "is empty: say why; it stands in the history");
    } else if text.len() > REASON {
        fields.wrong("reason", format!("has {} bytes: at most {REASON}", text.len()));
    }
    text.to_owned()
}

fn key(text: &str, fields: &mut Fields) -> Option<String> {
    if text.len() > KEY {
        fields.wrong("idempotency_key", format!("has {} bytes: at most {KEY}; a UUID is good", text.len()));
    } else if text.chars().any(char::is_control) {
        fields
            .wrong("idempotency_key", "has control characters: letters and digits are good, a UUID is best");
    }
    (!text.is_empty()).then(|| text.to_owned())
}

fn holder(text: &str, caller: &str, fields: &mut Fields) -> String {
    if text.is_empty() {
        return caller.to_owned();
    }
    if text.len() > HOLDER {
        fields.wrong("holder", format!("has {} bytes: at most {HOLDER}", text.len()));
    } else if text.trim() != text || text.chars().any(char::is_control) {
        fields.wrong("holder", "has blanks at an end, or control characters: a plain name is wanted");
    }
    text.to_owned()
}

fn deadline(given: Option<&prost_types::Duration>, fields: &mut Fields) -> Option<Duration> {
    let given = given?;
    let (least, most) = DEADLINE;
    match span(given) {
        Some(deadline) if deadline >= least && deadline <= most => Some(deadline),
        Some(deadline) => {
            fields.wrong("deadline", format!("{deadline:?} is out of range: 10 s to 24 h"));
            None
        }
        None => {
            fields.wrong("deadline", "is no span: 10 s to 24 h is wanted");
            None
        }
    }
}

fn not_after(given: Option<&prost_types::Timestamp>, fields: &mut Fields) -> Option<WallTime> {
    let at = wall(given?);
    if at.is_none() {
        fields.wrong("not_after", "is no moment after 1970-01-01T00:00:00Z");
    }
    at
}

/// A value of an enum. Open on the wire, it is closed in a request: what is not known cannot be done.
pub(crate) fn choice<E: TryFrom<i32> + Default>(field: &str, value: i32, fields: &mut Fields) -> E {
    E::try_from(value).unwrap_or_else(|_| {
        fields.wrong(field, format!("{value} is not a value that this gateway knows"));
        E::default()
    })
}

/// How many entries a page may have.
pub(crate) fn page_size(given: i32, fields: &mut Fields) -> usize {
    match usize::try_from(given) {
        Ok(0) => 100,
        Ok(size @ 1..=1_000) => size,
        _ => {
            fields.wrong("page_size", format!("{given} is out of range: 1 to 1000, or 0 for 100"));
            100
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::*;

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
    fn what_is_not_done_yet_is_not_ignored() {
        let limit = Some(v1::LimitOverride { reason: "why".to_owned() });
        for request in [
            v1::FenceRequest { dry_run: true, ..good() },
            v1::FenceRequest { override_budget: limit.clone(), ..good() },
            v1::FenceRequest { override_quorum: limit, ..good() },
        ] {
            assert_eq!(
                fence(&request, "me").expect_err("refused").status().code(),
                tonic::Code::Unimplemented
            );
        }
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
}
